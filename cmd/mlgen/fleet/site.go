package fleet

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// exportEvery is how long ended spans wait until they are sent.
const exportEvery = 900 * time.Millisecond

// simulated marks each resource.
var simulated = Attr{"ml.simulated", true}

// Site is a scenario.Scenario of hosts, training runs and agents. It is not safe
// for concurrent use.
type Site struct {
	name     string
	settings scenario.Settings
	hosts    []*Host
	runs     []*Run
	agents   []*Agent
	tasks    []task
	// gone are the processes of agents that were replaced.
	gone []*process
	// truth is what the next request with spans shows.
	truth sentlog.Truth

	// errors are the errors of GPUs that have not been sent.
	errors []scenario.Batch

	steps int
	// at is the time of the latest step.
	at          time.Time
	exported    time.Time
	metricsDone time.Time
}

// task is something that happens before a step.
type task struct {
	step int
	do   func()
}

var _ scenario.Scenario = (*Site)(nil)

// NewSite returns a site without anything. The name is that of its scenario.
func NewSite(name string, settings scenario.Settings) *Site {
	return &Site{name: name, settings: settings}
}

// StepTime is the time between two steps of the site.
func (s *Site) StepTime() time.Duration {
	return time.Duration(float64(time.Second) / s.settings.Rate)
}

// AddHost adds a host with GPUs that nobody uses.
func (s *Site) AddHost(name string, gpus int) *Host {
	h := newHost(s.settings.Seed, name, gpus)
	s.hosts = append(s.hosts, h)
	return h
}

// Before has something done before a step of the site; the first step is 1.
func (s *Site) Before(step int, do func()) {
	s.tasks = append(s.tasks, task{step, do})
}

// Step has everything at the site act until the given time.
func (s *Site) Step(at time.Time) []scenario.Batch {
	s.steps++
	s.at = at
	for _, t := range s.tasks {
		if t.step == s.steps {
			t.do()
		}
	}
	for _, r := range s.runs {
		r.advance(at)
	}
	for _, a := range s.agents {
		a.answer(at, s.StepTime())
	}
	return s.flush(at, false)
}

// Finish ends the runs cleanly that can, and sends what waits.
func (s *Site) Finish(at time.Time) []scenario.Batch {
	for _, r := range s.runs {
		r.finish(at)
	}
	return s.flush(at, true)
}

func (s *Site) flush(at time.Time, all bool) (out []scenario.Batch) {
	if all || at.Sub(s.exported) >= exportEvery {
		s.exported = at
		if out = takeSpans(s.name, s.processes()); len(out) > 0 {
			out[0].Truth, s.truth = s.truth, sentlog.Truth{}
		}
	}
	out, s.errors = append(out, s.errors...), nil
	if s.steps > 0 && (all || at.Sub(s.metricsDone) >= s.settings.MetricsInterval*19/20) {
		s.metricsDone = at
		for _, h := range s.hosts {
			out = append(out, h.read(s.name, at))
		}
		for _, r := range s.runs {
			if r.measures {
				out = append(out, takeMemory(s.name, r.ranks, at))
			}
		}
	}
	return out
}

func (s *Site) processes() (all []*process) {
	for _, r := range s.runs {
		all = append(all, r.processes()...)
	}
	all = append(all, s.gone...)
	for _, a := range s.agents {
		all = append(all, a.process)
	}
	return all
}
