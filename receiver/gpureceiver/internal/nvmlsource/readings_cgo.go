//go:build cgo && linux

package nvmlsource

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// readings are the answers about one GPU, which the goroutine that makes the
// calls fills. When that goroutine is abandoned, the answers so far are taken, and
// later ones are lost.
type readings struct {
	// telemetry gets each call that returns after the answers were taken.
	telemetry Telemetry

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
func newReadings(known *knownGPU, telemetry Telemetry) *readings {
	return &readings{telemetry: telemetry, answers: answers{
		gpu: device.GPU{Identity: known.identity}, durations: make([]duration, 0, len(known.fastCalls)),
	}}
}

// put stores the result of a call, and reports whether to make the next one.
func (r *readings) put(c *call, result status, read values, took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		if !c.part {
			r.telemetry.Called(c.name, string(result), took)
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
		read.store(&a.gpu.Readings)
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
	var read values
	begin := time.Now()
	for i := range calls {
		result := calls[i].make(&read)
		end := time.Now()
		if !r.put(&calls[i], result, read, end.Sub(begin)) {
			return
		}
		begin = end
	}
}

// gpu logs whether a GPU answers if that has changed, with the first failure.
func (l *stateLog) gpu(known *knownGPU, failures []failure, answered bool) {
	var state status
	for _, f := range failures {
		if !answered || f.status == statusTimeout || f.status == statusGPUIsLost {
			state = f.status
			break
		}
	}
	if state == known.state {
		return
	}
	known.state = state
	fields := []zap.Field{zap.String("hw.id", known.identity.ID), zap.Int("nvidia.gpu.index", known.identity.Index)}
	if state == "" {
		l.logger.Info("The GPU answers again", fields...)
		return
	}
	l.logger.Warn("The GPU does not answer; the other GPUs are still read", append(fields, zap.String("nvml.return", string(state)))...)
}
