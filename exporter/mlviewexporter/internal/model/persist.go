package model

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// exportVersion is the version of what Export writes.
const exportVersion = 1

// maxImport limits what Import reads, in bytes.
const maxImport = 16 << 20

// exported is what a Store keeps over restarts.
type exported struct {
	Version  int               `json:"version"`
	Changes  []Change          `json:"changes,omitempty"`
	Marks    []mark            `json:"marks,omitempty"`
	Failures []Failure         `json:"failures,omitempty"`
	Services []exportedService `json:"services,omitempty"`
	Runs     []exportedRun     `json:"runs,omitempty"`
	Good     []*goodRun        `json:"good,omitempty"`
	Resolved []Need            `json:"resolved,omitempty"`
}

// exportedService is what is known of a service, so that it is not new after a
// restart.
type exportedService struct {
	Namespace string               `json:"namespace,omitempty"`
	Name      string               `json:"name"`
	FirstSeen time.Time            `json:"first_seen"`
	LastSeen  time.Time            `json:"last_seen"`
	Versions  map[string]time.Time `json:"versions,omitempty"`
}

// exportedRun is what is known of a run.
type exportedRun struct {
	Namespace  string    `json:"namespace,omitempty"`
	Service    string    `json:"service"`
	ID         string    `json:"id"`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	State      string    `json:"state,omitempty"`
	Job        string    `json:"job,omitempty"`
	JobName    string    `json:"job_name,omitempty"`
	User       string    `json:"user,omitempty"`
	Version    string    `json:"version,omitempty"`
	Simulated  bool      `json:"simulated,omitempty"`
	Checkpoint time.Time `json:"checkpoint,omitzero"`
	// Fine and Coarse are its curves, as far as there was room for them.
	Fine   *exportedPoints `json:"fine,omitempty"`
	Coarse *exportedPoints `json:"coarse,omitempty"`
}

// exportedPoints are points of curves: times, and values by the name of their curve, as
// little-endian numbers of 32 bits.
type exportedPoints struct {
	Times  []byte            `json:"times"`
	Values map[string][]byte `json:"values"`
}

// maxCurves limits the curves that are written, in bytes.
const maxCurves = 6 << 20

// Export returns the changes, states, failures and good runs of the last week, the
// resolved problems and the curves of runs, as JSON, for Import after a restart: at most
// 16 MiB, of too many rows those that were seen last.
func (s *Store) Export() ([]byte, error) {
	out := s.export()
	for {
		data, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("write what the page keeps over restarts: %w", err)
		}
		if len(data) <= maxImport {
			return data, nil
		}
		out.halve()
	}
}

