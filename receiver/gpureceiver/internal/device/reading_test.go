package device

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What is written has the keys of recordings, and nothing that is unavailable. That
// it is what is read again is tested with recordings.
func TestReadingsAsYAML(t *testing.T) {
	fan := FanSpeeds.Members
	for name, test := range map[string]struct {
		yaml     string
		readings Readings
	}{
		"nothing":       {"{}\n", Readings{}},
		"zero is known": {"power:\n    draw_watts: 0\n", of(map[*Quantity]float64{PowerDraw: 0})},
		"no exponent":   {"memory:\n    total_bytes: 85520809984\n", of(map[*Quantity]float64{MemoryTotal: 85520809984})},
		"a fraction":    {"power:\n    draw_watts: 61.25\n", of(map[*Quantity]float64{PowerDraw: 61.25})},
		"a flag":        {"repair:\n    remap_pending: false\n", of(map[*Quantity]float64{RemapPending: 0})},
		"a set":         {"clocks:\n    hertz:\n        sm: 1980000000\n", of(map[*Quantity]float64{ClockFrequencies.Member("sm"): 1.98e9})},
		"a fan between": {"thermal:\n    fan_speed_ratios: [0.3, null, 0.4]\n", of(map[*Quantity]float64{fan[0]: 0.3, fan[2]: 0.4})},
		"an engine":     {"activity:\n    general:\n        peak: 1\n", of(map[*Quantity]float64{GeneralEngine.Peak: 1})},
		"no group":      {"recovery_action: 2\n", of(map[*Quantity]float64{RecoveryAction: 2})},
		"no reading":    {"{}\n", of(map[*Quantity]float64{PowerDraw: math.NaN(), Energy: math.Inf(1), PowerPeak: -2e30})},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := yaml.Marshal(test.readings.Tree())
			require.NoError(t, err)
			assert.YAMLEq(t, test.yaml, string(written))
			assert.NotContains(t, string(written), "e+")
		})
	}
}
