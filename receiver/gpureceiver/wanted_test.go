package gpureceiver

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
)

func TestEveryCallHasItsNeeds(t *testing.T) {
	assert.ElementsMatch(t, nvmlsource.CallNames(), slices.Collect(maps.Keys(callNeeds)))
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

func wanted(cfg *Config) []string {
	var names []string
	for _, name := range nvmlsource.CallNames() {
		if cfg.wants(name) {
			names = append(names, name)
		}
	}
	return names
}

func TestCallsThatNothingNeedsAreNotWanted(t *testing.T) {
	off := func(t *testing.T) *Config {
		cfg := createDefaultConfig().(*Config)
		setMetrics(t, cfg, false)
		return cfg
	}
	for name, test := range map[string]struct {
		set      func(*Config)
		expected []string
	}{
		"nothing":          {func(*Config) {}, nil},
		"power":            {func(c *Config) { c.Metrics.HwPower.Enabled = true }, []string{"power"}},
		"peaks of engines": {func(c *Config) { c.Metrics.NvidiaGpuUtilizationPeak.Enabled = true }, []string{"utilization", "encoder_utilization", "decoder_utilization"}},
		"one engine": {func(c *Config) {
			c.Metrics.NvidiaGpuBusyTime.Enabled = true
			c.Engines = []string{"ofa"}
		}, []string{"ofa_utilization"}},
		"no engine": {func(c *Config) {
			c.Metrics.HwGpuUtilization.Enabled = true
			c.Engines = nil
		}, nil},
		"power limits": {func(c *Config) {
			c.Metrics.NvidiaGpuPowerLimit.Enabled = true
			c.PowerLimits = []string{"min", "requested"}
		}, []string{"power_limit_requested", "power_limit_min"}},
		"health":     {func(c *Config) { c.Metrics.HwStatus.Enabled = true }, []string{"remapped_rows", "recovery_action"}},
		"PCIe bytes": {func(c *Config) { c.Metrics.HwGpuIo.Enabled = true }, []string{"gpm"}},
		"workloads": {func(c *Config) { c.Metrics.NvidiaGpuWorkloadMemoryUsage.Enabled = true },
			[]string{"compute_processes", "graphics_processes", "mps_processes"}},
		"serial number": {func(c *Config) { c.MetricsBuilderConfig.ResourceAttributes.HwSerialNumber.Enabled = true }, []string{"serial"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := off(t)
			test.set(cfg)
			assert.Equal(t, test.expected, wanted(cfg))
		})
	}

	everything := off(t)
	setMetrics(t, everything, true)
	everything.Engines = []string{"general", "encoder", "decoder", "jpeg", "ofa"}
	everything.PowerLimits = []string{"enforced", "requested", "default", "min", "max"}
	assert.Len(t, wanted(everything), len(nvmlsource.CallNames()))
	assert.True(t, everything.wants("a call of tomorrow"))
}
