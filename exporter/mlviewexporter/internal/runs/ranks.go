package runs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// rank is one process of a run.
type rank struct {
	name, host string
	// span is the phase or operation of the span that ended last.
	span  string
	ended int64
	// lastStep is when its last step ended, in Unix seconds.
	lastStep float64
}

// processes are those of a run.
type processes struct {
	Ranks map[string]*rank
	// Hosts are those of all attempts.
	Hosts map[string]bool
}

// rankKey returns the key of a process of a run. Without a rank the host stands for
// it.
func rankKey(rank, host string) string {
	if rank == "" {
		return "host " + host
	}
	return rank
}

// unknownRank is the key of a process of which neither rank nor host is known.
var unknownRank = rankKey("", "")

// rankOf returns a rank of the run. It returns nil if there are too many, and for a
// process that may be any of them.
func (s *Set) rankOf(r *Run, name, host string, now time.Time) *rank {
	key := rankKey(name, host)
	one := r.Ranks[key]
	if one != nil || len(r.Ranks) >= maxRanks {
		return one
	}
	if key == unknownRank && len(r.Ranks) > 0 {
		if len(r.Ranks) == 1 {
			for _, only := range r.Ranks {
				return only
			}
		}
		return nil
	}
	if s.ranks >= maxAllRanks && !s.replaceRanks(now) {
		s.limits.Drop("ranks")
		return nil
	}
	if r.Ranks[unknownRank] != nil {
		delete(r.Ranks, unknownRank)
		s.ranks--
	}
	one = &rank{name: name, host: host}
	r.Ranks[key] = one
	s.ranks++
	return one
}

// counted returns the ranks. Processes without a rank count only if
// none has one: they start the others.
func (r *processes) counted() []*rank {
	all := make([]*rank, 0, len(r.Ranks))
	named := false
	for _, one := range r.Ranks {
		named = named || one.name != ""
		all = append(all, one)
	}
	if named {
		all = slices.DeleteFunc(all, func(one *rank) bool { return one.name == "" })
	}
	return all
}

// ProcessCount returns the number of processes.
func (r *processes) ProcessCount() int { return len(r.counted()) }

// RankRows returns the ranks of a run in order, and those below the largest that
// are missing because they sent nothing.
func (r *Run) RankRows() (rows []api.Rank, missing []string) {
	byKey := make(map[string]*api.Rank, len(r.Ranks))
	processes := r.counted()
	rows = make([]api.Rank, 0, len(processes))
	for _, one := range processes {
		row := api.Rank{Rank: one.name, Host: one.host, LastSpan: one.span}
		if one.ended > 0 {
			row.LastSpanTime = api.TimeOf(time.Unix(0, one.ended))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b api.Rank) int {
		return cmp.Or(gpus.CompareIndexes(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host))
	})
	for i := range rows {
		byKey[rankKey(rows[i].Rank, rows[i].Host)] = &rows[i]
	}
	r.addStepsOfRanks(byKey)
	gpuOf := r.gpusOfRanks()
	for i := range rows {
		if held := gpuOf(&rows[i]); held != nil {
			rows[i].GPU, rows[i].GPUIndex = held.GPU.Key, held.GPU.Index
			rows[i].Utilization, rows[i].Power = held.GPU.Number(series.GPUUtilization), held.GPU.Number(series.GPUPower)
		}
	}
	if r.someRanks {
		return rows, nil
	}
	return rows, missingRanks(rows)
}

// addStepsOfRanks adds the steps and the time of the last one to the rows of ranks, by
// rankKey.
func (r *runStreams) addStepsOfRanks(rows map[string]*api.Rank) {
	counted := series.Batches
	for _, one := range r.streams {
		switch one.Series {
		case series.Steps:
			counted = series.Steps // as for the whole run
		case series.LastStep:
			row := rows[rankKey(one.Labels.Rank, one.Labels.Host)]
			if at, ok := series.Unix(one.Value); ok && row != nil && (row.LastStep == nil || at.After(*row.LastStep)) {
				row.LastStep = &at
			}
		}
	}
	for key, counters := range r.stepCounters() {
		var count series.Total
		for _, one := range counters {
			count.Add(one.Value)
		}
		row := rows[rankKey(key.Labels.Rank, key.Labels.Host)]
		if key.Series == counted && row != nil && (row.Steps == nil || *row.Steps < count.Sum) {
			row.Steps = count.All()
		}
	}
}

