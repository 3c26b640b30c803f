//go:build cgo && linux

package nvmlsource

import (
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// milli is the scale of NVML's milliwatts and millijoules.
	milli    = 1e-3
	nano     = 1e-9
	mega     = 1e6
	kibibyte = 1 << 10
	mebibyte = 1 << 20
)

// call is one question to a GPU about its readings.
type call struct {
	// name is the call's name in the receiver's own metrics. Several calls can
	// share one.
	name string
	// yields are the quantities that the call reads. It is made if any of them
	// is wanted.
	yields []*device.Quantity
	// fields are the fields that the GPU's fieldBatch has to read before.
	fields []fieldKey
	// slow is true for a call that takes the driver milliseconds. It is made at some
	// readings only, and its values hold until it is made again.
	slow bool
	// processes is true for a call about processes.
	processes bool
	// part is true for a call that is answered from the fields, so that it
	// does not reach the library.
	part bool
	// read makes the call. The values count only if it succeeds.
	read func(*values) status
}

// values are what a call has read: numbers, or what addTo adds to the lists of processes.
type values struct {
	numbers []value
	addTo   func(*processLists)
}

type value struct {
	of     *device.Quantity
	number float64
}

func (v *values) add(of *device.Quantity, number float64) {
	v.numbers = append(v.numbers, value{of, number})
}

// store puts numbers into readings.
func store(numbers []value, r *device.Readings) {
	for _, read := range numbers {
		read.of.Store(r, read.number)
	}
}

// wanted reports whether the call yields a wanted quantity. One that yields none is always
// made.
func (c *call) wanted(wants func(*device.Quantity) bool) bool {
	return len(c.yields) == 0 || slices.ContainsFunc(c.yields, wants)
}

// number is a call for one quantity.
func number(name string, quantity *device.Quantity, ask func() (float64, status)) call {
	return call{name: name, yields: []*device.Quantity{quantity}, read: func(read *values) status {
		value, result := ask()
		read.add(quantity, value)
		return result
	}}
}

// part is a call for one quantity that is answered from the fields.
func part(name string, quantity *device.Quantity, value fieldNumber) call {
	c := number(name, quantity, value.read)
	c.fields, c.part = value.keys, true
	return c
}

// whole returns a function that reads a whole number in a unit.
func whole[T int | uint32 | uint64](g *gpu, symbol string, get func() (T, nvml.Return), unit float64) func() (float64, status) {
	return func() (float64, status) {
		value, result := guarded(g.library, symbol, get)
		return float64(value) * unit, result
	}
}

// with is a function with its argument.
func with[A, T any](get func(A) (T, nvml.Return), argument A) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { return get(argument) }
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

// make makes the call, and turns a panic of the binding into a status.
func (c *call) make(read *values) status {
	*read = values{numbers: read.numbers[:0]}
	_, result := guard(func() (struct{}, status) { return struct{}{}, c.read(read) })
	return result
}

// ask makes a call, turns a panic of the binding into a status, and reports the
// call's duration and failure.
func ask[T any](name string, telemetry Telemetry, question func() (T, status)) (T, status) {
	begin := time.Now()
	value, result := guard(question)
	telemetry.Called(name, string(result), time.Since(begin))
	if result.failed() {
		telemetry.Failed(name, string(result))
	}
	return value, result
}

// askStatus is ask for calls without a value.
func askStatus(name string, telemetry Telemetry, question func() status) status {
	_, result := ask(name, telemetry, func() (struct{}, status) { return struct{}{}, question() })
	return result
}

// readings are the answers about one GPU, which the goroutine that makes the
// calls fills. When that goroutine is abandoned, the answers so far are taken, and
// later ones are lost.
type readings struct {
	// telemetry gets the duration of each call.
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
	// slow are the numbers of slow calls, and lists those of processes.
	slow  []value
	lists processLists
}

// newReadings returns readings without answers.
func newReadings(known *knownGPU, telemetry Telemetry) *readings {
	return &readings{telemetry: telemetry, answers: answers{
		gpu: device.GPU{Identity: known.identity}, lists: processLists{byType: make(map[string][]nvml.ProcessInfo)},
	}}
}

// put stores the result of a call, and reports whether to make the next one.
func (r *readings) put(c *call, result status, read values, took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.part {
		r.telemetry.Called(c.name, string(result), took)
	}
	if r.taken {
		return false
	}
	a := &r.answers
	switch {
	case result == statusSuccess:
		a.succeeded++
		switch {
		case c.processes:
			read.addTo(&a.lists)
		case c.slow:
			a.slow = append(a.slow, read.numbers...)
		default:
			store(read.numbers, &a.gpu.Readings)
		}
	case result.unsupported() && c.slow:
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

// fill makes calls in their order, and those that are slow or about processes only if
// they are wanted. It stops if the GPU fell off the bus, or if the answers were taken.
func (r *readings) fill(calls []call, slow, processes bool) {
	var read values
	for i := range calls {
		c := &calls[i]
		if c.slow && !slow || c.processes && !processes {
			continue
		}
		begin := time.Now()
		result := c.make(&read)
		if !r.put(c, result, read, time.Since(begin)) {
			return
		}
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
