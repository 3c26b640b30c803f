//go:build cgo && linux

package gpureceiver

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"events":                        {run: runEvents},
		"events of an old driver":       {library: "OLD_DRIVER", run: runEventsOfAnOldDriver},
		"GPUs without events":           {control: "event_types 0", run: runGPUsWithoutEvents},
		"waiting fails":                 {control: "result:nvmlEventSetWait_v2 999", run: runWaitingFails},
		"hung registration":             {control: "hang:nvmlDeviceRegisterEvents 0", run: runHungRegistration},
		"hung wait at a reopening":      {control: "hang:nvmlEventSetWait_v2 -1", run: runHungWaitAtReopening},
		"hung wait":                     {control: "hang:nvmlEventSetWait_v2 -1", run: runHungWait},
		"metrics and logs":              {control: "record 1", run: runMetricsAndLogs},
		"hung process list":             {control: "hang:nvmlDeviceGetComputeRunningProcesses_v3 0", run: runHungProcessList},
		"hung slow call":                {run: runHungSlowCall},
		"slow interval":                 {control: "record 1", run: runSlowInterval},
		"growing process list":          {control: "growing 6", run: runGrowingProcessList},
		"processes of several kinds":    {control: "graphics 4242\nmps 7", run: runProcessesOfSeveralKinds},
		"process utilization":           {control: "process_samples 100", run: runProcessUtilization},
		"the binding panics":            {control: "process_samples 100\noverflow 1", run: runBindingPanics},
		"process ends":                  {run: runProcessEnds},
		"lost in the middle":            {control: "lost_after 14", run: runLostInTheMiddle},
		"all GPUs lost":                 {run: runAllGPUsLost},
		"one GPU lost for long":         {run: runOneGPULostForLong},
		"one GPU lost, not persistent":  {control: "persistence 0", run: runOneGPULostNotPersistent},
		"sleeping GPU":                  {control: "record 1", run: runSleepingGPU},
		"own metrics":                   {library: "OLD_DRIVER", run: runOwnMetrics},
		"hung while it is opened again": {run: runHungWhileOpenedAgain},
	})
}

// draws reports whether a GPU's power was read.
func draws(gpu *device.GPU) bool {
	return device.PowerDraw.Of(&gpu.Readings).Known
}

// snapshot reads the GPUs past the metrics.
func (r *rig) snapshot(t *testing.T) device.Snapshot {
	t.Helper()
	return r.scraper.monitor.Snapshot(t.Context())
}

// listen returns a channel of the events that come from now on.
func (r *rig) listen(t *testing.T) <-chan device.Event {
	t.Helper()
	told := make(chan device.Event, 16)
	t.Cleanup(r.scraper.monitor.Listen(func(event device.Event) { told <- event }))
	return told
}

// nextEvent waits for the next event.
func nextEvent(t *testing.T, told <-chan device.Event) device.Event {
	t.Helper()
	select {
	case event := <-told:
		return event
	case <-time.After(time.Minute):
		require.Fail(t, "no event was told")
		return device.Event{}
	}
}

// count is the sum of the points of one of the receiver's own counters whose
// attributes have the wanted ones.
func (r *rig) count(t *testing.T, name string, wanted ...attribute.KeyValue) int {
	t.Helper()
	metric, err := r.telemetry.GetMetric("otelcol_receiver_gpu_" + name)
	if err != nil {
		return 0
	}
	total := 0
	add := func(attributes attribute.Set, value int64) {
		for _, w := range wanted {
			if got, _ := attributes.Value(w.Key); got != w.Value {
				return
			}
		}
		total += int(value)
	}
	switch data := metric.Data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, point.Value)
		}
	case metricdata.Gauge[int64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, point.Value)
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			add(point.Attributes, int64(point.Count))
		}
	default:
		t.Fatalf("%s is a %T", name, data)
	}
	return total
}

// calls returns the calls that the library wrote down, each a function and the
// index of its GPU, and forgets them.
func (d *fakeDriver) calls(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(d.control + ".calls")
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	// The library goes on writing: what it adds now is the next one's.
	fresh := strings.TrimSpace(string(raw[d.seen:]))
	d.seen = len(raw)
	if fresh == "" {
		return nil
	}
	return strings.Split(fresh, "\n")
}

func countOf(calls []string, wanted string) int {
	count := 0
	for _, call := range calls {
		if strings.HasPrefix(call, wanted) {
			count++
		}
	}
	return count
}

// invisible makes a root directory in which no process can be seen.
func invisible(t *testing.T, cfg *Config) *Config {
	t.Helper()
	cfg.RootPath = t.TempDir()
	return cfg
}

