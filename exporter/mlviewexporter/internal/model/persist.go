package model

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// exportVersion is the version of what Export writes.
const exportVersion = 1

// Limits in bytes. The five lists of an export are no larger than an import.
const (
	maxImport     = 16 << 20
	maxExportList = 3 << 20
)

// exported is what a Store keeps over restarts.
type exported struct {
	Version  int               `json:"version"`
	Changes  []Change          `json:"changes,omitempty"`
	Marks    []mark            `json:"marks,omitempty"`
	Failures []Failure         `json:"failures,omitempty"`
	Services []exportedService `json:"services,omitempty"`
	Runs     []exportedRun     `json:"runs,omitempty"`
}

// exportedService is what is known of a service, so that it is not new after a
// restart.
type exportedService struct {
	Namespace string               `json:"namespace,omitempty"`
	Name      string               `json:"name"`
	FirstSeen time.Time            `json:"first_seen"`
	LastSeen  time.Time            `json:"last_seen"`
	Version   string               `json:"version,omitempty"`
	Versions  map[string]time.Time `json:"versions,omitempty"`
	Models    map[string]time.Time `json:"models,omitempty"`
}

// exportedRun is what is known of a run.
type exportedRun struct {
	Namespace  string    `json:"namespace,omitempty"`
	Service    string    `json:"service"`
	ID         string    `json:"id"`
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	State      string    `json:"state,omitempty"`
	Attempts   float64   `json:"attempts,omitempty"`
	Job        string    `json:"job,omitempty"`
	JobName    string    `json:"job_name,omitempty"`
	User       string    `json:"user,omitempty"`
	Version    string    `json:"version,omitempty"`
	Simulated  bool      `json:"simulated,omitempty"`
	Checkpoint time.Time `json:"checkpoint,omitzero"`
}

// Export returns the changes, states and failures of the last week as JSON of at
// most 16 MiB, for Import after a restart. Of a list that is too long, it has what
// was seen last.
func (s *Store) Export() ([]byte, error) {
	out := s.export()
	out.limit()
	data, err := json.Marshal(&out)
	if err != nil {
		return nil, fmt.Errorf("write what the page keeps over restarts: %w", err)
	}
	return data, nil
}

func (s *Store) export() exported {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := exported{Version: exportVersion, Changes: append([]Change(nil), s.changes...), Marks: append([]mark(nil), s.marks...)}
	for _, f := range s.failures.all {
		out.Failures = append(out.Failures, f.Failure)
	}
	for _, of := range s.services {
		one := exportedService{
			Namespace: of.namespace, Name: of.name, FirstSeen: of.firstSeen, LastSeen: of.lastSeen, Version: of.version,
			Versions: maps.Clone(of.versions), Models: maps.Clone(of.models),
		}
		out.Services = append(out.Services, one)
	}
	for _, r := range s.runs {
		out.Runs = append(out.Runs, exportedRun{
			Namespace: r.namespace, Service: r.service, ID: r.id, FirstSeen: r.firstSeen, LastSeen: r.lastSeen,
			State: r.state, Attempts: r.attempts, Job: r.job, JobName: r.jobName, User: r.user, Version: r.version,
			Simulated: r.simulated, Checkpoint: r.checkpoint,
		})
	}
	return out
}

