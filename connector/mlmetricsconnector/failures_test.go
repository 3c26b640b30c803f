package mlmetricsconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The failure of an HTTP call is no failure of a model.
func TestOtherFailuresAreNone(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	td := ptrace.NewTraces()
	addSpan(td, "", 1, 1).Status().SetCode(ptrace.StatusCodeError)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Empty(t, next.AllMetrics())
}