// halve leaves out what was seen longest ago.
func (e *exported) halve() {
	e.Services = newerHalf(e.Services, func(a, b exportedService) int { return a.LastSeen.Compare(b.LastSeen) })
	e.Runs = newerHalf(e.Runs, func(a, b exportedRun) int { return a.LastSeen.Compare(b.LastSeen) })
	e.Good = newerHalf(e.Good, func(a, b *goodRun) int { return a.Ended.Compare(b.Ended) })
	e.Failures = newerHalf(e.Failures, func(a, b Failure) int { return lastSeen(&a).Compare(lastSeen(&b)) })
	e.Resolved = newerHalf(e.Resolved, compareEnds)
	e.Changes = newerHalf(e.Changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
	e.Marks = newerHalf(e.Marks, func(a, b mark) int { return a.Time.Compare(b.Time) })
	e.sort()
}

func newerHalf[T any](all []T, compare func(a, b T) int) []T {
	slices.SortStableFunc(all, compare)
	return all[(len(all)+1)/2:]
}

func (s *Store) export() exported {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := exported{Version: exportVersion, Failures: s.failures.saved(), Changes: slices.Clone(s.changes.all), Marks: slices.Clone(s.changes.marks), Good: slices.Clone(s.good), Resolved: slices.Clone(s.resolved)}
	for _, of := range s.services {
		one := exportedService{
			Namespace: of.namespace, Name: of.name, FirstSeen: of.firstSeen, LastSeen: of.lastSeen,
			Versions: maps.Clone(of.versions),
		}
		out.Services = append(out.Services, one)
	}
	// The curves of runs that were seen longest ago have no room first.
	room := maxCurves
	for _, r := range slices.SortedFunc(maps.Values(s.runs), func(a, b *run) int {
		return cmp.Or(b.lastSeen.Compare(a.lastSeen), cmp.Compare(a.key, b.key))
	}) {
		one := exportedRun{
			Namespace: r.namespace, Service: r.service, ID: r.id, FirstSeen: r.firstSeen, LastSeen: r.lastSeen,
			State: r.state, Job: r.job, JobName: r.jobName, User: r.user, Version: r.version,
			Simulated: r.simulated, Checkpoint: r.checkpoint,
		}
		if room -= r.curves.fine.size() + r.curves.coarse.size(); room >= 0 {
			one.Fine, one.Coarse = r.curves.fine.exported(), r.curves.coarse.exported()
		}
		out.Runs = append(out.Runs, one)
	}
	out.sort()
	return out
}

// sort orders the lists, so that what has not changed is written the same.
func (e *exported) sort() {
	slices.SortFunc(e.Failures, func(a, b Failure) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(e.Services, func(a, b exportedService) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(e.Runs, func(a, b exportedRun) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
	})
}

// Import adds what Export has written. It leaves out what is older than a week,
// and keeps what is known already. It returns an error for anything that Export
// has not written, and then adds nothing.
func (s *Store) Import(data []byte) error {
	if len(data) > maxImport {
		return fmt.Errorf("read what the page keeps over restarts: %d bytes are more than %d", len(data), maxImport)
	}
	var in exported
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read what the page keeps over restarts: %w", err)
	}
	if in.Version != exportVersion {
		return fmt.Errorf("read what the page keeps over restarts: version %d is not %d", in.Version, exportVersion)
	}
	now := s.settings.Now()
	recent := func(t time.Time) bool { return now.Sub(t) <= importedFor && !t.After(now.Add(time.Minute)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes.restore(in.Changes, in.Marks, recent)
	s.importGood(in.Good, recent)
	s.importResolved(in.Resolved, now)
	s.failures.restore(in.Failures, recent)
	for _, of := range in.Services {
		if recent(of.LastSeen) {
			s.importService(of, now)
		}
	}
	for _, r := range in.Runs {
		if now.Sub(r.LastSeen) <= s.settings.History && recent(r.LastSeen) {
			s.importRun(r, now)
		}
	}
	return nil
}

// plausible returns a time that was saved, or the later one if it is after that or
// more than ten years before.
func plausible(at, later time.Time) time.Time {
	if at.After(later) || at.Before(later.AddDate(-10, 0, 0)) {
		return later
	}
	return at
}

func (s *Store) importService(in exportedService, now time.Time) {
	if _, known := s.services[serviceID{in.Namespace, in.Name}]; known {
		return
	}
	of := s.serviceOf(in.Namespace, in.Name, share.OriginOf(0, in.Name), now)
	if of == nil {
		return
	}
	of.firstSeen, of.lastSeen = plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	for version, first := range in.Versions {
		if len(of.versions) < maxPerService {
			of.versions[s.texts.of(version)] = plausible(first, in.LastSeen)
		}
	}
}

func (s *Store) importRun(in exportedRun, now time.Time) {
	if _, known := s.runs[runID{in.Namespace, in.Service, in.ID}]; known || len(s.runs) >= s.settings.MaxRuns {
		return
	}
	r := s.runOf(in.Namespace, in.Service, in.ID, share.OriginOf(0, in.Service), now)
	if r == nil {
		return
	}
	r.firstSeen, r.lastSeen = plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	r.again = r.lastSeen.Sub(r.firstSeen) >= againAfter
	r.job, r.jobName, r.user, r.version = s.texts.of(in.Job), s.texts.of(in.JobName), s.texts.of(in.User), s.texts.of(in.Version)
	if r.simulated = in.Simulated; !in.Checkpoint.IsZero() {
		r.checkpoint = plausible(in.Checkpoint, in.LastSeen)
	}
	if severity(in.State) > 0 {
		r.state = in.State
	}
	r.curves.restore(in.Fine, in.Coarse, now, s.settings.Interval, s.settings.History)
}

// size is the number of bytes of the points.
func (p *points) size() int {
	n := 4 * len(p.times)
	for _, values := range p.values {
		n += 4 * len(values)
	}
	return n
}

func (p *points) exported() *exportedPoints {
	if len(p.times) == 0 {
		return nil
	}
	out := &exportedPoints{Values: make(map[string][]byte)}
	for _, at := range p.times {
		out.Times = binary.LittleEndian.AppendUint32(out.Times, at)
	}
	for id, values := range p.values {
		var data []byte
		for _, value := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
		if data != nil {
			out.Values[curveNames[id].name] = data
		}
	}
	return out
}

// restored returns the newest points until now that exported has written, none if they are not whole or not in their order.
func (e *exportedPoints) restored(now time.Time, limit int) (p points) {
	if e == nil || len(e.Times)%4 != 0 {
		return points{}
	}
	var times []uint32
	for i := 0; i < len(e.Times); i += 4 {
		at := binary.LittleEndian.Uint32(e.Times[i:])
		if i > 0 && at <= times[len(times)-1] {
			return points{}
		}
		times = append(times, at)
	}
	// As many as add keeps.
	for i := max(0, len(times)-limit-limit/4); i < len(times) && int64(times[i]) <= now.Unix(); i++ {
		var v values
		for id, curve := range curveNames {
			v[id] = float32(math.NaN())
			if data := e.Values[curve.name]; len(data) == len(e.Times) {
				if value := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); !math.IsInf(float64(value), 0) {
					v[id] = value
				}
			}
		}
		p.add(times[i], &v, limit)
	}
	return p
}