// An event says whose it is and which MIG device it concerns.
func runEvents(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	told := r.listen(t)
	for _, gpu := range r.snapshot(t).GPUs {
		assert.True(t, gpu.EventsKnown, gpu.ID)
	}
	d.set(t, "event 1", "xid 31", "xid_gpu 1", "xid_gi 3", "xid_ci 0")
	event := nextEvent(t, told)
	assert.Equal(t, gpu1, event.GPU.ID)
	assert.Equal(t, "NVIDIA Fake 80GB", event.GPU.Name)
	assert.Equal(t, "gpu-node-7", event.Host)
	assert.Equal(t, r.clock, event.Time)
	assert.Equal(t, uint64(31), event.Code)
	assert.Equal(t, workload.Number{Value: 3, Known: true}, event.GPUInstance)
	assert.Equal(t, workload.Number{Known: true}, event.ComputeInstance)

	d.set(t, "event 2", "xid 79")
	event = nextEvent(t, told)
	assert.Equal(t, gpu0, event.GPU.ID)
	assert.Equal(t, uint64(79), event.Code)
	assert.False(t, event.GPUInstance.Known)
	assert.False(t, event.ComputeInstance.Known)

	// Opening the driver again registers the GPUs again.
	d.set(t, "epoch 1")
	r.scrape(t)
	r.clock = r.clock.Add(time.Minute)
	gpus := r.snapshot(t).GPUs
	require.Len(t, gpus, 2)
	for _, gpu := range gpus {
		assert.True(t, gpu.EventsKnown, gpu.ID)
	}
	d.set(t, "epoch 1", "event 3")
	assert.Equal(t, gpu0, nextEvent(t, told).GPU.ID)
}

func runEventsOfAnOldDriver(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	told := r.listen(t)
	r.snapshot(t)
	d.set(t, "event 1")
	assert.Equal(t, gpu0, nextEvent(t, told).GPU.ID)
}

// A GPU without events is no failure, and is not said to have none.
func runGPUsWithoutEvents(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	for _, gpu := range r.snapshot(t).GPUs {
		assert.False(t, gpu.EventsKnown)
		assert.True(t, draws(&gpu))
	}
	assert.Zero(t, r.count(t, "failed_calls"))
}

// Waits that fail are not made again at once.
func runWaitingFails(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	told := r.listen(t)
	metrics := r.scrape(t)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.power"), 1)
	require.Eventually(t, func() bool { return r.count(t, "failed_calls") > 0 }, time.Minute, time.Millisecond)
	d.set(t, "event 1")
	assert.Equal(t, gpu0, nextEvent(t, told).GPU.ID, "it comes in the end")
	assert.LessOrEqual(t, r.count(t, "failed_calls"), 3, "a second was waited, and not failed through")
}

// A registration that hangs costs events, and no value.
func runHungRegistration(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	for range 2 {
		for _, gpu := range r.snapshot(t).GPUs {
			assert.True(t, draws(&gpu), gpu.ID)
			assert.False(t, gpu.EventsKnown, gpu.ID)
		}
	}
	assert.True(t, d.hangs())
	assert.Equal(t, 1, r.count(t, "abandoned_calls"))
	d.set(t)
	require.Eventually(t, func() bool { return !d.hangs() }, time.Minute, time.Millisecond)
}

// A wait that hangs delays neither a reading nor the end. The library stays
// open, because it would be closed under the wait.
func runHungWait(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	require.Eventually(t, d.hangs, time.Minute, time.Millisecond)
	assert.Len(t, pointsOf(r.scrape(t), gpu0, "hw.power"), 1)
	require.NoError(t, r.scraper.Shutdown(t.Context()))
	assert.True(t, d.hangs(), "the wait still hangs after Shutdown")
	d.set(t)
	require.Eventually(t, func() bool { return !d.hangs() }, time.Minute, time.Millisecond)
}

