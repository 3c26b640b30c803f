package recorder

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// What is written has the keys of recordings, and nothing that is unavailable. That
// it is what is read again is tested with recordings.
func TestReadingsAsYAML(t *testing.T) {
	fan := device.FanSpeeds.Members
	for name, test := range map[string]struct {
		yaml     string
		readings device.Readings
	}{
		"nothing":       {"{}\n", device.Readings{}},
		"zero is known": {"power:\n    draw_watts: 0\n", of(map[*device.Quantity]float64{device.PowerDraw: 0})},
		"no exponent":   {"memory:\n    total_bytes: 85520809984\n", of(map[*device.Quantity]float64{device.MemoryTotal: 85520809984})},
		"a fraction":    {"power:\n    draw_watts: 61.25\n", of(map[*device.Quantity]float64{device.PowerDraw: 61.25})},
		"a flag":        {"repair:\n    remap_pending: false\n", of(map[*device.Quantity]float64{device.RemapPending: 0})},
		"a set":         {"clocks:\n    hertz:\n        sm: 1980000000\n", of(map[*device.Quantity]float64{device.ClockFrequencies.Member("sm"): 1.98e9})},
		"a fan between": {"thermal:\n    fan_speed_ratios: [0.3, null, 0.4]\n", of(map[*device.Quantity]float64{fan[0]: 0.3, fan[2]: 0.4})},
		"an engine":     {"activity:\n    general:\n        peak: 1\n", of(map[*device.Quantity]float64{device.GeneralEngine.Peak: 1})},
		"no group":      {"recovery_action: 2\n", of(map[*device.Quantity]float64{device.RecoveryAction: 2})},
		"no reading":    {"{}\n", of(map[*device.Quantity]float64{device.PowerDraw: math.NaN(), device.Energy: math.Inf(1), device.PowerPeak: -2e30})},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := yaml.Marshal(treeOf(&test.readings))
			require.NoError(t, err)
			assert.YAMLEq(t, test.yaml, string(written))
			assert.NotContains(t, string(written), "e+")
		})
	}
}

func of(numbers map[*device.Quantity]float64) (r device.Readings) {
	for q, number := range numbers {
		q.Store(&r, number)
	}
	return r
}
