// Package serving finds problems of services, models and agents in what their
// spans say: requests that fail or are slow, retries, tools, answers, caches and
// the cost of tasks. It knows no telemetry format, and its memory is bounded.
package serving

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxServices limits the services that are remembered, maxParts the models
	// and tools of all services together, and maxOfService those of one.
	maxServices, maxParts, maxOfService = 1024, 2048, 32
	// maxName limits the length in bytes of the name of a model or tool.
	maxName = 128
)

// ToModels is the Service.FailingOf of requests to models.
const ToModels = "requests to models"

// FailingRule is that of a page.
var FailingRule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5, Alone: 0.5, AloneCount: 3}

// Service has what is known of one service.
type Service struct {
	Versions Versions
	// Requests is which of those to models have failed. Agents has the requests to agents,
	// which also fail if a tool does, and Calls those of functions and operations, with their
	// times relative to what is typical of the function, so that all together are enough.
	Requests      shift.Proportion
	Agents, Calls Outcomes
	Models        map[string]*Model
	Tools         map[string]*ToolCalls
	Retries       Retries
	Repeats       Repeats
	Tokens, Costs shift.Level
	Counted       Share
	Newest        time.Time
	Resource      streams.Resource
	// tasks is the number of its tasks that are watched, and settled reports whether it had
	// not expired at the latest Settle.
	tasks   int
	settled bool
	// Looping is a task that loops, the one that has for the longest time.
	Looping *Task
	// Failing is what FailingOf says of the kind of requests of which more fail, at the
	// latest emission.
	Failing   shift.Proportions
	FailingOf string
}

// ToolCalls has the outcomes of a tool's calls, and how long those that the service was
// asked for typically took.
type ToolCalls struct {
	Outcomes shift.Proportion
	typical  typical
	newest   time.Time
}

// Fleet has what is known of all services. It is safe for concurrent use.
type Fleet struct {
	mu       sync.Mutex
	services map[streams.Resource]*Service
	tasks    map[taskKey]*Task
	// parts is the number of models and tools.
	parts int
	// newest is the service of the newest span, and latest the task of latestKey, that of the
	// newest span of a task: the spans of one come together.
	newest    *Service
	latest    *Task
	latestKey taskKey
}

type taskKey struct {
	trace   [16]byte
	service *Service
}

// NewFleet returns an empty Fleet.
func NewFleet() *Fleet {
	return &Fleet{services: make(map[streams.Resource]*Service), tasks: make(map[taskKey]*Task)}
}

// Observe adds spans of services, which arrived at now. Without any, it waits for nobody:
// most requests of a training have none.
func (f *Fleet) Observe(spans []Span, now time.Time) {
	if len(spans) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range spans {
		f.observe(&spans[i], now)
	}
}

// observe adds a span of a service.
func (f *Fleet) observe(s *Span, now time.Time) {
	service := f.service(s.Resource)
	if service == nil {
		return
	}
	service.Newest = now
	version := service.Versions.index(s.Version, now)
	if s.is(Request) {
		service.Requests.Add(now, s.is(Failed), version)
		if m := part(f, service.Models, s.Model); m != nil {
			m.add(now, s, version)
		}
	}
	if s.is(Agent) {
		service.Agents.Failures.Add(now, s.is(Failed), version)
		if s.Seconds > 0 && !s.is(Failed) {
			service.Agents.took(now, s.Trace, observed(math.Log(s.Seconds), version))
		}
	}
	if s.is(Tool) {
		if t := part(f, service.Tools, s.Tool); t != nil {
			t.newest = now
			t.Outcomes.Add(now, s.is(Failed), version)
			if s.is(Call) && !s.is(Failed) && s.Seconds > 0 {
				if value, ok := t.typical.relative(math.Log(s.Seconds)); ok {
					service.Calls.took(now, s.Trace, observed(value, version))
				}
			}
		}
	}
	if s.is(Call) {
		service.Calls.Failures.Add(now, s.is(Failed), version)
	}
	if s.Kind&(Request|Tool|Resent) != 0 {
		service.Retries.add(now, s, version)
	}
	f.observeTask(service, s, now)
}

