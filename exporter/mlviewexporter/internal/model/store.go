// Package model answers what runs, on which GPUs, and what needs a person. A Store
// passes what is received to its parts for runs, GPUs, services, calls, failures,
// changes and traces, each a package of its own, and takes a State of them for the
// page. They know neither pdata nor HTTP.
//
// It decides nothing that ml_metrics decides: states, bounds, goodput and problems
// are that connector's series. Prompts, completions and arguments of calls are
// held only with Content of the settings, as attributes of spans. Of messages of errors
// the first 200 characters are, or the first 512 with Content.
package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/history"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// Store is the bounded model of what runs. It takes the lock, and hands to its parts what
// is received and to the page what they show. It is safe for concurrent use.
type Store struct {
	input.Bounds
	// state is the last State.
	state atomic.Pointer[api.State]

	mu  sync.Mutex
	all *parts
	// past are the last hour and the last ten minutes of the page as a whole, sampled is
	// when they got their last State.
	past    [2]*history.Set
	sampled time.Time
}

// NewStore returns an empty Store.
func NewStore(settings input.Settings) *Store {
	s := &Store{Bounds: input.Bounds{Settings: settings, Texts: kept.NewTexts(settings.Content), Limits: kept.NewCounts()}}
	s.all = newParts(&s.Bounds)
	s.past, s.sampled = [2]*history.Set{history.New(time.Minute), history.New(10 * time.Second)}, s.all.started
	return s
}

// State returns what the page shows. The State is at most one interval old and
// must not be changed.
func (s *Store) State() *api.State {
	if state := s.fresh(s.Now()); state != nil {
		return state
	}
	reported := s.Reported()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if state := s.fresh(now); state != nil {
		return state
	}
	state := s.all.state(reported, now)
	api.MakeLists(state)
	s.state.Store(state)
	s.sample(state)
	return state
}

// sampleEvery is how often the past of the page gets a State if nobody asks for one.
const sampleEvery = 10 * time.Second

func (s *Store) sample(state *api.State) {
	for _, set := range s.past {
		set.Add(state)
	}
	s.sampled = state.Time
}

// History returns the last hour of the page as a whole, or the last ten minutes.
func (s *Store) History(short bool) *api.History {
	s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	if short {
		return s.past[1].Rows()
	}
	return s.past[0].Rows()
}

// fresh returns the last State, and nil if it is old. Who asks once an interval gets
// another one each time, also if a request comes a little early.
func (s *Store) fresh(now time.Time) *api.State {
	state := s.state.Load()
	if state == nil || now.Before(state.Time) || now.Sub(state.Time) >= s.Interval-s.Interval/8 {
		return nil
	}
	return state
}

// Hidden returns the number of rows beyond the limit of each list, without those of
// State that are left out for their number. It computes no State.
func (s *Store) Hidden() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Limits.Hidden()
}

// ApplyPoints adds the points of one request.
func (s *Store) ApplyPoints(points []series.Point) {
	now := s.begin()
	defer s.mu.Unlock()
	for i := range points {
		s.all.point(&points[i], now)
	}
}

// ApplyUpdates adds values of streams that are known by their Origin. It appends the
// indices of the others to unknown, and returns that: they are to be read as Points.
func (s *Store) ApplyUpdates(updates []series.Update, unknown []int) []int {
	now := s.begin()
	defer s.mu.Unlock()
	for i := range updates {
		if !s.all.again(&updates[i], now) {
			unknown = append(unknown, i)
		}
	}
	return unknown
}

// ApplySpans adds the spans of one request. It calls details, which may be nil, for those
// whose traces the page holds, without holding a lock.
func (s *Store) ApplySpans(spans []input.Span, details func(i int) input.Details) {
	if len(spans) == 0 {
		return
	}
	now := s.begin()
	s.all.traces.Choose(spans, now)
	s.mu.Unlock()
	for i := range spans {
		if spans[i].Held && details != nil {
			spans[i].Details = details(i)
		}
	}
	now = s.begin()
	defer s.mu.Unlock()
	s.all.spans(spans, now)
}

// ApplyEvents adds the log records of one request.
func (s *Store) ApplyEvents(events []input.Event) {
	now := s.begin()
	defer s.mu.Unlock()
	for i := range events {
		s.all.event(&events[i], now)
	}
}

// SetFailures replaces the groups that repro_gen's directory has. They are shown
// together with the failures that spans report.
func (s *Store) SetFailures(found []api.Failure) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Failures.Set(found, now)
}

// Span returns what an opened span shows, by the ids of its trace and of itself.
func (s *Store) Span(trace, span string) (*api.SpanDetail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.traces.Span(trace, span)
}

// Trace returns the trace with an id, as hexadecimal digits.
func (s *Store) Trace(id string) (*api.Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.traces.WithID(id)
}

// Compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *Store) Compare(key, other string) (c *api.Comparison, ok bool) {
	s.State() // takes over what is new, and which GPUs a run holds
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Runs.Compare(key, other, s.Now())
}

// Settled returns the runs that have settled and whose last numbers have been
// recorded. It computes no State.
func (s *Store) Settled() []runs.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Runs.Settled(s.Now())
}

// SeeHost notes that a client on a host, if one is named, has sent data that the page does
// not read.
func (s *Store) SeeHost(host string) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.arrived = now
	s.all.Hosts.See(host, now)
}

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *fleet.Connection) {
	if !s.Fleet {
		return
	}
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Senders.Connected(from, now)
}

// begin takes the lock and does what is due when data arrives. The caller unlocks.
func (s *Store) begin() (now time.Time) {
	now = s.Now()
	s.mu.Lock()
	s.all.Runs.Record(now)
	s.all.prune(now)
	if now.Sub(s.sampled) >= sampleEvery {
		s.sample(s.all.state(nil, now))
	}
	return now
}

// Run returns the detail of the run with a key.
func (s *Store) Run(key string) (*api.RunDetail, bool) {
	state := s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all.Runs.ByKey[key]
	if r == nil {
		return nil, false
	}
	detail := s.all.detail(r, state, s.Now())
	api.MakeLists(detail)
	return detail, true
}

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
