package gpupoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
)

func attrsOf(t *testing.T, attrs map[string]any) pcommon.Map {
	t.Helper()
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(attrs))
	return m
}

// pointsOf returns the points of a metric with one point for each map of attributes, whose
// value is its number from 1.
func pointsOf(t *testing.T, name string, resource map[string]any, points ...map[string]any) (all []gpupoint.Point) {
	t.Helper()
	m := pmetric.NewMetric()
	m.SetName(name)
	list := m.SetEmptyGauge().DataPoints()
	for i, attrs := range points {
		p := list.AppendEmpty()
		p.SetTimestamp(7)
		p.SetIntValue(int64(i + 1))
		attrsOf(t, attrs).CopyTo(p.Attributes())
	}
	device := gpupoint.DeviceOf(attrsOf(t, resource))
	for p := range gpupoint.Points(m, &device) {
		all = append(all, *p)
	}
	return all
}

// TestPointOverResource: what a point does not say of its GPU, its resource says.
func TestPointOverResource(t *testing.T) {
	resource := map[string]any{
		mlattr.HostName: "h", mlattr.HardwareID: "GPU-0", mlattr.NVIDIAIndex: 3, mlattr.HardwareName: "H100",
		mlattr.HardwareParent: "GPU-9", mlattr.GPUSource: mlattr.GPUSourceReplay,
	}
	all := pointsOf(t, mlattr.GPUPower, resource, nil, map[string]any{mlattr.HostName: "other", mlattr.HardwareID: "GPU-1", mlattr.GPUSource: "nvml"}, nil)
	device := gpupoint.Device{Host: "h", ID: "GPU-0", Index: "3", Name: "H100", Parent: "GPU-9", Source: mlattr.GPUSourceReplay}
	other := gpupoint.Device{Host: "other", ID: "GPU-1", Index: "3", Name: "H100", Parent: "GPU-9", Source: "nvml"}
	assert.Equal(t, []gpupoint.Point{
		{Device: device, Quantity: gpupoint.Power, Value: 1, At: 7},
		{Device: other, Quantity: gpupoint.Power, Value: 2, At: 7},
		{Device: device, Quantity: gpupoint.Power, Value: 3, At: 7},
	}, all)
	assert.True(t, device.Replayed())
	assert.False(t, other.Replayed())
}

// TestWhichPoints says which points of a metric are read, by their values.
func TestWhichPoints(t *testing.T) {
	type attrs = map[string]any
	for name, tt := range map[string]struct {
		metric string
		points []attrs
		want   []float64
	}{
		"any":              {mlattr.GPUMemoryUsage, []attrs{nil, {"x": 1}}, []float64{1, 2}},
		"no fan":           {mlattr.GPUStatus, []attrs{{mlattr.HardwareType: "fan"}, {mlattr.HardwareType: "gpu"}, nil}, []float64{2, 3}},
		"all of the work":  {mlattr.GPUUtilization, []attrs{{mlattr.GPUTask: "encoder"}, {mlattr.GPUTask: mlattr.GPUTaskGeneral}, nil}, []float64{2}},
		"all busy time":    {mlattr.GPUBusyTime, []attrs{{mlattr.GPUTask: "decoder"}, {mlattr.GPUTask: mlattr.GPUTaskGeneral}}, []float64{2}},
		"the limit now":    {mlattr.GPUPowerLimit, []attrs{{mlattr.GPUPowerLimitType: "max"}, {mlattr.GPUPowerLimitType: mlattr.GPUPowerLimitEnforced}}, []float64{2}},
		"another metric":   {"system.memory.usage", []attrs{nil}, nil},
		"another hardware": {"hw.fan.speed", []attrs{nil}, nil},
	} {
		var values []float64
		for _, p := range pointsOf(t, tt.metric, nil, tt.points...) {
			values = append(values, p.Value)
		}
		assert.Equal(t, tt.want, values, name)
	}
}

func TestNames(t *testing.T) {
	all := pointsOf(t, mlattr.GPUThrottleActive, nil, map[string]any{mlattr.GPUThrottleReason: "sw_power_cap"}, map[string]any{mlattr.GPUThrottleReason: 1})
	assert.Equal(t, "sw_power_cap", all[0].Name)
	assert.Empty(t, all[1].Name, "none of the point before")
	assert.Equal(t, "failed", pointsOf(t, mlattr.GPUStatus, nil, map[string]any{mlattr.HardwareState: "failed"})[0].Name)
}

// TestNoValue: a point without a value says nothing.
func TestNoValue(t *testing.T) {
	m := pmetric.NewMetric()
	m.SetName(mlattr.GPUPower)
	points := m.SetEmptySum().DataPoints()
	points.AppendEmpty()
	gone := points.AppendEmpty()
	gone.SetDoubleValue(1)
	gone.SetFlags(gone.Flags().WithNoRecordedValue(true))
	points.AppendEmpty().SetDoubleValue(2.5)
	n := 0
	for p := range gpupoint.Points(m, new(gpupoint.Device)) {
		n++
		assert.InDelta(t, 2.5, p.Value, 0)
	}
	assert.Equal(t, 1, n)
	m.SetEmptyHistogram().DataPoints().AppendEmpty()
	for range gpupoint.Points(m, new(gpupoint.Device)) {
		t.Error("a histogram is none of a GPU")
	}
}

func TestQuantities(t *testing.T) {
	seen := make(map[gpupoint.Quantity]bool)
	for _, name := range []string{
		mlattr.GPUMemoryUsage, mlattr.GPUMemoryLimit, mlattr.GPUMemoryReserved, mlattr.GPUPower, mlattr.GPUPowerLimit, mlattr.GPUUtilization,
		mlattr.GPUSMUtilization, mlattr.GPUBusyTime, mlattr.GPUStatus, mlattr.GPUThrottleActive, mlattr.GPUWorkloadMemory,
		mlattr.GPUWorkloadUtilization, mlattr.GPUProcessMemory, mlattr.GPURecoveryAction, mlattr.GPUFabricState,
	} {
		of := gpupoint.QuantityOf(name)
		assert.NotEqual(t, gpupoint.None, of, name)
		assert.False(t, seen[of], name)
		seen[of] = true
	}
	assert.Equal(t, gpupoint.None, gpupoint.QuantityOf("ml.steps"))
}

func TestHolder(t *testing.T) {
	attrs := map[string]any{
		mlattr.RunID: "r", mlattr.ServiceName: "the service", mlattr.RankGlobal: 2, mlattr.SlurmJobID: 815, mlattr.K8sNamespace: "n", mlattr.K8sPod: "p",
		mlattr.ContainerID: "c", mlattr.UserID: "1000", mlattr.UserName: "u", "x": "y",
	}
	run, h := gpupoint.HolderOf(attrsOf(t, attrs))
	assert.Equal(t, "r", run)
	assert.Equal(t, gpupoint.Holder{Service: "the service", Rank: "2", Job: "815", Namespace: "n", Pod: "p", Container: "c", UserID: "1000", User: "u"}, h)
	assert.Equal(t, h, h.Clone())

	attrs = map[string]any{mlattr.RunID: mlattr.Other, mlattr.RankGlobal: "first", mlattr.UserName: ""}
	run, h = gpupoint.HolderOf(attrsOf(t, attrs))
	assert.Empty(t, run, "that of many")
	assert.Equal(t, gpupoint.Holder{}, h)
}