// observeTask adds a span to the task that its trace is.
func (f *Fleet) observeTask(service *Service, s *Span, now time.Time) {
	if s.Trace == [16]byte{} {
		return
	}
	key := taskKey{s.Trace, service}
	if f.latestKey != key {
		f.latest, f.latestKey = f.tasks[key], key
	}
	if f.latest == nil {
		if s.Kind&(Request|Tool|Step) == 0 || len(f.tasks) >= maxTasks || service.tasks >= maxTasksOfService {
			return
		}
		f.latest = new(Task)
		f.tasks[key] = f.latest
		service.tasks++
	}
	f.latest.add(now, s, service)
}

// service returns a service, or nil beyond the limit.
func (f *Fleet) service(resource streams.Resource) *Service {
	if f.newest != nil && f.newest.Resource == resource {
		return f.newest
	}
	known := f.services[resource]
	if known == nil && len(f.services) < maxServices {
		known = &Service{Resource: resource.Clone(), Models: make(map[string]*Model), Tools: make(map[string]*ToolCalls)}
		f.services[known.Resource] = known
	}
	f.newest = known
	return known
}

// part returns a model or tool of a service, or nil beyond a limit.
func part[P any](f *Fleet, all map[string]*P, name string) *P {
	one := all[name]
	if one == nil && len(name) <= maxName && len(all) < maxOfService && f.parts < maxParts {
		f.parts++
		one = new(P)
		all[strings.Clone(name)] = one
	}
	return one
}

// Newest returns when the newest span of a service arrived, zero if it is not
// remembered.
func (f *Fleet) Newest(resource streams.Resource) (newest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.services[resource]; s != nil {
		newest = s.Newest
	}
	return newest
}

// Settle forgets services and ends tasks, and adds the error ratios of all services to
// the store. A service without spans for longer than expiration has none, and no problems;
// 0 is forever.
func (f *Fleet) Settle(store *streams.Store, expiration time.Duration, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(now, expiration)
	f.endTasks(now)
	for _, s := range f.services {
		if s.settled = expiration <= 0 || now.Sub(s.Newest) <= expiration; !s.settled {
			continue
		}
		s.fail(now)
		to := streams.Batch{Source: streams.Source{Resource: s.Resource}, Now: now}
		if s.Failing.Recent >= 0 {
			to.Value(series.RequestErrorRatio, s.Failing.Recent, mlattr.WindowRecent)
		}
		if s.Failing.Usual >= 0 {
			to.Value(series.RequestErrorRatio, s.Failing.Usual, mlattr.WindowUsual)
		}
		store.Apply(to.Updates, now)
	}
}

// fail determines of which kind of requests more fail.
func (s *Service) fail(now time.Time) {
	s.FailingOf = ""
	for _, kind := range [...]struct {
		name string
		of   *shift.Proportion
	}{{ToModels, &s.Requests}, {"requests to agents", &s.Agents.Failures}, {"calls", &s.Calls.Failures}} {
		found := kind.of.Find(now, &FailingRule)
		if s.FailingOf == "" || found.Shifted == s.Failing.Shifted && found.Recent > s.Failing.Recent || found.Shifted && !s.Failing.Shifted {
			s.FailingOf, s.Failing = kind.name, found
		}
	}
}

// Each passes the services of the latest Settle to of, while none of them changes.
func (f *Fleet) Each(of func(*Service)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.services {
		if s.settled {
			of(s)
		}
	}
}

// forget removes what was not seen for a day, so that the next morning is compared
// with this one, or at a limit for expiration, unless that is 0.
func (f *Fleet) forget(now time.Time, expiration time.Duration) {
	memory := 24 * time.Hour
	if (len(f.services) >= maxServices || f.parts >= maxParts) && expiration > 0 {
		memory = min(memory, expiration)
	}
	f.newest = nil
	for resource, s := range f.services {
		known := len(s.Models) + len(s.Tools)
		maps.DeleteFunc(s.Models, func(_ string, m *Model) bool { return now.Sub(m.Newest) > memory })
		maps.DeleteFunc(s.Tools, func(_ string, t *ToolCalls) bool { return now.Sub(t.newest) > memory })
		f.parts -= known - len(s.Models) - len(s.Tools)
		if now.Sub(s.Newest) > memory {
			f.parts -= len(s.Models) + len(s.Tools)
			delete(f.services, resource)
		}
	}
}

