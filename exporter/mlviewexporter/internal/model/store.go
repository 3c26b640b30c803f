package model

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/calls"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/limits"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/traces"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Store is the bounded model of what runs. It is safe for concurrent use.
type Store struct {
	settings input.Settings
	started  time.Time
	// state is the last State.
	state atomic.Pointer[api.State]

	mu     sync.Mutex
	texts  *kept.Texts
	limits *limits.Counts
	// arrived is when data of a host, a client or a GPU last came: what ml_metrics
	// computes is no news of them. counted is when one of its
	// counters last grew, on the page of a fleet.
	arrived, counted time.Time
	pruned           time.Time
	hosts            *fleet.Hosts

	streams  *series.Table
	runs     *runs.Set
	gpus     *gpus.Set
	models   *serving.Models
	services *serving.Services
	pools    map[poolID]*pool
	// fullProblems is when nothing could make room for one.
	fullProblems time.Time
	problems     map[*series.Stream]bool
	// details are those of runs that somebody has asked for since detailsOf was
	// taken.
	details   map[string]*api.RunDetail
	detailsOf *api.State
	// ofHosts are the streams of hosts.
	ofHosts series.Group
	// senders are those of a fleet, silences the problems that they are silent although
	// somebody worked.
	senders  *fleet.Senders
	silences map[*fleet.Sender]*api.Need

	calls    *calls.Ring
	failures *failures.Groups
	changes  *changes.Log
	// records are those of open problems.
	records map[recordID]*record
	// begun are records whose onset is not noted yet. resolved are the problems that
	// have ended, the newest end last.
	begun    []*record
	resolved []api.Need
	traces   *traces.Set
	missing  map[string][]api.Missing
	// overflow is when data was received that stands for what another component had no
	// room for.
	overflow time.Time
}

// NewStore returns an empty Store.
func NewStore(settings input.Settings) *Store {
	settings = settings.WithDefaults()
	s := &Store{
		settings: settings,
		started:  settings.Now(),
		texts:    kept.NewTexts(settings.Content),
		limits:   limits.New(),
		streams:  series.NewTable(),
		pools:    make(map[poolID]*pool),
		problems: make(map[*series.Stream]bool),
		records:  make(map[recordID]*record),
		silences: make(map[*fleet.Sender]*api.Need),
		missing:  make(map[string][]api.Missing),
	}
	s.hosts = fleet.NewHosts(s.texts)
	s.senders = fleet.NewSenders(s.texts, s.limits, func(one *fleet.Sender, now time.Time) { s.endSilence(one, mlattr.ProblemNoEvidence, now) })
	s.changes = changes.New(settings, s.texts)
	s.gpus = gpus.New(settings, s.texts, s.limits, s.streams)
	s.services = serving.NewServices(s.texts, s.limits)
	s.models = serving.NewModels(s.texts, s.limits, s.streams, s.services)
	s.runs = runs.New(settings, s.texts, s.limits, s.streams, s.changes, s.gpus)
	s.calls = calls.New(settings, s.texts)
	s.failures = failures.New(settings, s.texts, s.limits)
	s.traces = traces.New(settings, s.texts)
	return s
}

// State returns what the page shows. The State is at most one interval old and
// must not be changed.
func (s *Store) State() *api.State {
	now := s.settings.Now()
	if state := s.fresh(now); state != nil {
		return state
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.settings.Now()
	if state := s.fresh(now); state != nil {
		return state
	}
	state := s.takeState(now)
	state.MakeLists()
	s.state.Store(state)
	return state
}

// fresh returns the last State, and nil if it is old. Who asks once an interval gets
// another one each time, also if a request comes a little early.
func (s *Store) fresh(now time.Time) *api.State {
	state := s.state.Load()
	if state == nil || now.Before(state.Time) || now.Sub(state.Time) >= s.settings.Interval-s.settings.Interval/8 {
		return nil
	}
	return state
}

// Hidden returns the number of rows beyond the limit of each list, without those of
// State that are left out for their number. It computes no State.
func (s *Store) Hidden() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.Hidden()
}

// SetMissing replaces what a component reports as missing.
func (s *Store) SetMissing(component string, missing []api.Missing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(missing) == 0 {
		delete(s.missing, component)
		return
	}
	if _, known := s.missing[component]; !known && len(s.missing) >= maxComponents {
		return
	}
	s.missing[s.texts.Of(component)] = append([]api.Missing(nil), missing[:min(len(missing), maxNotices)]...)
}

