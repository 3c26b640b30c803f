//go:build cgo && linux

package nvmlsource

import (
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestStateOf(t *testing.T) {
	for result, expected := range map[status]device.DriverState{
		statusSuccess:              device.DriverOK,
		statusLibraryNotFound:      device.DriverLibraryMissing,
		statusDriverNotLoaded:      device.DriverMissing,
		statusLibRMVersionMismatch: device.DriverVersionMismatch,
		statusNoPermission:         device.DriverNoPermission,
		statusTimeout:              device.DriverUnresponsive,
		statusUnknown:              device.DriverFailed,
		statusPanic:                device.DriverFailed,
		"CODE_4711":                device.DriverFailed,
	} {
		assert.Equal(t, expected, stateOf(result), result)
	}
}

func TestEveryStateHasAdviceOfItsOwn(t *testing.T) {
	seen := map[string]device.DriverState{}
	for _, state := range device.DriverStates {
		if state == device.DriverOK {
			continue
		}
		text := advice[state]
		assert.NotEmpty(t, text, state)
		assert.Empty(t, seen[text], state)
		seen[text] = state
	}
}

func TestRetryBacksOffToHalfAMinute(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r retry
	assert.True(t, r.due(now))
	var waits []time.Duration
	for range 8 {
		r.failed(now)
		waits = append(waits, r.next.Sub(now))
		assert.False(t, r.due(r.next.Add(-1)))
		assert.True(t, r.due(r.next))
	}
	assert.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 30e9}, waits)
	r.succeeded()
	assert.True(t, r.due(now))
}

func TestLostSession(t *testing.T) {
	for _, test := range []struct {
		failures []failure
		result   status
		lost     bool
	}{
		{nil, statusSuccess, false},
		{[]failure{{"power", statusGPUIsLost}}, statusSuccess, false},
		{[]failure{{"gpu", statusTimeout}}, statusSuccess, false},
		{[]failure{{"power", statusGPUIsLost}, {"power", statusUninitialized}}, statusUninitialized, true},
		{[]failure{{"power", statusUnknown}}, statusUnknown, true},
	} {
		result, lost := lostSession(test.failures)
		assert.Equal(t, test.result, result)
		assert.Equal(t, test.lost, lost)
	}
}

func TestGuardTurnsPanicsIntoAStatus(t *testing.T) {
	value, result := guard(func() (int, status) {
		var processes []nvml.ProcessInfo
		return int(processes[0].Pid), statusSuccess
	})
	assert.Zero(t, value)
	assert.Equal(t, statusPanic, result)
}

// One call that fails costs its own value; what a GPU cannot tell is no
// failure.
func TestReadingsAfterFailures(t *testing.T) {
	answer := func(value float64, result status) func() (float64, status) {
		return func() (float64, status) { return value, result }
	}
	calls := []call{
		number("temperature", device.GPUTemperature, answer(40, statusSuccess)),
		number("encoder", device.PowerDraw, answer(0, statusNotSupported)),
		number("decoder", device.PowerDraw, answer(0, statusFunctionNotFound)),
		number("memory", device.PowerDraw, answer(0, statusUnknown)),
		number("power", device.PowerDraw, func() (float64, status) { panic("index out of range") }),
		number("energy", device.Energy, answer(7, statusSuccess)),
	}
	calls[3].part = true
	var timed telemetry
	r := newReadings(&knownGPU{}, &timed)
	r.fill(calls, true, true)
	told := r.take()
	assert.Equal(t, readingsOf(map[*device.Quantity]float64{device.Energy: 7, device.GPUTemperature: 40}), told.gpu.Readings)
	assert.Equal(t, []failure{{"memory", statusUnknown}, {"power", statusPanic}}, told.failures)
	assert.Equal(t, []string{"encoder", "decoder"}, told.unsupported)
	assert.True(t, told.answered)
	for i, call := range timed.called {
		timed.called[i] = call[:strings.LastIndex(call, " ")]
	}
	assert.Equal(t, []string{
		"temperature SUCCESS", "encoder NOT_SUPPORTED", "decoder FUNCTION_NOT_FOUND", "power PANIC", "energy SUCCESS",
	}, timed.called, "what is a part of an earlier call is none")
}

// How long the call took is told all the same.
func TestReadingsAreNotFilledAfterTheyWereTaken(t *testing.T) {
	var timed telemetry
	r := newReadings(&knownGPU{}, &timed)
	told := r.take()
	assert.False(t, r.put(&call{name: "power"}, statusSuccess, values{numbers: []value{{device.PowerDraw, 1}}}, 3*time.Second))
	assert.Zero(t, told.succeeded)
	assert.Equal(t, device.Readings{}, r.answers.gpu.Readings)
	assert.Equal(t, []string{"power SUCCESS 3s"}, timed.called)
}

// telemetry keeps the calls that have returned.
type telemetry struct {
	Telemetry
	called []string
}

func (t *telemetry) Called(call, status string, took time.Duration) {
	t.called = append(t.called, call+" "+status+" "+took.String())
}
