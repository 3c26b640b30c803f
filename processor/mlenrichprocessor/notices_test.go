package mlenrichprocessor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// TestNotices has log records that wait in vain, and more than may wait.
func TestNotices(t *testing.T) {
	one := logsOfMany([][]byte{{2}})
	size := waitingSize(t, one)
	synctest.Test(t, func(t *testing.T) {
		cfg := waitingConfig()
		cfg.LogWait.MaxBytes = 2*size - 1
		set, host := processortest.NewNopSettings(metadata.Type), new(statetest.Host)
		logs, err := NewFactory().CreateLogs(t.Context(), set, cfg, new(consumertest.LogsSink))
		require.NoError(t, err)
		require.NoError(t, logs.Start(t.Context(), host))
		id := set.ID.String()
		assert.Empty(t, host.State().Notices()[id])
		for range 3 {
			require.NoError(t, logs.ConsumeLogs(t.Context(), logsOfMany([][]byte{{2}})))
		}
		time.Sleep(testWait)
		synctest.Wait()
		published := host.State().Notices()[id]
		require.Len(t, published, 2)
		assert.Equal(t, shared.Notice{
			Key: "overflow", Kind: "limit", Count: 2, What: "The run of log records",
			Why: published[0].Why, Fix: published[0].Fix,
		}, published[0])
		assert.True(t, strings.HasPrefix(published[0].Why, "max_waiting_bytes ("), published[0].Why)
		assert.True(t, strings.HasPrefix(published[0].Fix, id+": {max_waiting_bytes: "), published[0].Fix)
		assert.Equal(t, shared.Notice{
			Key: "timeout", Kind: "logs", Count: 1, What: "The run of log records",
			Why: "No span of their trace arrived within log_wait (10s).", Fix: id + ": {log_wait: 20s}",
		}, published[1])
		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Empty(t, host.State().Notices()[id])
	})
}