// limit orders the lists, so that what has not changed is written the same, and
// cuts them.
func (e *exported) limit() {
	slices.SortStableFunc(e.Changes, func(a, b Change) int { return b.Time.Compare(a.Time) })
	slices.SortStableFunc(e.Marks, func(a, b mark) int { return b.Time.Compare(a.Time) })
	slices.SortFunc(e.Failures, func(a, b Failure) int {
		return cmp.Or(lastSeen(&b).Compare(lastSeen(&a)), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(e.Services, func(a, b exportedService) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(e.Runs, func(a, b exportedRun) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
	})
	e.Changes, e.Marks, e.Failures = fitting(e.Changes), fitting(e.Marks), fitting(e.Failures)
	e.Services, e.Runs = fitting(e.Services), fitting(e.Runs)
}

// fitting returns as many of the first rows as fit into maxExportList.
func fitting[T any](rows []T) []T {
	bytes := 0
	for i := range rows {
		row, err := json.Marshal(&rows[i])
		if bytes += len(row) + 1; err != nil || bytes > maxExportList {
			return rows[:i]
		}
	}
	return rows
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
	s.importNotes(&in, recent)
	for i := range in.Failures {
		if recent(lastSeen(&in.Failures[i])) && len(s.failures.all) < maxFailures {
			s.importFailure(&in.Failures[i], now)
		}
	}
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

// importFailure adds a failure with what spans say of one. Commands and addresses
// come from repro_gen's directory only, and the message may have been saved while
// more of it was shown.
func (s *Store) importFailure(in *Failure, now time.Time) {
	f := Failure{
		Key: cut(in.Key, maxLabel), Kind: cut(in.Kind, maxLabel), Class: cut(in.Class, maxLabel), Message: s.message(in.Message),
		Service: cut(in.Service, maxLabel), Version: cut(in.Version, maxLabel), Operation: cut(in.Operation, maxLabel),
		Run: cut(in.Run, maxLabel), RunID: cut(in.RunID, maxLabel),
		Count: max(0, in.Count), Variants: max(0, in.Variants), FirstSeen: in.FirstSeen, LastSeen: in.LastSeen,
	}
	if id, err := hex.DecodeString(in.TraceID); err == nil && len(id) == 16 {
		f.TraceID = hexID(id)
	}
	f.believe(now)
	if s.failures.all[f.Key] == nil {
		s.failures.all[f.Key] = &failureGroup{Failure: f}
	}
}

// importNotes adds the changes and marks that are not known yet.
func (s *Store) importNotes(in *exported, recent func(time.Time) bool) {
	known := make(map[string]bool)
	for _, c := range s.changes {
		known[c.Key] = true
	}
	for _, c := range in.Changes {
		if recent(c.Time) && len(s.changes) < maxChanges && !known[c.Key] {
			known[c.Key] = true
			s.changes = append(s.changes, c)
		}
	}
	marked := make(map[mark]bool)
	for _, m := range s.marks {
		marked[m] = true
	}
	for _, m := range in.Marks {
		if recent(m.Time) && !marked[m] {
			marked[m] = true
			s.marks = append(s.marks, m)
		}
	}
	slices.SortStableFunc(s.changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
	slices.SortStableFunc(s.marks, func(a, b mark) int { return a.Time.Compare(b.Time) })
	s.marks = s.marks[max(0, len(s.marks)-maxMarks):]
}

func (s *Store) importService(in exportedService, now time.Time) {
	if _, known := s.services[serviceID{in.Namespace, in.Name}]; known {
		return
	}
	of := s.serviceOf(in.Namespace, in.Name, now)
	if of == nil {
		return
	}
	of.firstSeen, of.lastSeen, of.version = believed(in.FirstSeen, in.LastSeen, now), in.LastSeen, in.Version
	for version, first := range in.Versions {
		if len(of.versions) < maxPerService {
			of.versions[version] = believed(first, in.LastSeen, now)
		}
	}
	for model, first := range in.Models {
		if len(of.models) < maxPerService {
			of.models[model] = believed(first, in.LastSeen, now)
		}
	}
}

func (s *Store) importRun(in exportedRun, now time.Time) {
	if _, known := s.runs[runID{in.Namespace, in.Service, in.ID}]; known || len(s.runs) >= s.settings.MaxRuns {
		return
	}
	r := s.runOf(in.Namespace, in.Service, in.ID, now)
	if r == nil {
		return
	}
	r.firstSeen, r.lastSeen, r.attempts = believed(in.FirstSeen, in.LastSeen, now), in.LastSeen, in.Attempts
	r.job, r.jobName, r.user, r.version = in.Job, in.JobName, in.User, in.Version
	r.simulated, r.checkpoint = in.Simulated, believed(in.Checkpoint, time.Time{}, now)
	if severity(in.State) > 0 {
		r.state = in.State
	}
}
