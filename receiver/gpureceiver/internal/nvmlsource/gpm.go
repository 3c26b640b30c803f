package nvmlsource

import (
	"maps"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// gpmCapability is the major compute capability from which GPUs have GPM.
	// The library's own call that says so is not to be trusted.
	gpmCapability = 9
	// gpmMinGap is the least time between two samples of GPM that can be
	// compared.
	gpmMinGap = 100 * time.Millisecond
	mebibyte  = 1 << 20
)

// The metrics of GPM that are asked for, with NVML's numbers.
const (
	gpmSMUtilization   = 2
	gpmSMOccupancy     = 3
	gpmInteger         = 4
	gpmTensor          = 5
	gpmDRAM            = 10
	gpmFP64            = 11
	gpmFP32            = 12
	gpmFP16            = 13
	gpmPCIeTransmitted = 20
	gpmPCIeReceived    = 21
)

// gpmMetrics are all of them.
var gpmMetrics = []uint32{
	gpmSMUtilization, gpmSMOccupancy, gpmInteger, gpmTensor, gpmDRAM,
	gpmFP64, gpmFP32, gpmFP16, gpmPCIeTransmitted, gpmPCIeReceived,
}

// gpmValue is one metric between two samples.
type gpmValue struct {
	id     uint32
	result status
	value  float64
}

// gpmTotals is what GPM told last, and the bytes that it told rates of.
type gpmTotals struct {
	pipes                 device.Pipes
	received, transmitted device.Number
}

// add takes the values of a time that has passed.
func (t *gpmTotals) add(values []gpmValue, elapsed time.Duration) {
	t.pipes = device.Pipes{}
	pipe := func(name string, value float64) {
		if t.pipes.Pipe == nil {
			t.pipes.Pipe = make(device.Numbers, len(device.PipeNames))
		}
		t.pipes.Pipe[name] = value
	}
	for _, v := range values {
		if v.result != statusSuccess || math.IsNaN(v.value) || math.IsInf(v.value, 0) || v.value < 0 {
			continue
		}
		part := gpmRatio(v.value)
		switch v.id {
		case gpmSMUtilization:
			t.pipes.SMUtilization = device.Read(part)
		case gpmSMOccupancy:
			t.pipes.SMOccupancy = device.Read(part)
		case gpmDRAM:
			t.pipes.DRAMUtilization = device.Read(part)
		case gpmTensor:
			pipe("tensor", part)
		case gpmFP16:
			pipe("fp16", part)
		case gpmFP32:
			pipe("fp32", part)
		case gpmFP64:
			pipe("fp64", part)
		case gpmInteger:
			pipe("integer", part)
		case gpmPCIeReceived:
			t.received = device.Read(t.received.Value + v.value*mebibyte*elapsed.Seconds())
		case gpmPCIeTransmitted:
			t.transmitted = device.Read(t.transmitted.Value + v.value*mebibyte*elapsed.Seconds())
		}
	}
}

// gpmRatio is a percentage as a ratio. What is above 100 by no more than a
// rounding is 1.
func gpmRatio(percentage float64) float64 {
	if percentage > 100 && percentage < 101 {
		return 1
	}
	return percentage / 100
}

// store returns what puts the values into readings.
func (t *gpmTotals) store() func(*device.Readings) {
	told := *t
	told.pipes.Pipe = maps.Clone(told.pipes.Pipe)
	return func(r *device.Readings) {
		r.Pipes = told.pipes
		r.PCIe.Received, r.PCIe.Transmitted = told.received, told.transmitted
	}
}
