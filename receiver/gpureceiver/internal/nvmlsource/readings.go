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
	// called is told of each call.
	called func(call, status string, took time.Duration)

	mu       sync.Mutex
	taken    bool
	gpu      device.GPU
	failures []failure
	answered bool
	// succeeded counts the calls that did.
	succeeded int
	// unsupported are the calls that the GPU or the library does not have.
	unsupported []string
}

// failure is a call that did not succeed.
type failure struct {
	call   string
	status status
}

// put stores the result of a call and reports whether the next call is still
// wanted.
func (r *readings) put(call string, result status, store func(*device.Readings)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		return false
	}
	switch {
	case result == statusSuccess:
		r.succeeded++
		store(&r.gpu.Readings)
	case result.unsupported():
		// It is no answer: often nobody was asked.
		if !slices.Contains(r.unsupported, call) {
			r.unsupported = append(r.unsupported, call)
		}
	default:
		r.failures = append(r.failures, failure{call: call, status: result})
	}
	// A GPU that fell off the bus answers nothing else, slowly.
	return result != statusGPUIsLost
}

// take ends the filling and returns what there is. A GPU of which more calls
// fail than succeed does not answer: a few can be answered from what the
// driver, or the call, remembers.
func (r *readings) take() (gpu device.GPU, failures []failure, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	return r.gpu, r.failures, r.answered || r.succeeded >= len(r.failures)
}

// fill makes the calls in their order and reports whether more are wanted: a
// GPU that fell off the bus is asked nothing else, and neither is one whose
// readings were taken.
func (r *readings) fill(calls []call) bool {
	for i := range calls {
		store, result := ask(calls[i].name, r.called, calls[i].read)
		if !r.put(calls[i].name, result, store) {
			return false
		}
	}
	return true
}

// number is a call for one number.
func number(name string, ask func() (float64, status), place func(*device.Readings) *device.Number) call {
	return call{name: name, read: func() (func(*device.Readings), status) {
		value, result := ask()
		return func(r *device.Readings) { *place(r) = device.Read(value) }, result
	}}
}

// named is a call for one of several numbers that have names.
func named(name string, ask func() (float64, status), place func(*device.Readings) *device.Numbers, key string) call {
	return call{name: name, read: func() (func(*device.Readings), status) {
		value, result := ask()
		return func(r *device.Readings) {
			numbers := place(r)
			if *numbers == nil {
				*numbers = make(device.Numbers)
			}
			(*numbers)[key] = value
		}, result
	}}
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
