//go:build cgo && linux

package gpureceiver

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const (
	gpu0 = "GPU-00000000-0000-0000-0000-000000000000"
	gpu1 = "GPU-00000000-0000-0000-0000-000000000001"
)

// hungTimeout is how long scenarios wait for a call that hangs. The calls that
// do not hang must end in that time, also on a machine that does much else.
const hungTimeout = 2 * time.Second

var scenarios = map[string]scenario{
	"full":               {run: runFull},
	"old driver":         {library: "OLD_DRIVER", run: runOldDriver},
	"new driver":         {library: "NEW_DRIVER", run: runNewDriver},
	"no NVML library":    {library: "NO_NVML", run: runNoNVML},
	"no driver":          {control: "init 9", run: runNoDriver},
	"version mismatch":   {control: "init 18", run: runVersionMismatch},
	"no permission":      {control: "init 4", run: runNoPermission},
	"count fails":        {control: "result:nvmlDeviceGetCount_v2 999", run: runCountFails},
	"library appears":    {run: runLibraryAppears},
	"hung GPU":           {run: runHungGPU},
	"hung driver":        {run: runHungDriver},
	"hung at shutdown":   {control: "hang:nvmlDeviceGetPowerUsage 0", run: runHungAtShutdown},
	"hung at start":      {control: "hang:nvmlInit_v2 -1", run: runHungAtShutdown},
	"lost GPU":           {run: runLostGPU},
	"driver reset":       {control: "energy 900000", run: runDriverReset},
	"driver goes away":   {run: runDriverGoesAway},
	"devices go away":    {run: runDevicesGoAway},
	"GPUs appear":        {control: "count 0", run: runGPUsAppear},
	"garbage":            {control: "utilization 808334905", run: runGarbage},
	"impossible samples": {control: "samples 100\nsample_value 40", run: runImpossibleSamples},
	"one bad call":       {control: "result:nvmlDeviceGetPowerUsage 999", run: runOneBadCall},
	"two receivers":      {run: runTwoReceivers},
	"samples":            {control: "samples 100", run: runSamples},
}

// config is for a host whose root directory is below the test's data.
func (d *fakeDriver) config(t *testing.T) *Config {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("testdata", "root"))
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	cfg.Source = SourceNVML
	cfg.NVML.LibraryPath = d.library
	cfg.RootPath = root
	cfg.KernelLog.Enabled = false // the machine's own
	return cfg
}

func runFull(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	golden.Compare(t, filepath.Join("testdata", "nvml", "full.txt"), golden.Metrics(t, r.scrape(t)))
	assert.Equal(t, []string{"The NVIDIA driver answers"}, r.logged())
	for _, quiet := range []string{"otelcol_receiver_gpu_dropped_values", "otelcol_receiver_gpu_failed_calls"} {
		_, err := r.telemetry.GetMetric(quiet)
		require.Error(t, err, "nothing of it happened: %s", quiet)
	}

	require.NoError(t, r.scraper.Shutdown(t.Context()))
	require.NoError(t, r.scraper.Shutdown(t.Context()))
}

// Values whose symbols are missing are absent, and the process lives.
func runOldDriver(t *testing.T, d *fakeDriver) {
	metrics := newRig(t, d.config(t)).scrape(t)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.energy"))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.fabric.state"))
	assert.Empty(t, pointsOf(metrics, gpu0, "nvidia.gpu.workload.memory.usage"))
	assert.Len(t, pointsOf(metrics, gpu0, "hw.temperature"), 1)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.gpu.utilization"), 1)
	// The old call counts what the driver reserves as used.
	assert.InDelta(t, 21<<30, value(t, metrics, gpu0, "hw.gpu.memory.usage"), 0)
	assert.InDelta(t, 350.5, value(t, metrics, gpu1, "hw.power"), 0)
}

func runNewDriver(t *testing.T, d *fakeDriver) {
	metrics := newRig(t, d.config(t)).scrape(t)
	temperatures := pointsOf(metrics, gpu0, "hw.temperature")
	require.Len(t, temperatures, 2)
	assert.InDelta(t, 56, temperatures[0].DoubleValue(), 0)
}

func runNoNVML(t *testing.T, d *fakeDriver) {
	metrics := newRig(t, d.config(t)).scrape(t)
	assert.Equal(t, "library_missing", driverState(t, metrics))
}

// A failed Init must not be followed by a Shutdown, which ends the process.
func runNoDriver(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.snapshot(t)
	metrics := r.scrape(t)
	assert.Equal(t, "driver_missing", driverState(t, metrics), "what the logs have found")
	assert.Equal(t, 1, metrics.ResourceMetrics().Len())
	assert.Equal(t, "driver_missing", driverState(t, r.after(t, time.Minute)))
	assert.Len(t, r.logged(), 1, "one line, however often it is tried")

	d.set(t, "init 0")
	assert.Equal(t, "driver_missing", driverState(t, r.scrape(t)), "not before the back-off is over")
	assert.Equal(t, "ok", driverState(t, r.after(t, 30*time.Second)))
	assert.Equal(t, "The NVIDIA driver answers", r.logged()[1])
}