// A wait that hangs while the driver is to be opened again keeps it open. GPUs
// that then answer again are read, and their events come as soon as the wait
// has ended.
func runHungWaitAtReopening(t *testing.T, d *fakeDriver) {
	const hang = "hang:nvmlEventSetWait_v2 -1"
	r := newRig(t, d.config(t))
	told := r.listen(t)
	r.scrape(t)
	require.Eventually(t, d.hangs, time.Minute, time.Millisecond)
	d.set(t, hang, "epoch 1")
	assert.Equal(t, "failed", driverState(t, r.scrape(t)))

	d.set(t, hang)
	for _, gpu := range r.snapshot(t).GPUs {
		assert.True(t, draws(&gpu), gpu.ID)
		assert.False(t, gpu.EventsKnown, "nobody listens to %s", gpu.ID)
	}
	d.set(t)
	require.Eventually(t, func() bool {
		gpus := r.snapshot(t).GPUs
		return gpus[0].EventsKnown && gpus[1].EventsKnown
	}, time.Minute, time.Millisecond)
	d.set(t, "event 1")
	assert.Equal(t, gpu0, nextEvent(t, told).GPU.ID)
	assert.Equal(t, 1, r.count(t, "driver_starts"))
}

// Metrics and logs of one receiver open the driver once, and an event is told
// to both.
func runMetricsAndLogs(t *testing.T, d *fakeDriver) {
	factory := NewFactory()
	cfg := d.config(t)
	cfg.InitialDelay = 0
	cfg.CollectionInterval = 20 * time.Millisecond
	cfg.Timeout = time.Minute // a busy machine does not make each call within the interval
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.NewNop()
	metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	first, err := factory.CreateMetrics(t.Context(), settings, cfg, metrics)
	require.NoError(t, err)
	second, err := factory.CreateLogs(t.Context(), settings, cfg, logs)
	require.NoError(t, err)
	require.NoError(t, first.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, second.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 }, time.Minute, time.Millisecond)

	d.set(t, "record 1", "event 1", "xid 48")
	require.Eventually(t, func() bool { return logs.LogRecordCount() == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		all := metrics.AllMetrics()
		for _, point := range pointsOf(all[len(all)-1], gpu0, "nvidia.gpu.xid.errors") {
			if text(point.Attributes(), "nvidia.gpu.xid.code") == "48" && point.IntValue() == 1 {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)

	require.NoError(t, first.Shutdown(t.Context()))
	d.set(t, "record 1", "event 2", "xid 48")
	require.Eventually(t, func() bool { return logs.LogRecordCount() == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, second.Shutdown(t.Context()))
	calls := d.calls(t)
	assert.Equal(t, 1, countOf(calls, "nvmlInit_v2"))
	assert.Equal(t, 1, countOf(calls, "nvmlShutdown"))
}

// The first reading lists processes, after all that is quick.
func runHungProcessList(t *testing.T, d *fakeDriver) {
	cfg := invisible(t, d.config(t))
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	gpus := r.snapshot(t).GPUs
	assert.True(t, draws(&gpus[0]))
	assert.False(t, gpus[0].ProcessesKnown)
	assert.True(t, gpus[1].ProcessesKnown)
	assert.Len(t, gpus[1].Processes, 2)

	gpus = r.snapshot(t).GPUs
	assert.True(t, gpus[0].Unresponsive, "it is left alone while its call hangs")
	assert.True(t, draws(&gpus[1]))
	d.set(t)
	require.Eventually(t, func() bool {
		return draws(&r.snapshot(t).GPUs[0])
	}, time.Minute, time.Millisecond)
}

// A slow call that hangs costs its own GPU only, and does not keep the receiver from
// ending.
func runHungSlowCall(t *testing.T, d *fakeDriver) {
	cfg := invisible(t, d.config(t))
	cfg.Timeout = hungTimeout
	cfg.slowInterval = 0
	r := newRig(t, cfg)
	require.Len(t, r.snapshot(t).GPUs, 2)
	d.set(t, "hang:nvmlDeviceGetGraphicsRunningProcesses_v3 0")
	require.Eventually(t, func() bool {
		gpus := r.snapshot(t).GPUs
		assert.True(t, draws(&gpus[1]))
		return gpus[0].Unresponsive
	}, time.Minute, time.Millisecond)
	gpus := r.snapshot(t).GPUs
	assert.Empty(t, gpus[0].Processes, "nothing old is told of a GPU that hangs")
	assert.Len(t, gpus[1].Processes, 2)
	assert.Equal(t, 1, r.count(t, "abandoned_calls"))

	require.NoError(t, r.scraper.Shutdown(t.Context()))
	assert.True(t, d.hangs())
	d.set(t)
	require.Eventually(t, func() bool { return !d.hangs() }, time.Minute, time.Millisecond)
}

// Processes are listed in the first reading, and then once an interval.
func runSlowInterval(t *testing.T, d *fakeDriver) {
	const list = "nvmlDeviceGetComputeRunningProcesses_v3"
	cfg := invisible(t, d.config(t))
	r := newRig(t, cfg)
	require.Len(t, r.snapshot(t).GPUs[0].Processes, 2)
	d.calls(t)
	r.clock = r.clock.Add(29 * time.Second)
	require.Len(t, r.snapshot(t).GPUs[0].Processes, 2)
	assert.Zero(t, countOf(d.calls(t), list))

	d.set(t, "record 1", "gone 1")
	r.clock = r.clock.Add(time.Second)
	for range 2 {
		gpus := r.snapshot(t).GPUs
		assert.Empty(t, gpus[0].Processes)
		assert.Empty(t, gpus[1].Processes)
		assert.True(t, gpus[0].ProcessesKnown, "it is known that there is none")
	}
	// Each GPU was listed once: asking for the count finds none at once.
	assert.Equal(t, 2, countOf(d.calls(t), list))
}

func runGrowingProcessList(t *testing.T, d *fakeDriver) {
	r := newRig(t, invisible(t, d.config(t)))
	assert.Len(t, r.snapshot(t).GPUs[0].Processes, 8)
	assert.Zero(t, r.count(t, "failed_calls"))
}

// A process is one, whatever it has on the GPU.
func runProcessesOfSeveralKinds(t *testing.T, d *fakeDriver) {
	r := newRig(t, invisible(t, d.config(t)))
	processes := r.snapshot(t).GPUs[0].Processes
	require.Len(t, processes, 3)
	assert.Equal(t, uint32(4242), processes[0].PID)
	assert.Equal(t, []string{"compute", "graphics"}, processes[0].Types)
	assert.InDelta(t, 20<<30, processes[0].Memory.Value, 0, "the larger of both")
	assert.Equal(t, uint32(7), processes[2].PID)
	assert.Equal(t, []string{"mps"}, processes[2].Types)
}

// Utilization is the mean of the samples since the last round, and 0 for who
// has none.
func runProcessUtilization(t *testing.T, d *fakeDriver) {
	cfg := invisible(t, d.config(t))
	cfg.slowInterval = time.Minute
	r := newRig(t, cfg)
	processes := r.snapshot(t).GPUs[0].Processes
	assert.InDeltaMapValues(t, device.Numbers{"general": 0.5, "encoder": 0.05, "decoder": 0}, processes[0].Utilization, 1e-9)
	assert.InDeltaMapValues(t, device.Numbers{"general": 0, "encoder": 0, "decoder": 0}, processes[1].Utilization, 1e-9)

	// Nothing new since then: the driver finds no samples, and all were idle.
	r.clock = r.clock.Add(time.Minute)
	require.Eventually(t, func() bool {
		return r.snapshot(t).GPUs[0].Processes[0].Utilization["general"] == 0
	}, time.Minute, time.Millisecond)
	assert.Zero(t, r.count(t, "failed_calls"))
}

func runBindingPanics(t *testing.T, d *fakeDriver) {
	r := newRig(t, invisible(t, d.config(t)))
	processes := r.snapshot(t).GPUs[0].Processes
	require.Len(t, processes, 2)
	assert.Nil(t, processes[0].Utilization)
	assert.Equal(t, 2, r.count(t, "failed_calls", attribute.String("nvml.call", "process_utilization"), attribute.String("nvml.return", "PANIC")))
}

// A process that has ended leaves at the next reading, whenever the driver is
// asked again.
func runProcessEnds(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(cfg.RootPath)))
	cfg.RootPath = root
	r := newRig(t, cfg)
	require.Len(t, r.snapshot(t).GPUs[0].Processes, 1)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "proc", "4242")))
	gpu := r.snapshot(t).GPUs[0]
	assert.Empty(t, gpu.Processes)
	assert.True(t, gpu.ProcessesKnown)
}