// gpusOfRanks returns what finds the GPU of a rank: that of its workload, else the only one
// of its host if no other rank of the run is there.
func (r *Run) gpusOfRanks() func(row *api.Rank) *Held {
	// onHost has the GPU of a host, nil if it has several.
	byRank, onHost, ranks := make(map[string]*Held), make(map[string]*Held), make(map[string]int)
	for i := range r.GPUs {
		held := &r.GPUs[i]
		if held.rank != "" && byRank[held.rank] == nil {
			byRank[held.rank] = held
		}
		if _, several := onHost[held.GPU.Host]; several {
			held = nil
		}
		onHost[r.GPUs[i].GPU.Host] = held
	}
	for _, one := range r.Ranks {
		ranks[one.host]++
	}
	return func(row *api.Rank) *Held {
		if held := byRank[row.Rank]; held != nil {
			return held
		}
		if held := onHost[row.Host]; held != nil && held.rank == "" && ranks[row.Host] == 1 {
			return held
		}
		return nil
	}
}

// maxMissingRanks limits the list of missing ranks.
const maxMissingRanks = 256

// missingRanks returns the ranks between 0 and the largest that are not in rows.
func missingRanks(rows []api.Rank) (missing []string) {
	next := 0
	for _, row := range rows {
		n, err := strconv.Atoi(row.Rank)
		if err != nil || n < 0 || n > maxRanks {
			continue
		}
		for ; next < n && len(missing) < maxMissingRanks; next++ {
			missing = append(missing, strconv.Itoa(next))
		}
		next = n + 1
	}
	return missing
}

// Span takes over what a span says of its run and rank.
func (r *Run) Span(in *input.Span, now time.Time) {
	src := in.Source
	r.LastSeen = now
	r.sent(now)
	r.News.See(now)
	r.Simulated = r.Simulated || src.Simulated
	texts := r.in.texts
	texts.Set(&r.Job, src.Job)
	texts.Set(&r.JobName, src.JobName)
	texts.Set(&r.User, src.User)
	texts.Set(&r.Version, src.Version)
	r.someRanks = r.someRanks || src.SomeRanks
	if in.Sizes != (input.Sizes{}) {
		r.sizes.Grow(&in.Sizes)
	}
	if in.Phase == "train" {
		r.failed = in.Failed
	}
	ended := time.Unix(0, min(in.End, now.UnixNano()))
	if in.Phase == "checkpoint" && !in.Failed && !loads(in.Operation) && ended.After(r.Checkpoint) {
		r.Checkpoint = ended
	}
	if src.Rank == "" && src.Host == "" && in.Phase == "" {
		return
	}
	rank := r.Ranks[src.Rank]
	if rank == nil {
		rank = r.in.rankOf(r, r.in.texts.Of(src.Rank), r.in.texts.Of(src.Host), now)
	}
	if rank == nil {
		return
	}
	if in.End >= rank.ended {
		r.in.moveRank(r, rank, src.Host)
	}
	what := cmp.Or(in.Phase, in.Operation)
	// The whole run or epoch says nothing of where a rank is.
	if what != "" && what != "train" && what != "epoch" && in.End >= rank.ended && in.End <= now.UnixNano()+int64(time.Minute) {
		rank.span, rank.ended = r.in.texts.Of(what), in.End
	}
}

// loads reports whether an operation restores a checkpoint.
func loads(operation string) bool {
	return strings.HasPrefix(operation, "load") || strings.Contains(operation, "restore")
}

// hostNames returns the hosts of the ranks.
func (r *processes) hostNames() []string {
	hosts := make(map[string]bool)
	for _, one := range r.Ranks {
		if one.host != "" {
			hosts[one.host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// WithoutHost returns the number of ranks whose host is unknown.
func (r *processes) WithoutHost() (n int) {
	for _, one := range r.Ranks {
		if one.host == "" && one.name != "" {
			n++
		}
	}
	return n
}

// maxRanks limits the ranks of a run, maxAllRanks those of all.
const (
	maxRanks    = 16_384
	maxAllRanks = 65_536
)
