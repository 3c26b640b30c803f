package gpureceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// A host without GPUs is a normal one: the receiver runs, says so once, below
// the level of a warning, and gives the driver's state and nothing else.
func TestAutoWithoutDriver(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	cfg.KernelLog.Enabled = false
	cfg.InitialDelay = 0
	cfg.CollectionInterval = time.Millisecond
	// Longer than a configuration may say, so that a busy machine is not taken
	// for a driver that hangs.
	cfg.Timeout = time.Minute
	core, logs := observer.New(zap.InfoLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	sink := new(consumertest.MetricsSink)
	receiver, err := NewFactory().CreateMetrics(t.Context(), settings, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) > 5 }, time.Minute, time.Millisecond)
	require.NoError(t, receiver.Shutdown(t.Context()))

	require.Equal(t, 1, logs.Len(), "%v", logs.All())
	metrics := sink.AllMetrics()[0]
	assert.Equal(t, 1, metrics.ResourceMetrics().Len())
	state := driverState(t, metrics)
	if state == "unsupported_build" {
		// The build without cgo: the line says what to do about it.
		assert.Contains(t, logs.All()[0].Message, "without cgo")
		return
	}
	assert.Equal(t, "library_missing", state)
	assert.Equal(t, zap.InfoLevel, logs.All()[0].Level)
}

// The logs may read the GPUs before the first reading of the metrics, which then
// repeats what they found until the next attempt to open the library is due.
func TestTheStateAfterAReadingOfTheLogs(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	cfg.KernelLog.Enabled = false
	r := newRig(t, cfg)
	r.scraper.monitor.Snapshot(t.Context())
	state := driverState(t, r.scrape(t))
	if state != "unsupported_build" {
		assert.Equal(t, "library_missing", state)
	}
	assert.Len(t, r.logged(), 1, "one line for both")
}

func TestShutdownWithoutStart(t *testing.T) {
	receiver, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, receiver.Shutdown(t.Context()))
	require.NoError(t, receiver.Shutdown(t.Context()))
}