// Limits of SetMissing.
const (
	maxComponents = 64
	maxNotices    = 64
)

// ApplyPoints adds the points of one request.
func (s *Store) ApplyPoints(points []series.Point) {
	if len(points) == 0 {
		return
	}
	now := s.begin()
	defer s.mu.Unlock()
	for i := range points {
		s.point(&points[i], now)
	}
}

// ApplyUpdates adds values of streams that are known by their Origin. It appends the
// indices of the others to unknown, and returns that: they are to be read as Points.
func (s *Store) ApplyUpdates(updates []series.Update, unknown []int) []int {
	if len(updates) == 0 {
		return unknown
	}
	now := s.begin()
	defer s.mu.Unlock()
	for i := range updates {
		one := s.streams.OfOrigin(updates[i].Origin)
		// What belongs to a stream may have left meanwhile.
		if one == nil || !one.Live(now) {
			unknown = append(unknown, i)
			continue
		}
		if one.Host != nil {
			one.Host = s.hosts.SeeAgain(one.Host, one.Labels.Host, now)
		}
		if !one.Series.Derived() {
			s.arrived = now
		}
		if one.Sender != nil {
			one.Sender = s.senders.SeeAgain(one.Sender, now)
		}
		if one.Overflow {
			s.overflow = now
		}
		if !s.update(one, &updates[i], true, now) {
			continue
		}
		if g, ok := one.Owner.(*gpus.GPU); ok {
			g.SeeAgain(one.Series, now)
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
			s.limits.Shares.Succeeded(from, now)
			noted = true
		}
		s.span(&spans[i], from, now)
	}
	s.traces.Evict(0)
}

// ApplyEvents adds the log records of one request.
func (s *Store) ApplyEvents(events []input.Event) {
	if len(events) == 0 {
		return
	}
	now := s.begin()
	defer s.mu.Unlock()
	for i := range events {
		s.event(&events[i], now)
	}
	s.noteOnsets(now)
}

// SetFailures replaces the groups that repro_gen's directory has. They are shown
// together with the failures that spans report.
func (s *Store) SetFailures(found []api.Failure) {
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.Set(found, now)
}

// Trace returns the trace with an id, as hexadecimal digits.
func (s *Store) Trace(id string) (*api.Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces.WithID(id)
}

// ApplyFacts takes over the settings of runs.
func (s *Store) ApplyFacts(all []input.RunFacts) {
	if len(all) == 0 {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		if r := s.runs.Of(all[i].Namespace, all[i].Service, all[i].Run, share.OriginOf(0, all[i].Service), now); r != nil {
			r.AddSettings(all[i].Settings)
		}
	}
}

// Compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *Store) Compare(key, other string) (c *api.Comparison, ok bool) {
	s.State() // takes over what is new, and which GPUs a run holds
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.Compare(key, other, s.settings.Now())
}

// Settled returns the runs that have settled and whose last numbers have been
// recorded. It computes no State.
func (s *Store) Settled() []runs.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.Settled(s.settings.Now())
}

// SeeHosts notes that clients on hosts have sent data that the page does not read.
func (s *Store) SeeHosts(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = now
	for _, host := range hosts {
		s.hosts.See(host, now)
	}
}

