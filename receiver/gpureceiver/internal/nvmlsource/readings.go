package nvmlsource

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// readings are the answers about one GPU, which the goroutine that makes the
// calls fills. When that goroutine is abandoned, the answers so far are taken, and
// later ones are lost.
type readings struct {
	// called is called for each call that returns after the answers were taken.
	called func(call, status string, took time.Duration)

	mu      sync.Mutex
	taken   bool
	answers answers
}

// answers are the answers of the calls about one GPU.
type answers struct {
	gpu      device.GPU
	failures []failure
	// answered is false if more calls failed than succeeded: the driver can
	// answer a few calls about a failed GPU from memory.
	answered bool
	// succeeded is the number of successful calls.
	succeeded int
	// unsupported are the calls that the GPU or the library lacks.
	unsupported []string
	durations   []duration
}

// duration is how long a call took.
type duration struct {
	call   string
	status status
	took   time.Duration
}

// newReadings returns readings without answers.
func newReadings(known *knownGPU, called func(call, status string, took time.Duration)) *readings {
	return &readings{called: called, answers: answers{
		gpu: device.GPU{Identity: known.identity}, durations: make([]duration, 0, len(known.fastCalls)),
	}}
}

// reportDurations reports the durations of calls.
func reportDurations(durations [][]duration, called func(call, status string, took time.Duration)) {
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

// put stores the result of a call, and reports whether to make the next one.
func (r *readings) put(c *call, result status, store func(*device.Readings), took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		if !c.part {
			r.called(c.name, string(result), took)
		}
		return false
	}
	a := &r.answers
	if !c.part {
		a.durations = append(a.durations, duration{c.name, result, took})
	}
	switch {
	case result == statusSuccess:
		a.succeeded++
		store(&a.gpu.Readings)
	case result.unsupported():
		// This is no answer of the GPU: often no call was made.
		if !slices.Contains(a.unsupported, c.name) {
			a.unsupported = append(a.unsupported, c.name)
		}
	default:
		a.failures = append(a.failures, failure{call: c.name, status: result})
	}
	// A GPU that fell off the bus answers nothing else, slowly.
	return result != statusGPUIsLost
}

// take ends the filling and returns the answers.
func (r *readings) take() answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	r.answers.answered = r.answers.succeeded >= len(r.answers.failures)
	return r.answers
}

// fill makes the calls in their order. It stops if the GPU fell off the bus, or
// if the answers were taken.
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

// ask makes a call, turns a panic of the binding into a status, and reports the
// call's duration.
func ask[T any](name string, called func(call, status string, took time.Duration), question func() (T, status)) (T, status) {
	begin := time.Now()
	value, result := guard(question)
	if called != nil {
		called(name, string(result), time.Since(begin))
	}
	return value, result
}

// askStatus is ask for calls without a value.
func askStatus(name string, called func(call, status string, took time.Duration), question func() status) status {
	_, result := ask(name, called, func() (struct{}, status) { return struct{}{}, question() })
	return result
}
