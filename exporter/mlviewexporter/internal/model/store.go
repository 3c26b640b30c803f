// Package model answers what runs, on which GPUs, and what needs a person. A Store
// passes what is received to the owners of runs, GPUs, services, calls, failures,
// changes and traces, each a package of its own, and takes a State of them for the
// page. They know neither pdata nor HTTP.
//
// It decides nothing that ml_metrics decides: states, bounds, goodput and problems
// are that connector's series. Prompts, completions and arguments of calls are
// held only with Content of the settings, as attributes of spans. Of messages of errors
// the first 200 characters are, or the first 512 with Content.
package model

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/calls"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/history"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/problems"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/traces"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Store is the bounded model of what runs: it takes the lock, passes what is received to
// the owners and assembles the State. It is safe for concurrent use.
type Store struct {
	started time.Time
	// state is the last State.
	state atomic.Pointer[api.State]

	mu sync.Mutex
	input.Bounds
	streams *series.Table
	// The owners hold what the page shows, each its part.
	hosts    *fleet.Hosts
	senders  *fleet.Senders
	runs     *runs.Set
	gpus     *gpus.Set
	models   *serving.Models
	services *serving.Services
	calls    *calls.Ring
	requests *calls.Ring
	failures *failures.Groups
	changes  *changes.Log
	traces   *traces.Set
	problems *problems.Set
	pools    map[poolID]*pool
	// ofHosts has the streams of hosts and of collectors' notices, reported is what
	// components report as missing, overflow is when data was received that stands for what
	// another component had no room for.
	ofHosts  series.Group
	reported []api.Missing
	overflow time.Time
	// arrived is when data of a host, a client or a GPU last came: what ml_metrics
	// computes is no news of them. counted is when one of its counters last grew, on the
	// page of a fleet.
	arrived, counted time.Time
	pruned           time.Time
	// past are the last hour and the last ten minutes of the page as a whole, sampled is
	// when they got their last State.
	past    [2]*history.Set
	sampled time.Time
	// details are those of runs that somebody has asked for since detailsOf was
	// taken.
	details   map[string]*api.RunDetail
	detailsOf *api.State
}

// NewStore returns an empty Store.
func NewStore(settings input.Settings) *Store {
	s := &Store{started: settings.Now(), pools: make(map[poolID]*pool)}
	s.Bounds = input.Bounds{Settings: settings, Texts: kept.NewTexts(settings.Content), Limits: kept.NewCounts()}
	s.streams, s.hosts, s.senders = series.NewTable(), fleet.NewHosts(s.Texts), fleet.NewSenders(s.Texts, s.Limits)
	s.changes, s.gpus, s.services = changes.New(&s.Bounds), gpus.New(&s.Bounds, s.streams), serving.NewServices(&s.Bounds)
	s.models = serving.NewModels(s.streams, s.services)
	s.past, s.sampled = [2]*history.Set{history.New(time.Minute), history.New(10 * time.Second)}, s.started
	s.runs = runs.New(&s.Bounds, s.streams, s.changes, s.gpus)
	s.requests = calls.New(&s.Bounds)
	s.calls, s.failures, s.traces = calls.New(&s.Bounds), failures.New(&s.Bounds), traces.New(&s.Bounds)
	s.problems = problems.New(problems.Subjects{
		Bounds: &s.Bounds, Streams: s.streams, Hosts: s.hosts, Senders: s.senders,
		Runs: s.runs, GPUs: s.gpus, Services: s.services, Failures: s.failures, Changes: s.changes,
	})
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
	s.reported = reported
	state := s.takeState(now)
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
		s.point(&points[i], now)
	}
}

// ApplyUpdates adds values of streams that are known by their Origin. It appends the
// indices of the others to unknown, and returns that: they are to be read as Points.
func (s *Store) ApplyUpdates(updates []series.Update, unknown []int) []int {
	now := s.begin()
	defer s.mu.Unlock()
	for i := range updates {
		if !s.again(&updates[i], now) {
			unknown = append(unknown, i)
		}
	}
	return unknown
}

