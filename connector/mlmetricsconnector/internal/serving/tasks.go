package serving

import (
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// costRule is that of a ticket.
var costRule = shift.Rule{Least: math.Log(1.5), Blocks: 3}

const (
	// maxTasks limits the tasks that are watched at once, maxTasksOfService those of
	// one service. Those beyond it are not watched at all, so that what is known of
	// tasks is a fair sample.
	maxTasks, maxTasksOfService = 16384, 2048
	// taskSilence is how long nothing comes of a task that has ended without its
	// root span, and rootSilence how long with it.
	taskSilence, rootSilence = 2 * time.Minute, 10 * time.Second
	// leastRepeats is the least number of the same calls that is a loop, and
	// repeatFactor how many times the greatest usual number it is.
	leastRepeats, repeatFactor = 10, 3
	// usualTasks are the newest tasks whose repeats are usual, of which
	// leastTasks must be known.
	usualTasks, leastTasks = 256, 20
	// watchedCalls are the counters of a task's calls: any call that is more than
	// one in this many has one (Misra and Gries, Finding Repeated Elements, 1982).
	watchedCalls = 8
)

// Task is what a service does in one trace.
type Task struct {
	version      uint8
	root         bool
	began, last  time.Time
	tokens       int64
	cost         float64
	hasCost      bool
	requests     int
	calls        [watchedCalls]calls
	Most         int
	Repeated     string
	looping      bool
	LoopingSince time.Time
}

// calls counts the same calls.
type calls struct {
	hash  uint64
	count int
	since time.Time
}

// add adds a span to a task of a service.
func (t *Task) add(now time.Time, s *Span, of *Service) {
	if t.began.IsZero() {
		t.began, t.version = now, of.Versions.index(s.Version, now)
	}
	t.last = now
	t.root = t.root || s.is(Root)
	if s.is(Request) {
		t.requests++
		t.tokens += max(s.Input, 0) + max(s.Output, 0)
		if !math.IsNaN(s.Cost) && s.Cost > 0 {
			t.cost, t.hasCost = t.cost+s.Cost, true
		}
	}
	switch {
	case s.is(Tool):
		t.repeat(now, s.Tool, maphash.String(seed, s.Tool)^s.Arguments, of)
	case s.is(Step) && !s.is(Root):
		// The rotation tells a role from an operation of the same name.
		t.repeat(now, s.Role, bits.RotateLeft64(maphash.String(seed, s.Role), 1)^maphash.String(seed, s.Operation), of)
	}
}

// repeat counts a call by its hash.
func (t *Task) repeat(now time.Time, name string, hash uint64, of *Service) {
	least := &t.calls[0]
	for i := range t.calls {
		known := &t.calls[i]
		if known.count > 0 && known.hash == hash {
			known.count++
			if known.count > t.Most {
				t.Most = known.count
				t.settle(name, known.since, of)
			}
			return
		}
		if known.count < least.count {
			least = known
		}
	}
	if least.count == 0 {
		*least, t.Most = calls{hash, 1, now}, max(t.Most, 1)
		return
	}
	for i := range t.calls {
		t.calls[i].count--
	}
}

// settle concludes whether the task loops.
func (t *Task) settle(name string, since time.Time, of *Service) {
	usual, known := of.Repeats.Usual()
	if !t.looping && known && t.Most >= max(leastRepeats, repeatFactor*usual) {
		t.looping, t.LoopingSince, t.Repeated = true, since, strings.Clone(name)
	}
}

// ended reports whether nothing more is expected of the task.
func (t *Task) ended(now time.Time) bool {
	silent := now.Sub(t.last)
	return silent >= taskSilence || t.root && silent >= rootSilence
}

// Repeats has how often each of the newest tasks repeated a call.
type Repeats []int

// Usual returns the greatest number of repeats. known reports whether there were
// enough tasks.
func (r Repeats) Usual() (most int, known bool) {
	for _, n := range r {
		most = max(most, n)
	}
	return most, len(r) >= leastTasks
}

// end adds a task that has ended to what is known of the service's tasks.
func (s *Service) end(now time.Time, t *Task) {
	if !t.looping {
		s.Repeats = shared.AppendNewest(s.Repeats, t.Most, usualTasks)
	}
	if t.requests == 0 {
		return
	}
	s.Counted.add(t.tokens > 0)
	if t.tokens > 0 {
		s.Tokens.Add(now, observed(math.Log(float64(t.tokens)), t.version), &costRule)
	}
	if t.hasCost {
		s.Costs.Add(now, observed(math.Log(t.cost), t.version), &costRule)
	}
}
