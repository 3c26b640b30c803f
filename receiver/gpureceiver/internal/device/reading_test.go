package device

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What is written is what is read again, and what is unavailable is neither.
func TestReadingsAsYAML(t *testing.T) {
	for name, test := range map[string]struct {
		yaml     string
		readings Readings
	}{
		"nothing":       {"{}\n", Readings{}},
		"zero is known": {"power:\n    draw_watts: 0\n", Readings{Power: Power{Draw: Read(0.0)}}},
		"no exponent":   {"memory:\n    total_bytes: 85520809984\n", Readings{Memory: Memory{Total: Read(85520809984.0)}}},
		"a fraction":    {"power:\n    draw_watts: 61.25\n", Readings{Power: Power{Draw: Read(61.25)}}},
		"a flag":        {"repair:\n    remap_pending: false\n", Readings{Repair: Repair{RemapPending: Read(false)}}},
		"a set":         {"clocks:\n    hertz:\n        sm: 1980000000\n", Readings{Clocks: Clocks{Frequencies: Numbers{"sm": 1.98e9}}}},
		"a fan between": {"thermal:\n    fan_speed_ratios: [0.3, null, 0.4]\n", Readings{Thermal: Thermal{Fans: Fans{Read(0.3), {}, Read(0.4)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var read Readings
			require.NoError(t, yaml.Unmarshal([]byte(test.yaml), &read))
			assert.Equal(t, test.readings, read)
			written, err := yaml.Marshal(read)
			require.NoError(t, err)
			assert.YAMLEq(t, test.yaml, string(written))
			assert.NotContains(t, string(written), "e+")
		})
	}
}

func TestWhatIsNoReading(t *testing.T) {
	for _, text := range []string{
		"power: {draw_watts: .nan}", "power: {draw_watts: .inf}", "power: {draw_watts: -2e30}", "power: {draw_watts: much}",
		"clocks: {hertz: {sm: .nan}}", "clocks: {hertz: {sm: null}}", "clocks: {hertz: {sm: fast}}",
		"thermal: {fan_speed_ratios: [.inf]}", "repair: {remap_pending: 1}",
	} {
		var read Readings
		require.Error(t, yaml.Unmarshal([]byte(text), &read), text)
	}
}
