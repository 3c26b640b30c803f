package intake_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
)

// runWith returns a span of a run whose resource and span have more attributes.
func runWith(t *testing.T, run string, resource, span map[string]any) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(t, rs.Resource().Attributes().FromRaw(resource))
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	rs.Resource().Attributes().PutStr("ml.run.id", run)
	one := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	require.NoError(t, one.Attributes().FromRaw(span))
	one.SetTraceID(pcommon.TraceID{1})
	one.SetSpanID(pcommon.SpanID{2})
	return td
}

// settingsOf returns the settings that the page shows of a run.
func settingsOf(t *testing.T, store *model.Store, run string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, row := range store.State().Runs {
		if row.ID != run {
			continue
		}
		detail, ok := store.Run(row.Key)
		require.True(t, ok)
		for _, one := range detail.Settings {
			all[one.Name] = one.Value
		}
	}
	return all
}

func TestSettingsOfARun(t *testing.T) {
	store := pagetest.NewStore(input.Settings{})
	in := intake.New(store)
	in.ConsumeTraces(t.Context(), runWith(t, "a", map[string]any{
		"service.version": "1.2", "GIT_COMMIT": "3fa1c2", "container.image.name": "registry/train", "container.image.tags": []any{"v1", "latest"},
		"ml.world_size": 8, "ml.tokens_per_step": 4096, "host.name": "n1", "deployment.environment.name": "prod",
		// Neither content nor secrets.
		"process.command_args": []any{"train.py", "--token=secret"}, "gen_ai.system_instructions": "be kind", "api_key": "secret",
	}, map[string]any{"ml.phase": "batch", "ml.batch.size": 32, "ml.epoch.total": 3}))
	// The last batch of an epoch is smaller.
	in.ConsumeTraces(t.Context(), runWith(t, "a", map[string]any{"GIT_COMMIT": "3fa1c2"}, map[string]any{"ml.phase": "batch", "ml.batch.size": 7}))
	in.ConsumeTraces(t.Context(), runWith(t, "b", nil, map[string]any{"ml.phase": "batch"}))
	assert.Equal(t, map[string]string{
		"service.version": "1.2", "vcs.ref.head.revision": "3fa1c2", "container.image.name": "registry/train", "container.image.tags": "v1, latest",
		"ml.world_size": "8", "ml.tokens_per_step": "4096", "host.name": "n1", "deployment.environment.name": "prod",
		"ml.batch.size": "32", "ml.epoch.total": "3",
	}, settingsOf(t, store, "a"))
	assert.Empty(t, settingsOf(t, store, "b"), "settings are those of their own resource")
}

func TestSettingsAreBounded(t *testing.T) {
	store := pagetest.NewStore(input.Settings{})
	for i := range 1000 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		store.ApplySpans([]input.Span{{Source: &input.Source{Service: "s", Run: "r", Settings: []api.Setting{{Name: name, Value: "v"}}}}}, nil)
	}
	assert.Len(t, settingsOf(t, store, "r"), 48)
}
