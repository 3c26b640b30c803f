package mlenrichprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// Who comes after in the same call is told that the spans have been read.
func TestMarksTheContext(t *testing.T) {
	span := ptrace.NewSpan()
	span.Attributes().PutStr("tuft.session_id", "s")
	reads := func(ctx context.Context) bool {
		var pass vocabulary.Pass
		pass.Begin(ctx, vocabulary.Default(), ptrace.NewTraces())
		defer pass.End()
		return pass.Next(0, span, span).Text(mlattr.SessionID) == "s"
	}
	assert.True(t, reads(t.Context()))
	marked := false
	next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
		marked = !reads(ctx)
		return nil
	})
	require.NoError(t, err)
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(t.Context(), batchOf("x")))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.True(t, marked)
}
