package model

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Store is the bounded model of what runs. It is safe for concurrent use.
type Store struct {
	settings Settings
	started  time.Time
	// state is the last State.
	state atomic.Pointer[State]

	mu     sync.Mutex
	texts  *texts
	limits *limits
	// received is when anything last came, arrived when it was of a host, a client or a
	// GPU: what ml_metrics computes is no news of them. counted is when one of its
	// counters last grew, on the page of a fleet.
	received, arrived, counted time.Time
	pruned                     time.Time
	hosts                      *hosts

	streams  *streamTable
	runs     *runs
	gpus     *gpus
	models   *models
	services *services
	pools    map[poolID]*pool
	// fullProblems is when nothing could make room for one.
	fullProblems time.Time
	problems     map[*stream]bool
	// details are those of runs that somebody has asked for since detailsOf was
	// taken.
	details   map[string]*RunDetail
	detailsOf *State
	// ofHosts are the streams of hosts.
	ofHosts group
	// senders are those of a fleet, silences the problems that they are silent although
	// somebody worked.
	senders  *senders
	silences map[*sender]*Need

	calls    *callRing
	failures *failureGroups
	changes  *changes
	// records are those of open problems.
	records map[recordID]*Record
	// begun are records whose onset is not noted yet. resolved are the problems that
	// have ended, the newest end last.
	begun    []*Record
	resolved []Need
	traces   *traces
	missing  map[string][]Missing
	// overflow is when data was received that stands for what another component had no
	// room for.
	overflow time.Time
}

// NewStore returns an empty Store.
func NewStore(settings Settings) *Store {
	settings = settings.withDefaults()
	s := &Store{
		settings: settings,
		started:  settings.Now(),
		texts:    &texts{content: settings.Content},
		limits:   newLimits(),
		streams:  newStreamTable(),
		pools:    make(map[poolID]*pool),
		problems: make(map[*stream]bool),
		records:  make(map[recordID]*Record),
		silences: make(map[*sender]*Need),
		missing:  make(map[string][]Missing),
	}
	s.hosts = newHosts(s.texts)
	s.senders = newSenders(s.texts, s.limits, func(one *sender, now time.Time) { s.endSilence(one, mlattr.ProblemNoEvidence, now) })
	s.changes = &changes{fleet: settings.Fleet, texts: s.texts}
	s.gpus = newGPUs(settings, s.texts, s.limits, s.streams)
	s.services = newServices(s.texts, s.limits)
	s.models = newModels(s.texts, s.limits, s.streams, s.services)
	s.runs = newRuns(settings, s.texts, s.limits, s.streams, s.changes, s.gpus)
	s.calls = &callRing{settings: settings, texts: s.texts}
	s.failures = newFailureGroups(settings, s.texts, s.limits)
	s.traces = newTraces(settings, s.texts)
	return s
}