// A GPU that falls off the bus while it is read has no values at all.
func runLostInTheMiddle(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	var gpus []device.GPU
	for len(gpus) == 0 || !gpus[0].Lost {
		gpus = r.snapshot(t).GPUs
		require.Len(t, gpus, 2)
	}
	assert.Equal(t, gpu0, gpus[0].ID)
	assert.Equal(t, device.Readings{}, gpus[0].Readings)
	assert.False(t, gpus[0].ProcessesKnown)
	assert.True(t, draws(&gpus[1]))
}

// A host whose GPUs are all lost is looked at again, and finds them when they
// are back.
func runAllGPUsLost(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "lost -2")
	snapshot := r.snapshot(t)
	require.Len(t, snapshot.GPUs, 2)
	for _, gpu := range snapshot.GPUs {
		assert.True(t, gpu.Lost)
		assert.NotEmpty(t, gpu.Name)
	}
	assert.Equal(t, device.DriverOK, snapshot.Driver)
	assert.Empty(t, r.snapshot(t).GPUs, "not before the back-off is over")
	d.set(t)
	metrics := r.after(t, 30*time.Second)
	assert.Len(t, pointsOf(metrics, gpu0, "hw.power"), 1)
	assert.Len(t, pointsOf(metrics, gpu1, "hw.power"), 1)
	assert.Equal(t, 2, r.count(t, "driver_starts"))
}

