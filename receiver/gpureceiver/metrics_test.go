package gpureceiver

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// Each metric that metadata.yaml declares is made of something.
func TestEveryMetricIsRecorded(t *testing.T) {
	recorded := map[string]bool{}
	for _, p := range readingPoints {
		recorded[p.metric] = true
	}
	for name := range needs {
		recorded[name] = true
	}
	for _, info := range reflect.ValueOf(metadata.MetricsInfo).Fields() {
		name := info.FieldByName("Name").String()
		assert.True(t, recorded[name], "no record_*.go has %s", name)
	}
}

// Each quantity that device declares is needed by a metric, and each other one
// by a metric or a resource attribute, so that none is read in vain.
func TestEveryQuantityIsNeeded(t *testing.T) {
	wants := wanted(t, func(cfg *Config) {
		setMetrics(t, cfg, true)
	})
	for _, quantity := range device.Quantities {
		assert.True(t, wants(quantity), "no metric needs %s", quantity.Name)
	}
	for _, quantity := range []*device.Quantity{
		device.ProcessList, device.ProcessUtilization,
		device.Serial, device.VBIOS, device.Architecture, device.NUMANode, device.CUDAVersion,
	} {
		assert.True(t, wants(quantity), "nothing needs %s", quantity.Name)
	}
}

// setMetrics switches all metrics and resource attributes on or off.
func setMetrics(t *testing.T, cfg *Config, on bool) {
	t.Helper()
	for _, group := range []any{&cfg.Metrics, &cfg.MetricsBuilderConfig.ResourceAttributes} {
		fields := reflect.ValueOf(group).Elem()
		for i := range fields.NumField() {
			enabled := fields.Field(i).FieldByName("Enabled")
			require.True(t, enabled.IsValid(), fields.Type().Field(i).Name)
			enabled.SetBool(on)
		}
	}
}

// wanted returns what a configuration wants that has nothing on but what set
// switches on.
func wanted(t *testing.T, set func(*Config)) func(*device.Quantity) bool {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	setMetrics(t, cfg, false)
	set(cfg)
	return cfg.wants()
}

func TestOnlyWhatAMetricNeedsIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		set      func(*Config)
		expected []*device.Quantity
	}{
		"nothing": {func(*Config) {}, nil},
		"power":   {func(c *Config) { c.Metrics.HwPower.Enabled = true }, []*device.Quantity{device.PowerDraw}},
		"peaks of engines": {func(c *Config) { c.Metrics.NvidiaGpuUtilizationPeak.Enabled = true },
			[]*device.Quantity{device.GeneralEngine.Peak, device.EncoderEngine.Peak, device.DecoderEngine.Peak}},
		"health": {func(c *Config) { c.Metrics.HwStatus.Enabled = true },
			[]*device.Quantity{device.RemapPending, device.RemapFailed, device.RecoveryAction}},
		"PCIe bytes": {func(c *Config) { c.Metrics.HwGpuIo.Enabled = true },
			[]*device.Quantity{device.PCIeReceived, device.PCIeTransmitted}},
		"part of the memory": {func(c *Config) { c.Metrics.HwGpuMemoryUtilization.Enabled = true },
			[]*device.Quantity{device.MemoryUsed, device.MemoryTotal}},
		"workloads": {func(c *Config) { c.Metrics.NvidiaGpuWorkloadMemoryUsage.Enabled = true },
			[]*device.Quantity{device.ProcessList}},
		"serial number": {func(c *Config) { c.MetricsBuilderConfig.ResourceAttributes.HwSerialNumber.Enabled = true },
			[]*device.Quantity{device.Serial}},
	} {
		t.Run(name, func(t *testing.T) {
			wants := wanted(t, test.set)
			for _, quantity := range test.expected {
				assert.True(t, wants(quantity), quantity.Name)
			}
			others := 0
			for _, quantity := range append(slices.Clone(device.Quantities), device.ProcessList, device.ProcessUtilization,
				device.Serial, device.VBIOS, device.Architecture, device.NUMANode, device.CUDAVersion) {
				if wants(quantity) {
					others++
				}
			}
			assert.Len(t, test.expected, others, "nothing else is wanted")
		})
	}
}