// State returns what the page shows. The State is at most one interval old and
// must not be changed.
func (s *Store) State() *State {
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
func (s *Store) fresh(now time.Time) *State {
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
	return s.limits.hidden()
}

// SetMissing replaces what a component reports as missing.
func (s *Store) SetMissing(component string, missing []Missing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(missing) == 0 {
		delete(s.missing, component)
		return
	}
	if _, known := s.missing[component]; !known && len(s.missing) >= maxComponents {
		return
	}
	s.missing[s.texts.of(component)] = append([]Missing(nil), missing[:min(len(missing), maxNotices)]...)
}

// Limits of SetMissing.
const (
	maxComponents = 64
	maxNotices    = 64
)

// ApplyPoints adds the points of one request.
func (s *Store) ApplyPoints(points []Point) {
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
func (s *Store) ApplyUpdates(updates []Update, unknown []int) []int {
	if len(updates) == 0 {
		return unknown
	}
	now := s.begin()
	defer s.mu.Unlock()
	for i := range updates {
		one := s.streams.ofOrigin(updates[i].Origin)
		// What belongs to a stream may have left meanwhile.
		if one == nil || !one.live(now) {
			unknown = append(unknown, i)
			continue
		}
		if one.host != nil {
			one.host = s.hosts.seeAgain(one.host, one.labels.Host, now)
		}
		if !derived[one.series] {
			s.arrived = now
		}
		if one.sender != nil {
			one.sender = s.senders.seeAgain(one.sender, now)
		}
		if one.overflow {
			s.overflow = now
		}
		if !s.update(one, &updates[i], true, now) {
			continue
		}
		if g, ok := one.owner.(*gpu); ok {
			g.seeAgain(one.series, now)
		}
	}
	return unknown
}

// ApplySpans adds the spans of one request.
func (s *Store) ApplySpans(spans []SpanInput) {
	if len(spans) == 0 {
		return
	}
	now := s.begin()
	defer s.mu.Unlock()
	s.arrived = now
	s.failures.noteParents(spans)
	s.models.noteParents(spans)
	var source *Source
	var from share.Origin
	noted := false
	for i := range spans {
		if source != spans[i].Source {
			source, noted = spans[i].Source, false
			from = share.OriginOf(source.Sender, source.Service)
		}
		if !noted && !spans[i].Failed {
			s.limits.shares.Succeeded(from, now)
			noted = true
		}
		s.span(&spans[i], from, now)
	}
	s.traces.evict(0)
}

// ApplyEvents adds the log records of one request.
func (s *Store) ApplyEvents(events []Event) {
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
func (s *Store) SetFailures(found []Failure) {
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.set(found, now)
}

// Trace returns the trace with an id, as hexadecimal digits.
func (s *Store) Trace(id string) (*Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces.withID(id)
}

// ApplyFacts takes over the settings of runs.
func (s *Store) ApplyFacts(all []RunFacts) {
	if len(all) == 0 {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		if r := s.runs.of(all[i].Namespace, all[i].Service, all[i].Run, share.OriginOf(0, all[i].Service), now); r != nil {
			r.addSettings(all[i].Settings)
		}
	}
}

// Compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *Store) Compare(key, other string) (c *Comparison, ok bool) {
	s.State() // takes over what is new, and which GPUs a run holds
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.compare(key, other, s.settings.Now())
}

// Settled returns the runs that have settled and whose last numbers have been
// recorded. It computes no State.
func (s *Store) Settled() []Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs.settled(s.settings.Now())
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
		s.hosts.see(host, now)
	}
}

