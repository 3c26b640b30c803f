package nvmlsource

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestGPMTotals(t *testing.T) {
	var totals gpmTotals
	by := func(id uint32) gpmMetric {
		return gpmMetrics[slices.IndexFunc(gpmMetrics, func(m gpmMetric) bool { return m.id == id })]
	}
	totals.add([]gpmValue{
		{by(gpmSMUtilization), statusSuccess, 50},
		{by(gpmSMOccupancy), statusSuccess, math.NaN()},
		{by(gpmDRAM), statusNotSupported, 70},
		{by(gpmTensor), statusSuccess, 100.0001},
		{by(gpmFP64), statusSuccess, 0},
		{by(gpmFP32), statusSuccess, -1},
		{by(gpmPCIeReceived), statusSuccess, 2},
		{by(gpmPCIeTransmitted), statusNotSupported, 3},
	}, 10*time.Second)
	var r device.Readings
	totals.store()(&r)
	assert.Equal(t, device.Readings{
		Pipes: device.Pipes{SMUtilization: device.Read(0.5), Pipe: device.Numbers{"tensor": 1, "fp64": 0}},
		PCIe:  device.PCIe{Received: device.Read(20.0 * 1024 * 1024)},
	}, r)

	// What GPM does not tell any more is gone; bytes that were counted stay.
	totals.add([]gpmValue{{by(gpmPCIeTransmitted), statusSuccess, 1}}, time.Second)
	stored := totals.store()
	totals.add([]gpmValue{{by(gpmTensor), statusSuccess, 10}}, time.Second)
	r = device.Readings{}
	stored(&r)
	assert.Equal(t, device.Readings{
		PCIe: device.PCIe{Received: device.Read(20.0 * 1024 * 1024), Transmitted: device.Read(1.0 * 1024 * 1024)},
	}, r)
}

func TestGPMRatio(t *testing.T) {
	for percentage, expected := range map[float64]float64{0: 0, 33: 0.33, 100: 1, 100.5: 1, 250: 2.5} {
		assert.InDelta(t, expected, gpmRatio(percentage), 1e-9)
	}
}