// Fleet reports whether all data comes from other collectors.
func (s *Store) Fleet() bool { return s.settings.Fleet }

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *fleet.Connection) {
	if !s.settings.Fleet {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senders.Connected(from, now)
}

// begin takes the lock and does what is due when data arrives. The caller unlocks.
func (s *Store) begin() (now time.Time) {
	now = s.settings.Now()
	s.mu.Lock()
	s.runs.Record(now)
	s.prune(now)
	return now
}

// tell notes when a run or a host has last sent anything, as ml_metrics says.
func (s *Store) tell(one *series.Stream, now time.Time) {
	at, ok := series.Unix(one.Value)
	if !ok {
		return
	}
	if at.After(now) {
		at = now
	}
	if at.After(s.arrived) {
		s.arrived = at
	}
	if r, ok := one.Run.(*runs.Run); ok {
		r.News.Hear(at)
	} else if host := s.hosts.Of(one.Labels.Host); host != nil {
		host.Hear(at)
	}
}

// point adds a point to its stream.
func (s *Store) point(p *series.Point, now time.Time) {
	var host *silence.Sender
	if !p.Series.Derived() {
		host, s.arrived = s.hosts.See(p.Labels.Host, now), now
	}
	if p.Overflow {
		s.overflow = now
	}
	key := series.Key{Series: p.Series, Labels: p.Labels}
	var from *fleet.Sender
	if s.settings.Fleet {
		from = s.senders.See(&p.From, now)
	}
	if from != nil && !p.Series.OfHardware() {
		key.Labels.Collector = from.ID // a GPU is one, whoever sends it
	}
	one := s.streams.Find(&key)
	if one == nil {
		if p.Gone {
			return
		}
		if one = s.newStream(key, p, now); one == nil {
			return
		}
	}
	s.streams.SetOrigin(one, p.Origin)
	one.Host, one.Sender, one.Overflow, one.Simulated = host, from, p.Overflow, p.Simulated
	u := p.Update()
	if !s.update(one, &u, false, now) {
		return
	}
	if p.Simulated {
		s.services.SeeSimulated(one.Labels.Service)
	}
	if g, ok := one.Owner.(*gpus.GPU); ok {
		s.gpus.See(g, p, now)
	}
}

// update gives a stream a new value, and reports whether there is one. again reports
// whether everything else of the point is as before.
func (s *Store) update(one *series.Stream, u *series.Update, again bool, now time.Time) bool {
	ok, changed := one.Update(u, now)
	if !ok {
		return false
	}
	switch {
	case one.Series == series.Problem && changed:
		s.noteProblem(one)
	case one.Series == series.HostLastData || one.Series == series.RunLastData:
		s.tell(one, now)
	case changed && one.Series.Counts() && s.settings.Fleet:
		s.counted = now
	}
	if one.Run != nil {
		one.Run.Updated(one, !again || changed, now)
	}
	return true
}

// newStream returns a new stream and adds it to what it belongs to, or nil if
// that is beyond a limit.
func (s *Store) newStream(key series.Key, p *series.Point, now time.Time) *series.Stream {
	if s.streams.N >= series.MaxStreams && !s.runs.ReplaceStreams(&p.Labels, now) {
		s.limits.Drop("streams")
		return nil
	}
	key.Labels.Keep(s.texts)
	if known := s.streams.Find(&key); known != nil {
		return known // its labels are longer than what is kept of them
	}
	one := series.New(key)
	if !s.attach(one, p, now) {
		return nil
	}
	s.streams.Add(one)
	return one
}

// attach adds a stream to what it belongs to, and reports whether there is room.
func (s *Store) attach(one *series.Stream, p *series.Point, now time.Time) bool {
	l := &one.Labels
	subject := one.Series.Subject()
	from := share.OriginOf(p.Sender, l.Service)
	if l.Run != "" && (subject == series.OfRun || subject == series.OfModel || one.Series == series.Errors) {
		if r := s.runs.Of(l.Namespace, l.Service, l.Run, from, now); r != nil {
			if !r.Attach(one) {
				s.limits.Drop("series of one run")
				return false
			}
			one.Run = r
		}
	}
	add := func(to *series.Group, limit int, of string) bool {
		if to.Add(one, limit) {
			return true
		}
		s.limits.Drop(of)
		return false
	}
	switch subject {
	case series.OfRun:
		return one.Run != nil
	case series.OfModel:
		if serving.Trains(one) {
			return one.Run != nil
		}
		if m := s.models.Of(serving.ModelIDOf(one), now); m != nil && add(&m.Group, serving.MaxStreamsOfModel, "series of one model") {
			one.Owner = m
		}
		return one.Owner != nil || one.Run != nil
	case series.OfService:
		if of := s.services.Of(l.Namespace, l.Service, from, now); of != nil && add(&of.Group, serving.MaxStreamsOfService, "series of one service") {
			one.Owner = of
		}
		return one.Owner != nil || one.Run != nil
	case series.OfPool:
		pool := s.poolOf(one, now)
		if pool == nil || !add(&pool.Group, maxStreamsOfPool, "series of one pool") {
			return false
		}
		one.Owner = pool
	case series.OfProblem:
		if len(s.problems) >= maxProblems && !s.replaceProblem(one, now) {
			s.limits.Drop("problems")
			return false
		}
		s.problems[one] = true
	case series.OfGPU:
		g := s.gpus.Of(p, now)
		if g == nil || !add(&g.Group, gpus.MaxStreamsOfGPU, "series of one GPU") {
			return false
		}
		one.Owner = g
	case series.OfHost, series.OfCollector:
		return add(&s.ofHosts, maxStreamsOfHosts, "series of hosts")
	}
	return true
}

// Limits of the problems, of those that are shown, and of those that have ended.
const (
	maxProblems = 2000
	maxNeeds    = 500
	maxResolved = 200
)
