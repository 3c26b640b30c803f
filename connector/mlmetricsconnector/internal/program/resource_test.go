package program

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestReadResource(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs    map[string]any
		want     streams.Resource
		repaired int64
	}{
		"nothing":      {nil, streams.Resource{Service: "unknown_service"}, 0},
		"empty":        {map[string]any{"service.name": ""}, streams.Resource{Service: "unknown_service"}, 0},
		"no text":      {map[string]any{"service.name": []any{"a"}}, streams.Resource{Service: "unknown_service"}, 0},
		"both":         {map[string]any{"service.name": "a", "service.namespace": "b"}, streams.Resource{Service: "a", Namespace: "b"}, 0},
		"broken name":  {map[string]any{"service.name": "caf\xe9"}, streams.Resource{Service: "caf\uFFFD"}, 1},
		"only broken":  {map[string]any{"service.name": "\xff\xfe"}, streams.Resource{Service: "\uFFFD"}, 1},
		"broken space": {map[string]any{"service.name": "a", "service.namespace": "\xe9t\xe9"}, streams.Resource{Service: "a", Namespace: "\uFFFDt\uFFFD"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(tt.attrs))
			got, repaired := Read(attrs)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.repaired, repaired)
		})
	}
}

func TestBrokenNamesAreCut(t *testing.T) {
	attrs := pcommon.NewMap()
	attrs.PutStr("service.name", strings.Repeat("\xe9a", 1000))
	got, repaired := Read(attrs)
	assert.EqualValues(t, 1, repaired)
	assert.LessOrEqual(t, len(got.Service), 128)
	assert.True(t, utf8.ValidString(got.Service))
}

func TestProgram(t *testing.T) {
	const born = "2026-01-02T03:04:05.5Z"
	at := time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC).UnixNano()
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  runs.Program
	}{
		"anybody":                {map[string]any{"service.name": "trainer"}, runs.Program{}},
		"with a start":           {map[string]any{"service.name": "trainer", "process.creation.time": born}, runs.Program{Born: at}},
		"with no time as start":  {map[string]any{"service.name": "trainer", "process.creation.time": "soon"}, runs.Program{}},
		"with an ancient start":  {map[string]any{"service.name": "trainer", "process.creation.time": "0001-01-01T00:00:00Z"}, runs.Program{}},
		"with a number as start": {map[string]any{"service.name": "trainer", "process.creation.time": 5}, runs.Program{}},
		"TorchTel":               {map[string]any{"service.name": "torchtel"}, runs.Program{NoStartup: true}},
		"TorchTel with a start":  {map[string]any{"service.name": "torchtel", "process.creation.time": born}, runs.Program{Born: at}},
		"TuFT serves many runs":  {map[string]any{"service.name": "tuft", "process.creation.time": born}, runs.Program{Idles: true, OnDemand: true, NoStartup: true}},
		"one of several ranks":   {map[string]any{"service.name": "trainer", "ml.world_size": 8}, runs.Program{World: 8}},
		"an impossible world":    {map[string]any{"service.name": "trainer", "ml.world_size": 1 << 40}, runs.Program{}},
		"a launcher that counts": {map[string]any{"service.name": "trainer", "TORCHELASTIC_RESTART_COUNT": "2"}, runs.Program{Restarts: 2, Numbered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(tt.attrs))
			var facts vocabulary.Facts
			vocabulary.Default().Resource(attrs, &facts)
			assert.Equal(t, tt.want, Of(&facts, attrs))
		})
	}
}
