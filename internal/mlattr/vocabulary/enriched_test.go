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
func enrichedFacts(t *testing.T, resource pcommon.Map, scope string, span ptrace.Span) (read, again map[string]any) {
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
	f = enriched(t, known, span)
	// What nobody needs again is not read again.
	for _, key := range []string{mlattr.TotalTokens, mlattr.FirstTokenAt, mlattr.KubernetesJob, mlattr.User} {
		delete(read, key)
	}
	again = all(f)
	again["client"] = namesOf(f.Systems & ownSystems)
	delete(again, mlattr.User)
	return read, again
}

// enriched returns what a span says that ml_enrich has read.
func enriched(t *testing.T, known vocabulary.System, span ptrace.Span) *vocabulary.Facts {
	t.Helper()
	ctx, end := vocabulary.WithEnriched(t.Context())
	defer end()
	var pass vocabulary.Pass
	pass.Begin(ctx, vocabulary.Default(), ptrace.NewTraces())
	return pass.Next(known, span, span)
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
						read, enriched := enrichedFacts(t, rs.Resource().Attributes(), ss.Scope().Name(), span)
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
		f := enriched(t, 0, span)
		got, _ := f.DoubleAt(vocabulary.SlotOf(tt.canonical))
		assert.InDelta(t, tt.want, got, 1e-12, key)
	}
}

func TestMarkOfAContext(t *testing.T) {
	// A client's own name is read only where ml_enrich has not written the canonical one.
	span := ptrace.NewSpan()
	span.Attributes().PutStr("tuft.session_id", "s")
	assert.Empty(t, enriched(t, 0, span).Text(mlattr.SessionID))
	var pass vocabulary.Pass
	pass.Begin(t.Context(), vocabulary.Default(), ptrace.NewTraces())
	assert.Equal(t, "s", pass.Next(0, span, span).Text(mlattr.SessionID))
}
