package nvmlsource

import (
	"sync"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// readings are one GPU's, filled by the goroutine that makes the calls. When
// that goroutine is left behind, what it has filled so far is taken, and what
// it fills later is lost.
type readings struct {
	mu        sync.Mutex
	taken     bool
	gpu       device.GPU
	processes []process
	failures  []failure
	answered  bool
}

// failure is a call that did not succeed.
type failure struct {
	call   string
	status status
}

// put stores the result of a call and reports whether the next call is still
// wanted.
func (r *readings) put(call string, result status, store func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		return false
	}
	switch {
	case result == statusSuccess:
		r.answered = true
		store()
	case result.unsupported():
		r.answered = true
	default:
		r.failures = append(r.failures, failure{call: call, status: result})
	}
	// A GPU that fell off the bus answers nothing else, slowly.
	return result != statusGPUIsLost
}

// take ends the filling and returns what there is.
func (r *readings) take() (gpu device.GPU, processes []process, failures []failure, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	return r.gpu, r.processes, r.failures, r.answered
}

// fill makes the calls, the quick ones first, so that those have their values
// when a slow one hangs.
func (r *readings) fill(g gpu) {
	number := func(name string, call func() (float64, status), target *device.Number) func() bool {
		return func() bool {
			value, result := guard(call)
			return r.put(name, result, func() { *target = device.Read(value) })
		}
	}
	for _, step := range []func() bool{
		number("utilization", g.Utilization, &r.gpu.Readings.Activity.General.Utilization),
		func() bool {
			value, result := guard(g.Memory)
			return r.put("memory", result, func() {
				r.gpu.Readings.Memory.Total = device.Read(float64(value.total))
				r.gpu.Readings.Memory.Used = device.Read(float64(value.used))
			})
		},
		number("power", g.Power, &r.gpu.Readings.Power.Draw),
		number("energy", g.Energy, &r.gpu.Readings.Power.Energy),
		number("temperature", g.Temperature, &r.gpu.Readings.Thermal.GPU),
		number("memory_temperature", g.MemoryTemperature, &r.gpu.Readings.Thermal.Memory),
		number("encoder_utilization", g.EncoderUtilization, &r.gpu.Readings.Activity.Encoder.Utilization),
		number("decoder_utilization", g.DecoderUtilization, &r.gpu.Readings.Activity.Decoder.Utilization),
		func() bool {
			value, result := guard(g.ComputeProcesses)
			return r.put("compute_processes", result, func() { r.processes = value })
		},
	} {
		if !step() {
			return
		}
	}
}

// guard makes a call and turns a panic of the binding into a status.
func guard[T any](call func() (T, status)) (value T, result status) {
	defer func() {
		if recover() != nil {
			var none T
			value, result = none, statusPanic
		}
	}()
	return call()
}
