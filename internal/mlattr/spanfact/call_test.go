package spanfact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
)

func TestDevices(t *testing.T) {
	for text, want := range map[string]string{
		"cuda:0":              "cuda:0",
		"{:cuda, 0}":          "cuda:0",
		"{:cuda,11}":          "cuda:11",
		":mps":                "mps",
		"cpu":                 "cpu",
		"nil":                 "",
		"":                    "",
		"{:cuda}":             "",
		"{:cuda, 0} and more": "",
		"two words":           "",
	} {
		assert.Equal(t, want, spanfact.Device(pcommon.NewValueStr(text)), text)
	}
	assert.Equal(t, "3", spanfact.Device(pcommon.NewValueInt(3)))
	assert.LessOrEqual(t, len(spanfact.Device(pcommon.NewValueStr("{:"+strings.Repeat("x", 500)+", 0}"))), 128)
}

func TestCallEvents(t *testing.T) {
	attrs := pcommon.NewMap()
	require.NoError(t, attrs.FromRaw(map[string]any{
		"library": "torch", "function": "train", "device": "{:cuda, 1}", "result": "error", "direction": "decode",
		"duration_ms": 1500, "queue_time_ms": -2, "serialize_time": "soon", "another_ms": 3,
	}))
	e, clamped, outOfRange := spanfact.ReadCallEvent(attrs)
	want := spanfact.CallEvent{Library: "torch", Function: "train", Device: "cuda:1", Failed: true, Decoding: true}
	want.Add(spanfact.Whole, 1.5)
	want.Add(spanfact.Queued, 0)
	assert.Equal(t, want, e)
	assert.Equal(t, []int64{1, 1}, []int64{clamped, outOfRange})
}