// ApplySpans adds the spans of one request.
func (s *Store) ApplySpans(spans []input.Span) {
	if len(spans) == 0 {
		return
	}
	now := s.begin()
	defer s.mu.Unlock()
	s.arrived = now
	s.failures.NoteParents(spans)
	s.models.NoteParents(spans)
	var source *input.Source
	var from share.Origin
	noted := false
	for i := range spans {
		if source != spans[i].Source {
			source, noted = spans[i].Source, false
			from = share.OriginOf(source.Sender, source.Service)
		}
		if !noted && !spans[i].Failed {
			s.Limits.Shares.Succeeded(from, now)
			noted = true
		}
		s.span(&spans[i], from, now)
	}
	s.traces.Evict(0)
}

// ApplyEvents adds the log records of one request.
func (s *Store) ApplyEvents(events []input.Event) {
	now := s.begin()
	defer s.mu.Unlock()
	for i := range events {
		s.event(&events[i], now)
	}
}

// SetFailures replaces the groups that repro_gen's directory has. They are shown
// together with the failures that spans report.
func (s *Store) SetFailures(found []api.Failure) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.Set(found, now)
}

// Span returns what an opened span shows, by the ids of its trace and of itself.
func (s *Store) Span(trace, span string) (*api.SpanDetail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces.Span(trace, span)
}

// Trace returns the trace with an id, as hexadecimal digits.
func (s *Store) Trace(id string) (*api.Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces.WithID(id)
}

// ApplySettings adds what the resource of a source says of how its run was started.
func (s *Store) ApplySettings(source *input.Source, all []api.Setting) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs.Of(source.Namespace, source.Service, source.Run, share.OriginOf(source.Sender, source.Service), now); r != nil {
		r.AddSettings(all)
	}
}

// Compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *Store) Compare(key, other string) (c *api.Comparison, ok bool) {
	s.State() // takes over what is new, and which GPUs a run holds
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.Compare(key, other, s.Now())
}

// Settled returns the runs that have settled and whose last numbers have been
// recorded. It computes no State.
func (s *Store) Settled() []runs.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.Settled(s.Now())
}

// SeeHosts notes that clients on hosts have sent data that the page does not read.
func (s *Store) SeeHosts(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = now
	for _, host := range hosts {
		s.hosts.See(host, now)
	}
}

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *fleet.Connection) {
	if !s.Fleet {
		return
	}
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senders.Connected(from, now)
}

// begin takes the lock and does what is due when data arrives. The caller unlocks.
func (s *Store) begin() (now time.Time) {
	now = s.Now()
	s.mu.Lock()
	s.runs.Record(now)
	s.prune(now)
	if now.Sub(s.sampled) >= sampleEvery {
		s.sample(s.takeState(now))
	}
	return now
}

// takeState computes the State. The rows share nothing with the model that
// changes.
func (s *Store) takeState(now time.Time) *api.State {
	s.runs.Record(now)
	s.prune(now)
	s.runs.HoldGPUs(now)
	state := &api.State{Version: api.SchemaVersion, Time: now.UTC(), Collector: s.collector(now)}
	state.GPUs = s.gpus.Rows(s.runs.Holder, now)
	state.Failures = api.Limited(state.Collector.Hidden, "failures", s.failures.Rows("", s.runs.KeyOf, s.services.Simulated, now), failures.MaxFailures)
	state.Collectors = s.senders.Rows(now)
	state.Needs = s.problems.Rows(state, now)
	state.Resolved = s.problems.Resolved(state, now)
	state.Runs = s.runs.Rows(now)
	state.Calls = s.callRows("", now)
	state.Pools = s.poolRows(now)
	state.Models = s.models.Rows(now)
	state.Changes = s.changes.Rows()
	gpus.Count(state)
	simulated := slices.ContainsFunc(state.Runs, func(r api.Run) bool { return r.Simulated })
	state.Collector.Simulated = state.Collector.Simulated || simulated
	state.Missing = s.missing(state, now)
	return state
}