// While others work, a lost GPU is looked for now and then only.
func runOneGPULostForLong(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "lost 0")
	r.after(t, 299*time.Second)
	assert.Len(t, r.snapshot(t).GPUs, 2)
	assert.Equal(t, 1, r.count(t, "driver_starts"))

	// It is not there when the driver is opened again.
	r.after(t, 2*time.Second)
	gpus := r.snapshot(t).GPUs
	assert.Equal(t, 2, r.count(t, "driver_starts"))
	require.Len(t, gpus, 1)
	assert.True(t, draws(&gpus[0]))

	d.set(t)
	assert.Equal(t, 2, r.count(t, "driver_starts"))
	r.after(t, 5*time.Minute)
	assert.Len(t, pointsOf(r.scrape(t), gpu0, "hw.power"), 1)
}

// Opening the driver again would make the others start anew.
func runOneGPULostNotPersistent(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	d.set(t, "lost 0", "persistence 0")
	for range 5 {
		assert.Len(t, pointsOf(r.after(t, time.Hour), gpu1, "hw.power"), 1)
	}
	assert.Equal(t, 1, r.count(t, "driver_starts"))
}

// No call is made about a GPU that the host has put to sleep.
func runSleepingGPU(t *testing.T, d *fakeDriver) {
	cfg := invisible(t, d.config(t))
	cfg.slowInterval = 0
	directory := filepath.Join(cfg.RootPath, "sys", "bus", "pci", "devices", "0001:19:00.0", "power")
	require.NoError(t, os.MkdirAll(directory, 0o750))
	status := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, "runtime_status"), []byte(text), 0o600))
	}
	status("active\n")
	r := newRig(t, cfg)
	require.False(t, r.snapshot(t).GPUs[0].Asleep)

	status("suspended\n")
	d.calls(t)
	for range 5 {
		gpus := r.snapshot(t).GPUs
		assert.True(t, gpus[0].Asleep)
		assert.Equal(t, device.Readings{}, gpus[0].Readings)
		assert.True(t, draws(&gpus[1]))
	}
	assert.NotContains(t, strings.Join(d.calls(t), "\n")+"\n", " 0\n")

	status("active\n")
	assert.True(t, draws(&r.snapshot(t).GPUs[0]))
}

func runOwnMetrics(t *testing.T, d *fakeDriver) {
	r := newRig(t, d.config(t))
	r.scrape(t)
	assert.Equal(t, 1, r.count(t, "driver_attempts"))
	assert.Equal(t, 1, r.count(t, "driver_starts"))
	assert.Equal(t, 2, r.count(t, "seen_gpus"))
	assert.Equal(t, 2, r.count(t, "unsupported_calls", attribute.String("nvml.call", "energy")))
	assert.Zero(t, r.count(t, "unsupported_calls", attribute.String("nvml.call", "power")))
	for call, result := range map[string]string{"power": "SUCCESS", "energy": "FUNCTION_NOT_FOUND"} {
		assert.Equal(t, 2, r.count(t, "call_duration", attribute.String("nvml.call", call), attribute.String("nvml.return", result)), call)
	}
	assert.Zero(t, r.count(t, "abandoned_calls"))
}

// The library is not closed while a call hangs in it.
func runHungWhileOpenedAgain(t *testing.T, d *fakeDriver) {
	cfg := d.config(t)
	cfg.Timeout = hungTimeout
	r := newRig(t, cfg)
	r.scrape(t)
	d.set(t, "hang:nvmlDeviceGetPowerUsage 0")
	r.scrape(t)
	require.True(t, d.hangs())
	d.set(t, "hang:nvmlDeviceGetPowerUsage 0", "epoch 1")
	assert.Equal(t, "failed", driverState(t, r.after(t, time.Minute)))
	assert.Equal(t, 1, r.count(t, "driver_starts"))
	d.set(t, "epoch 1")
	require.Eventually(t, func() bool {
		return driverState(t, r.after(t, time.Minute)) == "ok"
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 2, r.count(t, "driver_starts"))
}
