package serving

import (
	"math"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

const (
	// maxServices limits the services that are remembered, maxParts the models
	// and tools of all services together, and maxOfService those of one.
	maxServices, maxParts, maxOfService = 1024, 2048, 32
	// maxName limits the length in bytes of the name of a model or tool.
	maxName = 128
)

// Rules of proportions.
var (
	failingRule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5, Alone: 0.5, AloneCount: 3}
	// toolRule needs a usual proportion: many tools fail often.
	toolRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 5}
)

// Service has what is known of one service.
type Service struct {
	versions versions
	// requests are those to models, agents those to agents, which also fail if a
	// tool does, and calls those of functions and operations.
	requests, agents, calls shift.Proportion
	agentTimes              shift.Level
	// callTimes are those of calls, relative to what is typical of the function, so
	// that all functions together are enough.
	callTimes     shift.Level
	models        map[string]*model
	tools         map[string]*tool
	retries       retries
	repeats       repeats
	tokens, costs shift.Level
	counted       share
	newest        time.Time
	resource      streams.Resource
	// tasks is the number of its tasks that are watched.
	tasks int
	// looping is a task that loops, the one that has for the longest time.
	looping *task
}

// tool has the outcomes of a tool's calls, and how long those that the service was
// asked for typically took.
type tool struct {
	outcomes shift.Proportion
	typical  typical
	newest   time.Time
}

// Fleet has what is known of all services. It is not safe for concurrent use.
type Fleet struct {
	services map[streams.Resource]*Service
	tasks    map[taskKey]*task
	// parts is the number of models and tools.
	parts int
	// newest is the service of the newest span. latest is what tasks had by latestKey, the
	// key of the newest span, since the spans of a task come together.
	newest    *Service
	latest    *task
	latestKey taskKey
}

type taskKey struct {
	trace   [16]byte
	service *Service
}

// NewFleet returns an empty Fleet.
func NewFleet() *Fleet {
	return &Fleet{services: make(map[streams.Resource]*Service), tasks: make(map[taskKey]*task)}
}

// Observe adds a span of a service, which arrived at now.
func (f *Fleet) Observe(resource streams.Resource, s *Span, now time.Time) {
	service := f.service(resource)
	if service == nil {
		return
	}
	service.newest = now
	version := service.versions.index(s.Version, now)
	if s.is(Request) {
		service.requests.Add(now, s.is(Failed), version)
		if m := f.model(service, s.Model, now); m != nil {
			m.add(now, s, version)
		}
	}
	if s.is(Agent) {
		service.agents.Add(now, s.is(Failed), version)
		if s.Seconds > 0 && !s.is(Failed) {
			service.agentTimes.Add(now, shift.Observation{Value: math.Log(s.Seconds), Work: noWork, Version: version}, &slowRule)
		}
	}
	if s.is(Tool) {
		if t := f.tool(service, s.Tool, now); t != nil {
			t.outcomes.Add(now, s.is(Failed), version)
			if s.is(Call) && !s.is(Failed) && s.Seconds > 0 {
				if value, ok := t.typical.relative(math.Log(s.Seconds)); ok {
					service.callTimes.Add(now, shift.Observation{Value: value, Work: noWork, Version: version}, &slowRule)
				}
			}
		}
	}
	if s.is(Call) {
		service.calls.Add(now, s.is(Failed), version)
	}
	if s.Kind&(Request|Tool|Resent) != 0 {
		service.retries.add(now, s, version)
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
		f.latest = new(task)
		f.tasks[key] = f.latest
		service.tasks++
	}
	f.latest.add(now, s, service)
}

// service returns a service, or nil beyond the limit.
func (f *Fleet) service(resource streams.Resource) *Service {
	if f.newest != nil && f.newest.resource == resource {
		return f.newest
	}
	known := f.services[resource]
	if known == nil {
		if len(f.services) >= maxServices {
			return nil
		}
		known = &Service{resource: resource.Clone(), models: make(map[string]*model), tools: make(map[string]*tool)}
		f.services[known.resource] = known
	}
	f.newest = known
	return known
}

// model returns a model of a service, or nil beyond a limit.
func (f *Fleet) model(s *Service, name string, now time.Time) *model {
	m := s.models[name]
	if m == nil && len(name) <= maxName && f.admit(len(s.models)) {
		m = new(model)
		s.models[strings.Clone(name)] = m
	}
	if m != nil {
		m.newest = now
	}
	return m
}

// tool returns a tool of a service, or nil beyond a limit.
func (f *Fleet) tool(s *Service, name string, now time.Time) *tool {
	t := s.tools[name]
	if t == nil && len(name) <= maxName && f.admit(len(s.tools)) {
		t = new(tool)
		s.tools[strings.Clone(name)] = t
	}
	if t != nil {
		t.newest = now
	}
	return t
}

func (f *Fleet) admit(ofService int) bool {
	if ofService >= maxOfService || f.parts >= maxParts {
		return false
	}
	f.parts++
	return true
}

// Newest returns when the newest span of a service arrived, zero if it is not
// remembered.
func (f *Fleet) Newest(resource streams.Resource) (newest time.Time) {
	if s := f.services[resource]; s != nil {
		newest = s.newest
	}
	return newest
}

// Services returns the number of services that are remembered, at most 1024.
func (f *Fleet) Services() int { return len(f.services) }

// forget removes what was not seen for a day, so that the next morning is compared
// with this one, or at a limit for expiration, unless that is 0.
func (f *Fleet) forget(now time.Time, expiration time.Duration) {
	memory := 24 * time.Hour
	if (len(f.services) >= maxServices || f.parts >= maxParts) && expiration > 0 {
		memory = min(memory, expiration)
	}
	f.newest = nil
	for resource, s := range f.services {
		for name, m := range s.models {
			if now.Sub(m.newest) > memory {
				delete(s.models, name)
				f.parts--
			}
		}
		for name, t := range s.tools {
			if now.Sub(t.newest) > memory {
				delete(s.tools, name)
				f.parts--
			}
		}
		if now.Sub(s.newest) > memory {
			f.parts -= len(s.models) + len(s.tools)
			delete(f.services, resource)
		}
	}
}

// endTasks ends the tasks of which nothing more is expected.
func (f *Fleet) endTasks(now time.Time) {
	f.latest, f.latestKey = nil, taskKey{}
	for key, t := range f.tasks {
		service := key.service
		switch {
		case t.ended(now):
			service.end(now, t)
			delete(f.tasks, key)
			service.tasks--
		case t.looping && (service.looping == nil || t.loopingSince.Before(service.looping.loopingSince)):
			service.looping = t
		}
	}
}
