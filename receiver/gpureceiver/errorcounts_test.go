package gpureceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

func eventOf(gpu string, code uint64) device.Event {
	return device.Event{Time: time.Unix(100, 0), GPU: device.Identity{ID: gpu}, Code: code}
}

// A GPU has a bounded number of series. What is beyond it is counted together.
func TestErrorSeriesAreBounded(t *testing.T) {
	dropped := 0
	counts := newErrorCounts(func() { dropped++ })
	counts.seed("GPU-a")
	for code := range uint64(1000) {
		counts.add(eventOf("GPU-a", code))
		counts.add(eventOf("GPU-a", 31))
	}
	found := counts.of("GPU-a")
	assert.Len(t, found, maxErrorSeries+1)
	assert.Equal(t, int64(dropped), found[errorSeries{code: otherErrors}])
	total := int64(0)
	for _, count := range found {
		total += count
	}
	assert.Equal(t, int64(2000), total, "none is lost")
	assert.LessOrEqual(t, len(counts.since("GPU-a", time.Time{})), maxErrorSeries)

	// Codes that no XID can have are one series, and as bounded.
	for code := range uint64(1000) {
		counts.add(eventOf("GPU-b", 1<<63+code))
	}
	assert.Len(t, counts.of("GPU-b"), 1)
	assert.Len(t, counts.since("GPU-b", time.Time{}), 1)
}

func TestErrorsOfTooManyGPUs(t *testing.T) {
	dropped := 0
	counts := newErrorCounts(func() { dropped++ })
	for i := range maxTracked + 3 {
		counts.seed(fmt.Sprint("GPU-", i))
		counts.add(eventOf(fmt.Sprint("GPU-", i), 31))
	}
	assert.Equal(t, 3, dropped)
	assert.Len(t, counts.gpus, maxTracked)
	assert.Empty(t, counts.of(fmt.Sprint("GPU-", maxTracked)))
}

// An error of a GPU that nobody has read yet is there at its first reading.
func TestErrorsBeforeTheFirstReading(t *testing.T) {
	counts := newErrorCounts(func() { t.Error("dropped") })
	early := eventOf("GPU-a", 1<<63)
	early.GPUInstance = workload.Number{Value: 3, Known: true}
	counts.add(early)
	counts.seed("GPU-a")
	counts.seed("GPU-a")
	found := counts.of("GPU-a")
	assert.Equal(t, int64(1), found[errorSeries{code: 1<<63 - 1, gpuInstance: early.GPUInstance}], "a code is never negative")
	assert.Equal(t, []health.Error{{Code: 1<<63 - 1}}, counts.since("GPU-a", time.Unix(99, 0)))
	assert.Empty(t, counts.since("GPU-a", time.Unix(100, 0)))
	counts.forgetTimes("GPU-a")
	counts.forgetTimes("GPU-b")
	assert.Empty(t, counts.since("GPU-a", time.Unix(99, 0)))
	assert.Equal(t, found, counts.of("GPU-a"), "what was counted stays")
	assert.Empty(t, counts.since("GPU-b", time.Time{}))
}

// What the driver asks for to recover a GPU holds until it asks for something else.
func TestTheLastRecoveryActionCounts(t *testing.T) {
	counts := newErrorCounts(func() { t.Error("dropped") })
	asks := func(action string) []health.Error {
		event := eventOf("GPU-a", 154)
		event.Text = "GPU recovery action changed from 0x9 (X) to " + action
		counts.add(event)
		return counts.since("GPU-a", time.Unix(99, 0))
	}
	assert.Equal(t, []health.Error{{Code: 154, Effect: xid.Degrades}}, asks("0x4 (Drain and Reset)"))
	assert.Equal(t, []health.Error{{Code: 154, Effect: xid.Fails}}, asks("0x1 (GPU Reset Required)"))
	assert.Equal(t, []health.Error{{Code: 154, Effect: xid.None}}, asks("0x0 (None)"))
}

// The series of NVSwitches are bounded together.
func TestErrorsOfSwitchesAreBounded(t *testing.T) {
	dropped := 0
	counts := newErrorCounts(func() { dropped++ })
	for range 2 {
		for code := range uint64(2 * maxErrorSeries) {
			counts.add(device.Event{Code: code, Switch: &device.Switch{PCIBusID: "0000:04:00.0"}})
		}
	}
	for _, count := range counts.of(ofSwitches) {
		assert.EqualValues(t, 2, count)
	}
	assert.Len(t, counts.of(ofSwitches), maxErrorSeries)
	assert.Equal(t, 2*maxErrorSeries, dropped)
}

// Two series never have the same attributes: a compute instance without its GPU
// instance says nothing, and no instance is not the instance 0.
func TestErrorsOfInstances(t *testing.T) {
	known := func(id int64) workload.Number { return workload.Number{Value: id, Known: true} }
	counts := newErrorCounts(func() { t.Error("dropped") })
	for _, instances := range [][2]workload.Number{
		{known(0), known(0)}, {known(0), {}}, {{}, known(0)}, {{}, {}}, {{}, known(7)},
	} {
		event := eventOf("GPU-a", 31)
		event.GPUInstance, event.ComputeInstance = instances[0], instances[1]
		counts.add(event)
	}
	assert.Equal(t, map[errorSeries]int64{
		{code: 31}:                        3,
		{code: 31, gpuInstance: known(0)}: 1,
		{code: 31, gpuInstance: known(0), computeInstance: known(0)}: 1,
	}, counts.of("GPU-a"))
}
