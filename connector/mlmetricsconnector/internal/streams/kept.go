package streams

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Keep returns the streams that add up. Only their copies are made under a lock.
func (s *Store) Keep() []Kept {
	s.walk.Lock()
	defer s.walk.Unlock()
	all := make([]Kept, 0, s.Streams())
	s.each(func(st *stream) {
		if !newest(st.series) {
			all = append(all, st.Kept)
			last := &all[len(all)-1]
			last.Metric, last.Buckets = series.All[st.series].Name, slices.Clone(st.Buckets)
		}
	})
	return all
}

// Restore adds what Keep returned, within the limits. Series that this version has not, or
// not so, are left out. It must not be called after Apply.
func (s *Store) Restore(all []Kept) {
	byName := make(map[string]series.ID)
	for id := range series.Count {
		byName[series.All[id].Name] = id
	}
	for i := range all {
		st := &stream{Kept: all[i]}
		id, known := byName[st.Metric]
		if !known || newest(id) || !st.OfAll && len(st.Labels) != len(series.All[id].Labels) {
			continue
		}
		st.series = id
		st.makeBuckets()
		if len(st.Buckets) != len(all[i].Buckets) {
			continue
		}
		copy(st.Buckets, all[i].Buckets)
		if st.OfAll {
			s.insert(s.shardOf(uint64(id)), st, uint64(id))
			continue
		}
		if st.Run.ID != "" && !st.Expired && !s.runs.admit(RunKey{st.Resource, st.Run.ID}, share.Origin{}, s.limits.Runs, st.Updated) {
			continue
		}
		if !s.room(id, st.Labels) {
			continue
		}
		hash := s.hashOf(s.hashOfSource(st.Identity), id, st.Labels)
		s.insert(s.shardOf(hash), st, hash)
	}
}
