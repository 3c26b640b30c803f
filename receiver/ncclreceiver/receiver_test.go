package ncclreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/rastest"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
)

// The metrics and the logs of one receiver ask once for both.
func TestOneQueryForBothSignals(t *testing.T) {
	healthy := rastest.Communicator{Hash: "0x1", Size: 2, Ranks: []rastest.Rank{{Host: "127.0.0.1", PID: 100}, {Rank: 1, Host: "10.0.0.2", PID: 100}}}
	server := rastest.New(t, status(healthy), status(gone(healthy, true)), status(gone(healthy, true)), rastest.Silent())
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoint, cfg.RootPath = server.Endpoint, t.TempDir()
	cfg.initialDelay, cfg.CollectionInterval = 10*time.Millisecond, 10*time.Millisecond
	set := receivertest.NewNopSettings(metadata.Type)
	var metrics consumertest.MetricsSink
	var logs consumertest.LogsSink
	factory := NewFactory()
	m, err := factory.CreateMetrics(t.Context(), set, cfg, &metrics)
	require.NoError(t, err)
	l, err := factory.CreateLogs(t.Context(), set, cfg, &logs)
	require.NoError(t, err)
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(metrics.AllMetrics()) >= 2 && logs.LogRecordCount() == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return server.Connections() >= 4 }, time.Minute, time.Millisecond)

	// Both stop while NCCL does not answer.
	require.NoError(t, m.Shutdown(t.Context()))
	connections := server.Connections()
	require.NoError(t, m.(*ncclReceiver).Shared.loop.Stop(t.Context()))
	assert.Equal(t, connections, server.Connections(), "it still asks")
	require.NoError(t, l.Shutdown(t.Context()))
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Equal(t, 1, logs.LogRecordCount())
}

// A pipeline that hangs does not keep Shutdown from returning.
func TestShutdownEndsWithItsContext(t *testing.T) {
	r := newRig(t, status(world(9)))
	enter, leave := make(chan struct{}), make(chan struct{})
	r.start(t)
	r.metrics.next.Store(nil)
	r.addresses = nil
	r.loop.Start(0, time.Hour, func(context.Context) { close(enter); <-leave })
	<-enter
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Shutdown(ctx), context.Canceled)
	close(leave)
	require.NoError(t, r.Shutdown(t.Context()))
}
