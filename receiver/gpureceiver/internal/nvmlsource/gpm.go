package nvmlsource

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// gpmCapability is the first major compute capability with GPM. The
	// library's own call for that is not reliable.
	gpmCapability = 9
	// gpmMinGap is the least time between two samples that GPM can compare.
	gpmMinGap = 100 * time.Millisecond
	mebibyte  = 1 << 20
)

// The metrics of GPM with NVML's numbers.
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

// gpmMetrics are all of them with their quantities.
var gpmMetrics = []gpmMetric{
	{gpmSMUtilization, device.SMUtilization, false},
	{gpmSMOccupancy, device.SMOccupancy, false},
	{gpmDRAM, device.DRAMUtilization, false},
	{gpmTensor, device.PipeUtilization.Member("tensor"), false},
	{gpmFP16, device.PipeUtilization.Member("fp16"), false},
	{gpmFP32, device.PipeUtilization.Member("fp32"), false},
	{gpmFP64, device.PipeUtilization.Member("fp64"), false},
	{gpmInteger, device.PipeUtilization.Member("integer"), false},
	{gpmPCIeTransmitted, device.PCIeTransmitted, true},
	{gpmPCIeReceived, device.PCIeReceived, true},
}

// gpmMetric is a metric of GPM and its quantity.
type gpmMetric struct {
	id       uint32
	quantity *device.Quantity
	// rate is true if the metric is in mebibytes per second and the quantity
	// is the total, and false if the metric is a percentage.
	rate bool
}

// gpmValue is one metric between two samples.
type gpmValue struct {
	metric gpmMetric
	result status
	value  float64
}

// gpmTotals has the last values of GPM, and the totals of its rates.
type gpmTotals struct {
	readings device.Readings
}

// add adds the values between two samples.
func (t *gpmTotals) add(values []gpmValue, elapsed time.Duration) {
	t.readings.Pipes = device.Pipes{}
	for _, v := range values {
		if v.result != statusSuccess || math.IsNaN(v.value) || math.IsInf(v.value, 0) || v.value < 0 {
			continue
		}
		quantity := v.metric.quantity
		if v.metric.rate {
			quantity.Store(&t.readings, quantity.Of(&t.readings).Value+v.value*mebibyte*elapsed.Seconds())
		} else {
			quantity.Store(&t.readings, gpmRatio(v.value))
		}
	}
}

// gpmRatio is a percentage as a ratio. A percentage just above 100 is 1,
// because it is a rounding error.
func gpmRatio(percentage float64) float64 {
	if percentage > 100 && percentage < 101 {
		return 1
	}
	return percentage / 100
}

// store returns what puts the values into readings.
func (t *gpmTotals) store() func(*device.Readings) {
	last := t.readings.Clone()
	return func(r *device.Readings) {
		r.Pipes = last.Pipes
		r.PCIe.Received, r.PCIe.Transmitted = last.PCIe.Received, last.PCIe.Transmitted
	}
}