func runVersionMismatch(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.Equal(t, "version_mismatch", driverState(t, r.scrape(t)))
	require.Len(t, r.logged(), 1)
	assert.Contains(t, r.logged()[0], "restart the collector")
}

func runNoPermission(t *testing.T, d *fakeDriver) {
	assert.Equal(t, "no_permission", driverState(t, newRig(t, d.config(t)).scrape(t)))
}

// An Init that succeeded is undone when the driver then fails.
func runCountFails(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.Equal(t, "failed", driverState(t, r.scrape(t)))
	d.set(t)
	assert.Equal(t, "ok", driverState(t, r.after(t, 30*time.Second)))
}

func runLibraryAppears(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	r := newRig(t, cfg)
	assert.Equal(t, "library_missing", driverState(t, r.scrape(t)))
	assert.Equal(t, "library_missing", driverState(t, r.after(t, time.Minute)))
	assert.Len(t, r.logged(), 1)

	copyFile(t, d.library, cfg.NVML.LibraryPath)
	metrics := r.after(t, 30*time.Second)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)
}

// A GPU whose call hangs costs the others nothing, and what it told before the
// call is kept.
func runHungGPU(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	r.scrape(t)

	d.set(t, "hang:nvmlDeviceGetPowerUsage 0")
	metrics := r.scrape(t)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.gpu.memory.usage"), 1)
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.power"))
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)
	assert.Equal(t, "ok", driverState(t, metrics))

	// No further call is made about it while the first one hangs.
	metrics = r.scrape(t)
	assert.Len(t, pointsOf(metrics, gpu0, "nvidia.gpu.info"), 1)
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.gpu.memory.usage"))
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)

	d.set(t)
	require.Eventually(t, func() bool {
		return len(pointsOf(r.scrape(t), gpu0, "hw.power")) == 1
	}, time.Minute, time.Millisecond)
	assert.Equal(t, []string{
		"The NVIDIA driver answers",
		"The GPU does not answer; the other GPUs are still read",
		"The GPU answers again",
	}, r.logged())
}

func runHungDriver(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	r.scrape(t)

	d.set(t, "hang:nvmlDeviceGetCount_v2 -1")
	assert.Equal(t, "unresponsive", driverState(t, r.scrape(t)))
	d.set(t)
	require.Eventually(t, func() bool {
		return driverState(t, r.after(t, 30*time.Second)) == "ok"
	}, time.Minute, time.Millisecond)
}

// The time-out is an hour here, so that only the interruption can end the
// reading.
func runHungAtShutdown(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.InitialDelay = 0
	cfg.CollectionInterval = time.Hour
	cfg.Timeout = time.Hour
	receiver, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, d.hangs, time.Minute, time.Millisecond)

	require.NoError(t, receiver.Shutdown(t.Context()))
	require.NoError(t, receiver.Shutdown(t.Context()))
	assert.True(t, d.hangs(), "the call still hangs after Shutdown")

	// The goroutine that was left behind ends when its call returns.
	d.set(t)
	require.Eventually(t, func() bool { return !d.hangs() }, time.Minute, time.Millisecond)
}

func runLostGPU(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	before := r.scrape(t)
	d.set(t, "lost 0")
	metrics := r.scrape(t)
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.gpu.utilization"))
	assert.Len(t, pointsOf(metrics, gpu0, "nvidia.gpu.info"), 1)
	assert.InDelta(t, value(t, before, gpu1, "hw.power"), value(t, metrics, gpu1, "hw.power"), 0)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Len(t, r.logged(), 2)

	d.set(t)
	assert.InDelta(t, value(t, before, gpu0, "hw.power"), value(t, r.scrape(t), gpu0, "hw.power"), 0)
	assert.Equal(t, "The GPU answers again", r.logged()[2])
}

func runDriverReset(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	start := pointsOf(r.scrape(t), gpu0, "hw.energy")[0].StartTimestamp()
	d.set(t, "energy 20000")
	metrics := r.after(t, 10*time.Second)
	assert.InDelta(t, 920, value(t, metrics, gpu0, "hw.energy"), 0)
	assert.Equal(t, start, pointsOf(metrics, gpu0, "hw.energy")[0].StartTimestamp())
}

