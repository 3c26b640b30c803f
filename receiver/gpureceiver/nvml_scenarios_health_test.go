//go:build cgo && linux

package gpureceiver

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"GPU vanishes":            {run: runGPUVanishes},
		"GPU is lost":             {run: runGPUIsLost},
		"GPU hangs":               {run: runGPUHangs},
		"logs alone":              {control: "record 1", run: runLogsAlone},
		"logs without a driver":   {control: "init 9", run: runLogsWithoutDriver},
		"errors that nobody told": {control: "event_types 0", run: runErrorsThatNobodyTold},
	})
}

// A GPU that the driver does not list when it is opened again is failed, with
// its identity, until it is back.
func runGPUVanishes(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	first := r.scrape(t)
	assert.Equal(t, map[string]string{gpu0: "ok", gpu1: "ok"}, states(t, first))

	// The devices go away and are found again without the second one.
	d.set(t, "epoch 1", "count 1")
	failed := r.after(t, time.Minute)
	assert.Equal(t, "failed", driverState(t, failed))
	assert.Empty(t, states(t, failed), "a driver that fails says nothing about GPUs")
	gone := r.after(t, time.Minute)
	assert.Equal(t, "ok", driverState(t, gone))
	assert.Equal(t, map[string]string{gpu0: "ok", gpu1: "failed"}, states(t, gone))
	assert.Empty(t, pointsOf(gone, gpu1, "hw.power"))
	assert.Equal(t, pointsOf(first, gpu1, "nvidia.gpu.info")[0].Attributes().AsRaw(), pointsOf(gone, gpu1, "nvidia.gpu.info")[0].Attributes().AsRaw())

	d.set(t, "epoch 2", "count 2")
	r.after(t, time.Minute)
	assert.Equal(t, map[string]string{gpu0: "ok", gpu1: "ok"}, states(t, r.after(t, time.Minute)))

	d.set(t, "epoch 3", "count 1")
	r.after(t, time.Minute)
	assert.Equal(t, map[string]string{gpu0: "ok"}, states(t, r.after(t, r.scraper.cfg.remember)), "it is not remembered for ever")
}

func runGPUIsLost(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "lost 0")
	assert.Equal(t, map[string]string{gpu0: "failed", gpu1: "ok"}, states(t, r.after(t, 10*time.Second)))
	d.set(t)
	assert.Equal(t, map[string]string{gpu0: "ok", gpu1: "ok"}, states(t, r.after(t, 10*time.Second)))
}

func runGPUHangs(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	r.scrape(t)
	d.set(t, "hang:nvmlDeviceGetPowerUsage 0")
	assert.Equal(t, map[string]string{gpu0: "failed", gpu1: "ok"}, states(t, r.after(t, 10*time.Second)))
	d.set(t)
	require.Eventually(t, func() bool { return states(t, r.scrape(t))[gpu0] == "ok" }, time.Minute, time.Millisecond)
}

// Without a metrics pipeline the receiver reads the GPUs itself.
func runLogsAlone(t *testing.T, d *fakeDriver) {
	cfg, sink := d.config(t), new(consumertest.LogsSink)
	cfg.InitialDelay, cfg.CollectionInterval = 0, 20*time.Millisecond
	cfg.Timeout = time.Minute // a busy machine does not make each call within the interval
	logs, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	var calls []string
	require.Eventually(t, func() bool {
		calls = append(calls, d.calls(t)...)
		return countOf(calls, "nvmlEventSetWait_v2") > 0
	}, time.Minute, time.Millisecond)
	d.set(t, "record 1", "event 1", "xid 79", "xid_gpu 1")
	record := recordsOf(await(t, sink, 1))[0]
	resource := sink.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes()
	assert.Equal(t, "FATAL", record.SeverityText())
	assert.Equal(t, gpu1, text(record.Attributes(), "hw.id"))
	assert.Equal(t, "1", text(record.Attributes(), "nvidia.gpu.index"))
	assert.Empty(t, text(record.Attributes(), "nvidia.gpu.source"), "it is no recording's")
	assert.NotEmpty(t, text(record.Attributes(), "nvidia.gpu.pci.bus_id"))
	assert.Equal(t, gpu1, text(resource, "hw.id"))
	assert.NotEmpty(t, text(resource, "hw.driver_version"))
	require.NoError(t, logs.Shutdown(t.Context()))
	calls = append(calls, d.calls(t)...)
	assert.Equal(t, 1, countOf(calls, "nvmlInit_v2"))
	assert.Equal(t, 1, countOf(calls, "nvmlShutdown"))
}

// The receiver waits for a driver, and its errors come when it is there.
func runLogsWithoutDriver(t *testing.T, d *fakeDriver) {
	cfg, sink, clock := d.config(t), new(consumertest.LogsSink), newClock()
	cfg.InitialDelay, cfg.CollectionInterval = 0, time.Millisecond
	startLogs(t, cfg, receivertest.NewNopSettings(metadata.Type), &monitors{}, sink, func(l *gpuLogs) {
		l.now = clock.now
		// A busy machine does not make a call within a millisecond.
		cfg.Timeout = time.Minute
	})
	d.set(t, "init 0", "record 1")
	require.Eventually(t, func() bool {
		clock.advance(time.Second)
		return countOf(d.calls(t), "nvmlEventSetWait_v2") > 0
	}, time.Minute, time.Millisecond)
	d.set(t, "event 1", "xid 31")
	assert.Equal(t, "WARN", recordsOf(await(t, sink, 1))[0].SeverityText())
}

// What is not told is absent: a GPU without events has no count of 0.
func runErrorsThatNobodyTold(t *testing.T, d *fakeDriver) {
	metrics := newRig(t, d.config(t)).scrape(t)
	assert.Empty(t, errorsOf(metrics, gpu0))
	assert.Equal(t, "ok", states(t, metrics)[gpu0])

	d.set(t)
	assert.Len(t, errorsOf(newRig(t, d.config(t)).scrape(t), gpu0), len(xid.Common))
}