func (s *Store) collector(now time.Time) api.Collector {
	arrived := s.arrived
	if arrived.IsZero() {
		arrived = s.counted // of collectors that do not say when data came
	}
	c := api.Collector{
		Version: s.Version, Started: s.started.UTC(), DataTime: api.TimeOf(arrived),
		Interval: s.Interval.Seconds(), Hosts: len(s.hosts.All),
	}
	c.HostsReporting = len(api.Where(maps.Values(s.hosts.All), func(host *silence.Sender) bool { return !host.Silent(now) }))
	c.HostsWithoutGPU = s.gpus.Without(slices.Sorted(maps.Keys(s.hosts.All)))
	c.Hidden = s.Limits.Hidden()
	if s.JaegerURL != "" {
		c.Links = map[string]string{"jaeger": s.JaegerURL}
	}
	return c
}

// Run returns the detail of the run with a key. It is kept as long as the State and
// must not be changed.
func (s *Store) Run(key string) (*api.RunDetail, bool) {
	state := s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs.ByKey[key]
	if r == nil {
		return nil, false
	}
	if s.detailsOf != state || len(s.details) >= maxDetails {
		s.details, s.detailsOf = make(map[string]*api.RunDetail), state
	}
	if known := s.details[key]; known != nil {
		return known, true
	}
	now := s.Now()
	detail := &api.RunDetail{Run: r.Row(now)}
	detail.Needs = api.Where(slices.Values(state.Needs), func(n api.Need) bool { return n.Run == key })
	detail.Ranks, detail.MissingRanks = r.RankRows()
	detail.Phases = r.Phases(now)
	detail.TimeRatio = r.TimeRatio(now)
	detail.Spent = r.Spent.Row()
	detail.Settings = r.Settings()
	detail.Changes = s.changes.Of(key, r.Service, r.Hosts, r.FirstSeen, r.LastSeen)
	detail.Curves = r.Curves.Rows(now, r.StepsEnd(detail.Run.State))
	detail.Marks = s.changes.MarksOf(key, r.Service, r.Hosts, s.failures.Marks(key))
	detail.Calls = s.callRows(key, now)
	detail.Failures = s.failures.Rows(key, s.runs.KeyOf, s.services.Simulated, now)
	detail.Traces = s.traces.OfRun(key)
	api.MakeLists(detail)
	s.details[key] = detail
	return detail, true
}

// callRows returns the calls and the requests to models of a run, or of all.
func (s *Store) callRows(run string, now time.Time) []api.Call {
	rows := append(s.calls.Rows(run, s.services.CallTimes(now), s.services.Simulated), s.requests.Rows(run, s.services.CallTimes(now), s.services.Simulated)...)
	slices.SortStableFunc(rows, func(a, b api.Call) int { return b.Time.Compare(a.Time) })
	return rows
}

// maxDetails limits the details that are kept for an interval.
const maxDetails = 64

// pruneEvery is the time between two removals of what is gone.
const pruneEvery = time.Minute

// prune removes what has been gone for long.
func (s *Store) prune(now time.Time) {
	if now.Sub(s.pruned) < pruneEvery && !now.Before(s.pruned) {
		return
	}
	s.pruned = now
	history := s.Settings.History
	s.runs.Prune(now)
	s.gpus.Prune(s.problems.Prune(now), now)
	s.models.Prune(history, now)
	for id, p := range s.pools {
		if p.DropGone(s.streams, now); len(p.Streams) == 0 {
			delete(s.pools, id)
		}
	}
	s.services.Prune(s.streams, now)
	s.ofHosts.DropGone(s.streams, now)
	s.hosts.Prune(history, now)
	s.senders.Prune(history, now)
	s.Limits.Prune(now)
	s.changes.Prune(now)
	s.failures.Prune(now)
}
