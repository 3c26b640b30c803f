package vocabulary_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// clients have rules of their own, beside their vocabulary. The canonical names
// that others get look like the GenAI conventions'.
var ownSystems = systemTorchTel | systemTuFT | systemSnakepit | systemFX | systemTaskWeaver

// enrichedFacts are those of a span after what Span finds has been written to
// it, and those that Span found itself.
func enrichedFacts(resource pcommon.Map, scope string, span ptrace.Span) (read, enriched map[string]any) {
	r := vocabulary.Default()
	ofResource, f := new(vocabulary.Facts), new(vocabulary.Facts)
	r.Resource(resource, ofResource)
	known := ofResource.Systems | r.Scope(scope)
	r.Span(known, span, f)
	read = all(f)
	read["client"] = namesOf(f.Systems & ownSystems)
	for fact := range f.All() {
		fact.Put(span.Attributes())
	}
	r.Enriched(known, span, vocabulary.SlotsOf(), f)
	// What nobody needs again is not read again.
	for _, key := range []string{mlattr.TotalTokens, mlattr.FirstTokenAt, mlattr.KubernetesJob, mlattr.User} {
		delete(read, key)
	}
	enriched = all(f)
	enriched["client"] = namesOf(f.Systems & ownSystems)
	delete(enriched, mlattr.User)
	return read, enriched
}

// TestEnrichedFindsTheSame reads what real clients sent.
func TestEnrichedFindsTheSame(t *testing.T) {
	files, err := filepath.Glob("../../../processor/mlenrichprocessor/testdata/recordings/*/traces.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	facts := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						read, enriched := enrichedFacts(rs.Resource().Attributes(), ss.Scope().Name(), span)
						require.Equal(t, read, enriched, "%s: %s", file, span.Name())
						facts += len(read)
					}
				}
			}
		}
	}
	assert.Positive(t, facts)
}

func TestEnrichedReadsDurations(t *testing.T) {
	for key, tt := range map[string]struct {
		value     string
		canonical string
		want      float64
	}{
		"snakepit.grpc.duration_ms":             {"12.5", mlattr.Latency, 0.0125},
		"gen_ai.latency.e2e":                    {"3", mlattr.Latency, 3},
		"gen_ai.latency.time_in_model_decode":   {"2", mlattr.DecodeTime, 2},
		"gen_ai.latency.time_in_model_prefill":  {"0.5", mlattr.PrefillTime, 0.5},
		"no.client.of.ours.time_in_model_sleep": {"1", mlattr.Latency, 0},
	} {
		span := ptrace.NewSpan()
		span.Attributes().PutStr(key, tt.value)
		f := new(vocabulary.Facts)
		vocabulary.Default().Enriched(0, span, vocabulary.SlotsOf(), f)
		got, _ := f.DoubleAt(vocabulary.SlotOf(tt.canonical))
		assert.InDelta(t, tt.want, got, 1e-12, key)
	}
}

func TestEnrichedLeavesOut(t *testing.T) {
	span := ptrace.NewSpan()
	span.Attributes().PutStr(mlattr.SessionID, "s")
	span.Attributes().PutStr(mlattr.Role, "Planner")
	f := new(vocabulary.Facts)
	vocabulary.Default().Enriched(0, span, vocabulary.SlotsOf(mlattr.SessionID, "no such attribute"), f)
	assert.Equal(t, map[string]any{mlattr.Role: "Planner"}, all(f))
}

func TestMarkOfAContext(t *testing.T) {
	assert.False(t, vocabulary.IsEnriched(t.Context()))
	assert.True(t, vocabulary.IsEnriched(vocabulary.WithEnriched(t.Context())))
}
