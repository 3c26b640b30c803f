package mlattr_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestCallTimeKeys(t *testing.T) {
	for key, want := range map[string]struct {
		what string
		unit float64
	}{
		"duration":          {"duration", 1e-9},
		"duration_ms":       {"duration", 1e-3},
		"queue_time":        {"queue_time", 1e-9},
		"queue_time_us":     {"queue_time", 1e-6},
		"python_time_s":     {"python_time", 1},
		"serialize_time_ns": {"serialize_time", 1e-9},
		"duration_native":   {"duration", 1e-9},
	} {
		what, unit := mlattr.CallTimeKey(key)
		assert.Equal(t, want.what, what, key)
		assert.InDelta(t, want.unit, unit, 0, key)
	}
}

func TestReadCallTime(t *testing.T) {
	for _, tt := range []struct {
		value pcommon.Value
		want  float64
		ok    bool
	}{
		{pcommon.NewValueInt(5_000_000), 0.005, true},
		{pcommon.NewValueDouble(2.5e9), 2.5, true},
		{pcommon.NewValueStr("5000000"), 0.005, true},
		{pcommon.NewValueStr("45.6ms"), 0.0456, true},
		{pcommon.NewValueInt(-5_000_000), -0.005, true},
		{pcommon.NewValueStr("soon"), 0, false},
		{pcommon.NewValueStr("745h"), 0, false},
		{pcommon.NewValueInt(1 << 62), 0, false},
		{pcommon.NewValueStr("s"), 0, false},
		{pcommon.NewValueBool(true), 0, false},
		{pcommon.NewValueDouble(math.NaN()), 0, false},
		{pcommon.NewValueDouble(math.Inf(-1)), 0, false},
	} {
		got, ok := mlattr.ReadCallTime(tt.value, 1e-9)
		assert.Equal(t, tt.ok, ok, tt.value.AsString())
		if ok {
			assert.InDelta(t, tt.want, got, 1e-12, tt.value.AsString())
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"default": "default", ":default": "default", "Elixir.My.Pool": "Elixir.My.Pool",
		"nil": "", "a b": "", "tab\t": "", "\xff": "",
	} {
		assert.Equal(t, want, mlattr.ReadWord(pcommon.NewValueStr(text)), text)
	}
	assert.Len(t, mlattr.ReadWord(pcommon.NewValueStr(strings.Repeat("x", 500))), 128)
}
