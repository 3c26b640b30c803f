//go:build cgo && linux

package nvmlsource

import (
	"math"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestGPMTotals(t *testing.T) {
	totals := gpmTotals{}
	metric := func(id nvml.GpmMetricId, ret nvml.Return, value float64) nvml.GpmMetric {
		return nvml.GpmMetric{MetricId: uint32(id), NvmlReturn: uint32(ret), Value: value}
	}
	totals.add([]nvml.GpmMetric{
		metric(nvml.GPM_METRIC_SM_UTIL, nvml.SUCCESS, 50),
		metric(nvml.GPM_METRIC_SM_OCCUPANCY, nvml.SUCCESS, math.NaN()),
		metric(nvml.GPM_METRIC_DRAM_BW_UTIL, nvml.ERROR_NOT_SUPPORTED, 70),
		metric(nvml.GPM_METRIC_ANY_TENSOR_UTIL, nvml.SUCCESS, 100.0001),
		metric(nvml.GPM_METRIC_FP64_UTIL, nvml.SUCCESS, 0),
		metric(nvml.GPM_METRIC_FP32_UTIL, nvml.SUCCESS, -1),
		metric(nvml.GPM_METRIC_PCIE_RX_PER_SEC, nvml.SUCCESS, 2),
		metric(nvml.GPM_METRIC_PCIE_TX_PER_SEC, nvml.ERROR_NOT_SUPPORTED, 3),
	}, 10*time.Second)
	assert.Equal(t, readingsOf(map[*device.Quantity]float64{
		device.SMUtilization: 0.5, device.PipeUtilization.Member("tensor"): 1, device.PipeUtilization.Member("fp64"): 0,
		device.PCIeReceived: 20 * 1024 * 1024,
	}), stored(totals))

	// What GPM does not tell any more is gone; bytes that were counted stay.
	totals.add([]nvml.GpmMetric{metric(nvml.GPM_METRIC_PCIE_TX_PER_SEC, nvml.SUCCESS, 1)}, time.Second)
	assert.Equal(t, readingsOf(map[*device.Quantity]float64{
		device.PCIeReceived: 20 * 1024 * 1024, device.PCIeTransmitted: 1024 * 1024,
	}), stored(totals))
}

// stored returns the readings that GPM's totals give.
func stored(totals gpmTotals) (r device.Readings) {
	var read values
	totals.store(&read)
	store(read.numbers, &r)
	return r
}

// readingsOf returns readings of these quantities.
func readingsOf(numbers map[*device.Quantity]float64) (r device.Readings) {
	for q, number := range numbers {
		q.Store(&r, number)
	}
	return r
}

func TestGPMRatio(t *testing.T) {
	for percentage, expected := range map[float64]float64{0: 0, 33: 0.33, 100: 1, 100.5: 1, 250: 2.5} {
		assert.InDelta(t, expected, gpmRatio(percentage), 1e-9)
	}
}