// endTasks ends the tasks of which nothing more is expected, in the order in which they
// began, so that what they show does not depend on that of a map.
func (f *Fleet) endTasks(now time.Time) {
	f.latest, f.latestKey = nil, taskKey{}
	for _, s := range f.services {
		s.Looping = nil
	}
	var ended []taskKey
	for key, t := range f.tasks {
		switch of := key.service; {
		case t.ended(now):
			ended = append(ended, key)
		case t.looping && (of.Looping == nil || cmp.Or(t.LoopingSince.Compare(of.Looping.LoopingSince), cmp.Compare(of.Looping.Most, t.Most), cmp.Compare(t.Repeated, of.Looping.Repeated)) < 0):
			of.Looping = t
		}
	}
	slices.SortFunc(ended, func(a, b taskKey) int {
		return cmp.Or(f.tasks[a].began.Compare(f.tasks[b].began), bytes.Compare(a.trace[:], b.trace[:]))
	})
	for _, key := range ended {
		key.service.end(now, f.tasks[key])
		key.service.tasks--
		delete(f.tasks, key)
	}
}

// Kind is a set of what a span may count as.
type Kind uint16

const (
	// Request is a request to a model that no other span counts.
	Request Kind = 1 << iota
	// Agent is a request to an agent.
	Agent
	// Tool is a call of a tool.
	Tool
	// Call is a call of a function or an operation, which the service was asked
	// for.
	Call
	// Step is a step of an agent.
	Step
	// Root is the outermost span of a trace.
	Root
	// Failed is a span that failed.
	Failed
	// Resent is a request that was sent before.
	Resent
	// Finished is an answer whose finish reason is known.
	Finished
	// Cut is an answer that was cut at a limit of tokens.
	Cut
	// Filtered is an answer that was withheld or refused.
	Filtered
)

// Span is what a span says about its service. Its texts are not kept unless they
// are cloned. A negative count or a NaN is unknown.
type Span struct {
	// Resource is the service.
	Resource streams.Resource
	Kind     Kind
	// Version is that of the service.
	Version string
	// Trace and Parent are those of the span, zero where there is none.
	Trace  [16]byte
	Parent [8]byte
	// Operation and Role are those of a request or step.
	Operation, Role string
	// Model is the requested model, Answered the one that answered.
	Model, Answered string
	// Tool is the name of a tool, Arguments a hash of what it was called with, 0
	// if that is unknown.
	Tool      string
	Arguments uint64
	// RequestID identifies a request, or is "".
	RequestID string
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	Times
	Tokens
	// Dimensions are those of an embedding.
	Dimensions int64
	// Cost is in US dollars.
	Cost float64
}

// Times are the seconds of a span as its producer measured them: the whole duration, until
// the first token, and of waiting.
type Times struct{ Seconds, FirstToken, Queued float64 }

// Tokens are those of a request. Cached are among Input.
type Tokens struct{ Input, Output, Cached int64 }

// Unknown is a Span of which nothing is known.
var Unknown = Span{
	Times: Times{math.NaN(), math.NaN(), math.NaN()}, Tokens: Tokens{-1, -1, -1}, Cost: math.NaN(),
}

// is reports whether a span counts as all of a set.
func (s *Span) is(all Kind) bool { return s.Kind&all == all }

// Versions has the newest versions of a service. Index 0 is for none.
type Versions struct {
	names [shift.Versions]string
	seen  [shift.Versions]time.Time
}

// index returns that of a version. Beyond the limit the version that was seen
// longest ago is forgotten.
func (v *Versions) index(name string, now time.Time) uint8 {
	if name == "" {
		return 0
	}
	at := slices.Index(v.names[:], name)
	if at < 0 {
		at = 1 + slices.Index(v.seen[1:], slices.MinFunc(v.seen[1:], time.Time.Compare))
		v.names[at] = strings.Clone(name)
	}
	v.seen[at] = now
	return uint8(at) // #nosec G115 -- below shift.Versions
}

// Name returns a version as evidence names it.
func (v *Versions) Name(index int) string {
	if v.names[index] == "" {
		return "no version"
	}
	return "version " + v.names[index]
}
