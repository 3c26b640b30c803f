package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
)

// exportVersion is the version of what Export writes.
const exportVersion = 1

// maxImport limits what Import reads, in bytes.
const maxImport = 16 << 20

// exported is what a Store keeps over restarts.
type exported struct {
	Version  int               `json:"version"`
	Changes  []api.Change      `json:"changes,omitempty"`
	Marks    []changes.RunMark `json:"marks,omitempty"`
	Failures []api.Failure     `json:"failures,omitempty"`
	Runs     []runs.SavedRun   `json:"runs,omitempty"`
	Good     []*runs.GoodRun   `json:"good,omitempty"`
	Records  []*input.Record   `json:"records,omitempty"`
	Resolved []api.Need        `json:"resolved,omitempty"`
}

// Export returns the changes, states, failures and good runs of the last week, the
// records of open problems, those that have ended and the curves of runs, as JSON, for Import after a restart: at most
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
	e.Runs, e.Good, e.Failures = newerHalf(e.Runs), newerHalf(e.Good), newerHalf(e.Failures)
	e.Records, e.Resolved, e.Changes, e.Marks = newerHalf(e.Records), newerHalf(e.Resolved), newerHalf(e.Changes), newerHalf(e.Marks)
}

func newerHalf[T any](all []T) []T { return all[(len(all)+1)/2:] }

// export returns lists of which the newest rows come last, and those of the same time in
// one order, so that what has not changed is written the same.
func (s *Store) export() exported {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := exported{
		Version: exportVersion, Failures: s.all.Failures.Saved(), Runs: s.all.Runs.Saved(),
		Changes: slices.Clone(s.all.Changes.All), Marks: slices.Clone(s.all.Changes.Marks), Good: slices.Clone(s.all.Runs.Good),
	}
	out.Records, out.Resolved = s.all.problems.Saved()
	slices.SortFunc(out.Failures, func(a, b api.Failure) int {
		return cmp.Or(api.Value(a.LastSeen).Compare(api.Value(b.LastSeen)), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(out.Records, func(a, b *input.Record) int {
		return cmp.Or(a.Onset.Compare(b.Onset), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Run, b.Run))
	})
	slices.SortStableFunc(out.Changes, func(a, b api.Change) int { return a.Time.Compare(b.Time) })
	slices.SortStableFunc(out.Marks, func(a, b changes.RunMark) int { return a.Time.Compare(b.Time) })
	return out
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
	now := s.Now()
	recent := func(t time.Time) bool { return now.Sub(t) <= kept.Week && !t.After(now.Add(time.Minute)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Changes.Restore(in.Changes, in.Marks, recent)
	s.all.Runs.Good.Restore(in.Good, recent)
	s.all.problems.Restore(in.Records, in.Resolved, recent, now)
	s.all.Failures.Restore(in.Failures, recent)
	for _, r := range slices.Backward(in.Runs) { // the newest first
		if recent(r.LastSeen) {
			s.all.Runs.Restore(r, now)
		}
	}
	return nil
}
