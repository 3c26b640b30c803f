package nvmlsource

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// readings are one GPU's, filled by the goroutine that makes the calls. When
// that goroutine is left behind, what it has filled so far is taken, and what
// it fills later is lost.
type readings struct {
	// called is told of each call that returns after the rest was taken.
	called func(call, status string, took time.Duration)

	mu    sync.Mutex
	taken bool
	told  answers
}

// answers are what the calls about one GPU have told.
type answers struct {
	gpu      device.GPU
	failures []failure
	// answered is false for a GPU of which more calls fail than succeed: a few
	// can be answered from what the driver, or the call, remembers.
	answered bool
	// succeeded counts the calls that did.
	succeeded int
	// unsupported are the calls that the GPU or the library does not have.
	unsupported []string
	durations   []duration
}

// duration is how long a call took.
type duration struct {
	call   string
	status status
	took   time.Duration
}

// newReadings returns readings of a GPU that was asked nothing yet.
func newReadings(known *knownGPU, called func(call, status string, took time.Duration)) *readings {
	return &readings{called: called, told: answers{
		gpu: device.GPU{Identity: known.identity}, durations: make([]duration, 0, len(known.fastCalls)),
	}}
}

// tellDurations tells how long calls took.
func tellDurations(durations [][]duration, called func(call, status string, took time.Duration)) {
	for _, ofGPU := range durations {
		for _, d := range ofGPU {
			called(d.call, string(d.status), d.took)
		}
	}
}

// failure is a call that did not succeed.
type failure struct {
	call   string
	status status
}

// put stores the result of a call and reports whether the next call is still
// wanted.
func (r *readings) put(c *call, result status, store func(*device.Readings), took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		if !c.part {
			r.called(c.name, string(result), took)
		}
		return false
	}
	told := &r.told
	if !c.part {
		told.durations = append(told.durations, duration{c.name, result, took})
	}
	switch {
	case result == statusSuccess:
		told.succeeded++
		store(&told.gpu.Readings)
	case result.unsupported():
		// It is no answer: often nobody was asked.
		if !slices.Contains(told.unsupported, c.name) {
			told.unsupported = append(told.unsupported, c.name)
		}
	default:
		told.failures = append(told.failures, failure{call: c.name, status: result})
	}
	// A GPU that fell off the bus answers nothing else, slowly.
	return result != statusGPUIsLost
}

// take ends the filling and returns what there is.
func (r *readings) take() answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	r.told.answered = r.told.succeeded >= len(r.told.failures)
	return r.told
}

// fill makes the calls in their order, as long as they are wanted: a GPU that
// fell off the bus is asked nothing else, and neither is one whose readings
// were taken.
func (r *readings) fill(calls []call) {
	begin := time.Now()
	for i := range calls {
		store, result := guard(calls[i].read)
		end := time.Now()
		if !r.put(&calls[i], result, store, end.Sub(begin)) {
			return
		}
		begin = end
	}
}

// guard makes a call and turns a panic of the binding into a status.
func guard[T any](ask func() (T, status)) (value T, result status) {
	defer func() {
		if recover() != nil {
			var none T
			value, result = none, statusPanic
		}
	}()
	return ask()
}