// A session that the driver has forgotten is opened again.
func runDriverGoesAway(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "all 9")
	assert.Equal(t, "driver_missing", driverState(t, r.scrape(t)))
	d.set(t, "all 999", "result:nvmlDeviceGetCount_v2 0")
	assert.Equal(t, "failed", driverState(t, r.after(t, time.Minute)))
	d.set(t)
	metrics := r.after(t, time.Minute)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Len(t, pointsOf(metrics, gpu0, "hw.power"), 1)
}

// Handles that have become worthless are had anew by opening the library again.
func runDevicesGoAway(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "epoch 1")
	assert.Equal(t, "failed", driverState(t, r.scrape(t)))
	metrics := r.after(t, 30*time.Second)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)
}

// A driver without GPUs is all right, and GPUs that come later are found.
func runGPUsAppear(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.Equal(t, "ok", driverState(t, r.scrape(t)))
	assert.Equal(t, "ok", driverState(t, r.scrape(t)))
	d.set(t, "count 2")
	metrics := r.after(t, 30*time.Second)
	assert.Equal(t, "ok", driverState(t, metrics))
	assert.Len(t, ids(metrics), 2)
	assert.Equal(t, []string{"The NVIDIA driver answers"}, r.logged())
}

func runGarbage(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	metrics := r.scrape(t)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.gpu.utilization"), 2, "encoder and decoder")
	dropped, err := r.telemetry.GetMetric("otelcol_receiver_gpu_dropped_values")
	require.NoError(t, err)
	counts := dropped.Data.(metricdata.Sum[int64]).DataPoints
	require.NotEmpty(t, counts)
	for _, count := range counts {
		id, _ := count.Attributes.Value("receiver")
		assert.Equal(t, r.scraper.settings.ID.String(), id.AsString(), "two receivers of a collector are told apart")
	}
}

// Of the samples 40, 80 and 120 % the last cannot be true. It is counted once,
// although the driver still has it at the next reading.
func runImpossibleSamples(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	assert.InDelta(t, 0.8, pointsOf(r.scrape(t), gpu0, "nvidia.gpu.utilization.peak")[0].DoubleValue(), 1e-9)
	for range 3 {
		dropped, err := r.telemetry.GetMetric("otelcol_receiver_gpu_dropped_values")
		require.NoError(t, err)
		counts := dropped.Data.(metricdata.Sum[int64]).DataPoints
		require.Len(t, counts, 1)
		value, _ := counts[0].Attributes.Value("nvml.call")
		assert.Equal(t, "samples", value.AsString())
		assert.Equal(t, int64(2), counts[0].Value, "one of each GPU")
		r.scrape(t)
	}
}

func runOneBadCall(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	metrics := r.scrape(t)
	assert.Empty(t, pointsOf(metrics, gpu0, "hw.power"))
	assert.Len(t, pointsOf(metrics, gpu0, "hw.temperature"), 2)
	_, err := r.telemetry.GetMetric("otelcol_receiver_gpu_failed_calls")
	require.NoError(t, err)
	assert.Len(t, r.logged(), 1, "one bad call is counted and not logged")
}

// The receivers of one process share its NVML, and the first one's Shutdown
// leaves it to the second.
func runTwoReceivers(t *testing.T, d *fakeDriver) {
	first, second := newRig(t, d.config(t)), newRig(t, d.config(t))
	var metrics [2]pmetric.Metrics
	for i, r := range []*rig{first, second} {
		metrics[i] = r.scrape(t)
	}
	assert.InDelta(t, value(t, metrics[0], gpu0, "hw.power"), value(t, metrics[1], gpu0, "hw.power"), 0)
	require.NoError(t, first.scraper.Shutdown(context.Background()))
	assert.Len(t, pointsOf(second.scrape(t), gpu0, "hw.power"), 1)
}

// Utilization is the mean of the samples since the last reading, and the
// driver's own period where there are none.
func runSamples(t *testing.T, d *fakeDriver) {
	general := func(metrics pmetric.Metrics) float64 {
		for _, point := range pointsOf(metrics, gpu0, "hw.gpu.utilization") {
			if text(point.Attributes(), "hw.gpu.task") == "general" {
				return point.DoubleValue()
			}
		}
		return -1
	}
	r := newRig(t, d.config(t))
	assert.InDelta(t, 0.2, general(r.scrape(t)), 1e-9)
	d.set(t, "samples 102")
	assert.InDelta(t, 0.25, general(r.scrape(t)), 1e-9, "the first of the three was counted before")
	assert.InDelta(t, 0.42, general(r.scrape(t)), 1e-9, "nothing new")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = source.Close() }()
	next := to + ".next"
	target, err := os.Create(next)
	require.NoError(t, err)
	_, err = io.Copy(target, source)
	require.NoError(t, err)
	require.NoError(t, target.Close())
	require.NoError(t, os.Rename(next, to))
}
