package mlguardprocessor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// TestNotices has two instances of a component, of which each leaves something out.
func TestNotices(t *testing.T) {
	factory, set, host := NewFactory(), processortest.NewNopSettings(metadata.Type), new(statetest.Host)
	set.ID = component.MustNewIDWithName("ml_guard", "all")
	cfg := factory.CreateDefaultConfig().(*Config)
	cfg.Bounds.MaxValueBytes = 1000
	identities, content := cfg.Identities.GetOrInsertDefault(), cfg.Content.GetOrInsertDefault()
	identities.Limits.Service = 1
	require.NotNil(t, content)
	for range 2 {
		p, err := factory.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), host))
		defer func() {
			require.NoError(t, p.Shutdown(t.Context()))
		}()
		td := ptrace.NewTraces()
		for _, service := range []string{"one", "two", "three"} {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", service)
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.Attributes().PutStr("prompt", strings.Repeat("What is it? ", 100))
		}
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	published := map[string]shared.Notice{}
	for _, notice := range host.State().Notices()["ml_guard/all"] {
		published[notice.Key] = notice
	}
	assert.Equal(t, shared.Notice{
		Key: "service", Kind: "limit", Count: 4, What: "New identities of the kind service",
		Why: "New names were not admitted, because the limit of 1 is reached, or a quarter of it and they came only once; they are shown as _OTHER or dropped.",
		Fix: "ml_guard/all: {identities: {limits: {service: 2}}}",
	}, published["service"])
	assert.Equal(t, shared.Notice{
		Key: "max_value_bytes", Kind: "limit", Count: 6, What: "Values that were cut, or dropped",
		Why: "They exceed max_value_bytes.", Fix: "ml_guard/all: {bounds: {max_value_bytes: <more>}}",
	}, published["max_value_bytes"])
	assert.Positive(t, published["content"].Count)
	assert.Equal(t, "ml_guard/all: {content: {keep: [<key of the attribute>]}}", published["content"].Fix)
}

func TestNoNoticesAfterShutdown(t *testing.T) {
	factory, set, host := NewFactory(), processortest.NewNopSettings(metadata.Type), new(statetest.Host)
	cfg := factory.CreateDefaultConfig().(*Config)
	cfg.Bounds.MaxValueBytes = 1000
	p, err := factory.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host))
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.Attributes().PutStr("long", strings.Repeat("x", 2000))
	require.NoError(t, p.ConsumeTraces(t.Context(), td))
	assert.Len(t, host.State().Notices()[set.ID.String()], 1)
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Empty(t, host.State().Notices()[set.ID.String()])
}