// Fleet reports whether all data comes from other collectors.
func (s *Store) Fleet() bool { return s.settings.Fleet }

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *Connection) {
	if !s.settings.Fleet {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senders.connected(from, now)
}

// begin takes the lock and does what is due when data arrives. The caller unlocks.
func (s *Store) begin() (now time.Time) {
	now = s.settings.Now()
	s.mu.Lock()
	s.runs.record(now)
	s.prune(now)
	s.received = now
	return now
}

// tell notes when a run or a host has last sent anything, as ml_metrics says.
func (s *Store) tell(one *stream, now time.Time) {
	at, ok := unix(one.value)
	if !ok {
		return
	}
	if at.After(now) {
		at = now
	}
	if at.After(s.arrived) {
		s.arrived = at
	}
	if host := s.hosts.of(one.labels.Host); one.series == HostLastData && host != nil {
		host.Hear(at)
	}
}

// point adds a point to its stream.
func (s *Store) point(p *Point, now time.Time) {
	var host *silence.Sender
	if !derived[p.Series] {
		host, s.arrived = s.hosts.see(p.Labels.Host, now), now
	}
	if p.Overflow {
		s.overflow = now
	}
	key := streamKey{p.Series, p.Labels}
	var from *sender
	if s.settings.Fleet {
		from = s.senders.see(&p.From, now)
	}
	if from != nil && !p.Series.OfHardware() {
		key.labels.Collector = from.id // a GPU is one, whoever sends it
	}
	one := s.streams.find(&key)
	if one == nil {
		if p.Gone {
			return
		}
		if one = s.newStream(key, p, now); one == nil {
			return
		}
	}
	s.streams.setOrigin(one, p.Origin)
	one.host, one.sender, one.overflow, one.simulated = host, from, p.Overflow, p.Simulated
	u := p.update()
	if !s.update(one, &u, false, now) {
		return
	}
	if p.Simulated {
		s.services.seeSimulated(one.labels.Service)
	}
	if g, ok := one.owner.(*gpu); ok {
		s.gpus.see(g, p, now)
	}
}

// update gives a stream a new value, and reports whether there is one. again reports
// whether everything else of the point is as before.
func (s *Store) update(one *stream, u *Update, again bool, now time.Time) bool {
	ok, changed := one.update(u, now)
	if !ok {
		return false
	}
	switch {
	case one.series == Problem && changed:
		s.noteProblem(one)
	case one.series == HostLastData || one.series == RunLastData:
		s.tell(one, now)
	case changed && definitions[one.series].kind == counter && s.settings.Fleet:
		s.counted = now
	}
	if one.run != nil {
		one.run.updated(one, !again || changed, now)
	}
	return true
}

// newStream returns a new stream and adds it to what it belongs to, or nil if
// that is beyond a limit.
func (s *Store) newStream(key streamKey, p *Point, now time.Time) *stream {
	if s.streams.n >= maxStreams && !s.runs.replaceStreams(&p.Labels, now) {
		s.limits.drop("streams")
		return nil
	}
	key.labels.keep(s.texts)
	if known := s.streams.find(&key); known != nil {
		return known // its labels are longer than what is kept of them
	}
	one := newStream(key)
	if !s.attach(one, p, now) {
		return nil
	}
	s.streams.add(one)
	return one
}

// attach adds a stream to what it belongs to, and reports whether there is room.
func (s *Store) attach(one *stream, p *Point, now time.Time) bool {
	l := &one.labels
	subject := definitions[one.series].subject
	from := share.OriginOf(p.Sender, l.Service)
	if l.Run != "" && (subject == ofRun || subject == ofModel || one.series == Errors) {
		if r := s.runs.of(l.Namespace, l.Service, l.Run, from, now); r != nil {
			if !r.attach(one) {
				s.limits.drop("series of one run")
				return false
			}
			one.run = r
		}
	}
	add := func(to *group, limit int, of string) bool {
		if to.add(one, limit) {
			return true
		}
		s.limits.drop(of)
		return false
	}
	switch subject {
	case ofRun:
		return one.run != nil
	case ofModel:
		if one.trains() {
			return one.run != nil
		}
		if m := s.models.of(modelIDOf(one), now); m != nil && add(&m.group, maxStreamsOfModel, "series of one model") {
			one.owner = m
		}
		return one.owner != nil || one.run != nil
	case ofService:
		if of := s.services.of(l.Namespace, l.Service, from, now); of != nil && add(&of.group, maxStreamsOfService, "series of one service") {
			one.owner = of
		}
		return one.owner != nil || one.run != nil
	case ofPool:
		pool := s.poolOf(one, now)
		if pool == nil || !add(&pool.group, maxStreamsOfPool, "series of one pool") {
			return false
		}
		one.owner = pool
	case ofProblem:
		if len(s.problems) >= maxProblems && !s.replaceProblem(one, now) {
			s.limits.drop("problems")
			return false
		}
		s.problems[one] = true
	case ofGPU:
		g := s.gpus.of(p, now)
		if g == nil || !add(&g.group, maxStreamsOfGPU, "series of one GPU") {
			return false
		}
		one.owner = g
	case ofHost, ofCollector:
		return add(&s.ofHosts, maxStreamsOfHosts, "series of hosts")
	}
	return true
}
