package mlmetricsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
)

// TestNotices has more runs and series than the limits permit.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := createDefaultConfig().(*Config)
		cfg.MaxRuns, cfg.MaxSeries = 1, 1
		made, err := NewFactory().CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		c, host := made.(*metricsConnector), new(statetest.Host)
		require.NoError(t, c.Start(t.Context(), host))
		assert.Empty(t, host.State().Notices()[c.set.ID.String()])
		step(t, c, "run-a", 1)
		step(t, c, "run-b", 2)
		time.Sleep(cfg.FlushInterval)
		synctest.Wait()
		published := map[string]shared.Notice{}
		for _, notice := range host.State().Notices()[c.set.ID.String()] {
			published[notice.Key] = notice
		}
		assert.Positive(t, published["max_series"].Count)
		assert.Equal(t, c.set.ID.String()+": {max_series: 2}", published["max_series"].Fix)
		assert.Positive(t, published["max_runs"].Count)
		assert.Equal(t, c.set.ID.String()+": {max_runs: 200}", published["max_runs"].Fix)
		assert.Equal(t, "There are max_runs (1) runs that have not ended; counters were added up by service, gauges dropped.", published["max_runs"].Why)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Empty(t, host.State().Notices()[c.set.ID.String()])
	})
}
