package gpureceiver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadatatest"
)

// clock is a time that a test moves while receivers look at it.
type clock struct {
	nanos atomic.Int64
}

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// startLogs starts a logs receiver. It is shut down at the test's end.
func startLogs(t *testing.T, cfg *Config, set receiver.Settings, all *monitors, next consumer.Logs, prepare func(*gpuLogs)) *gpuLogs {
	t.Helper()
	require.NoError(t, cfg.Validate())
	logs, err := newLogs(cfg, set, all, next)
	require.NoError(t, err)
	prepare(logs)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, logs.Shutdown(context.Background())) })
	return logs
}

// await waits for a number of records and returns each with its resource.
func await(t *testing.T, sink *consumertest.LogsSink, count int) plog.Logs {
	t.Helper()
	require.Eventually(t, func() bool { return sink.LogRecordCount() >= count }, time.Minute, time.Millisecond)
	all := plog.NewLogs()
	for _, logs := range sink.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			resource.CopyTo(all.ResourceLogs().AppendEmpty())
		}
	}
	require.Equal(t, count, all.LogRecordCount())
	return all
}

// recordsOf returns the records in their order.
func recordsOf(logs plog.Logs) []plog.LogRecord {
	var records []plog.LogRecord
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				records = append(records, record)
			}
		}
	}
	return records
}

// TestLogs plays each folder's recording with a logs receiver alone, so that
// nothing but its watch finds the GPUs, and compares the records.
func TestLogs(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "logs", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			clock, sink := newClock(), new(consumertest.LogsSink)
			startLogs(t, loadConfig(t, filepath.Join(folder, "config.yaml")), receivertest.NewNopSettings(metadata.Type),
				&monitors{}, sink, func(l *gpuLogs) { l.now = clock.now })
			await(t, sink, 4)
			clock.advance(time.Minute)
			golden.Compare(t, filepath.Join(folder, "expected.txt"), golden.Logs(t, await(t, sink, 6)))
		})
	}
}

// The whole receiver as the collector runs it: metrics and logs of one id have
// one monitor, errors reach both, and the logs go on when the metrics are gone.
func TestOneMonitorBehindMetricsAndLogs(t *testing.T) {
	var frames strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&frames, "  - {at: %dms, gpus: [{uuid: GPU-a, xids: [{code: 31}]}, {uuid: GPU-b}]}\n", 10*i)
	}
	cfg := replayOf(t, frames.String())
	cfg.InitialDelay, cfg.CollectionInterval = 0, 10*time.Millisecond
	core, lines := observer.New(zap.InfoLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	factory := NewFactory()
	metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	metricsReceiver, err := factory.CreateMetrics(t.Context(), settings, cfg, metrics)
	require.NoError(t, err)
	logsReceiver, err := factory.CreateLogs(t.Context(), settings, cfg, logs)
	require.NoError(t, err)
	require.NoError(t, metricsReceiver.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logsReceiver.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool {
		all := metrics.AllMetrics()
		return logs.LogRecordCount() > 0 && len(all) > 0 && errorsOf(all[len(all)-1], "GPU-a")[31] > 0
	}, time.Minute, time.Millisecond)

	require.NoError(t, metricsReceiver.Shutdown(t.Context()))
	told := logs.LogRecordCount()
	require.Eventually(t, func() bool { return logs.LogRecordCount() > told }, time.Minute, time.Millisecond)
	require.NoError(t, logsReceiver.Shutdown(t.Context()))
	require.NoError(t, logsReceiver.Shutdown(t.Context()))
	assert.Equal(t, 1, lines.FilterMessageSnippet("plays a recording").Len(), "the source is opened once")
}

// A clock that stands still: one event is told once, to each of both.
func TestAnEventIsToldToBothOnce(t *testing.T) {
	clock, sink, all := newClock(), new(consumertest.LogsSink), &monitors{}
	cfg := replayOf(t, `  - {at: 0s, gpus: [{uuid: GPU-a, processes: [{pid: 1}]}, {uuid: GPU-b}, {uuid: MIG-b, processes: [{pid: 3}]}]}
  - {at: 10s, gpus: [{uuid: GPU-a, xids: [{code: 31}]}, {uuid: GPU-b, xids: [{code: 94, gpu_instance: 7, compute_instance: 0}, {code: 94, gpu_instance: 8}]}]}
  - {at: 20s, gpus: [{uuid: GPU-a, processes: [{pid: 1}, {pid: 2}]}, {uuid: GPU-b}]}
  - {at: 30s, gpus: [{uuid: GPU-a, xids: [{code: 43}]}, {uuid: GPU-b}]}
`)
	set := receivertest.NewNopSettings(metadata.Type)
	s := newScraper(cfg, set, all)
	s.now = clock.now
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	startLogs(t, cfg, set, all, sink, func(*gpuLogs) {})
	runs := func(records []plog.LogRecord) []string {
		var runs []string
		for _, record := range records {
			runs = append(runs, text(record.Attributes(), "ml.run.id"))
		}
		return runs
	}

	scrape := func() { _, err := s.ScrapeMetrics(t.Context()); require.NoError(t, err) }
	scrape()
	clock.advance(10 * time.Second)
	metrics, err := s.ScrapeMetrics(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(1), errorsOf(metrics, "GPU-a")[31])
	assert.Equal(t, int64(2), errorsOf(metrics, "GPU-b")[94])
	assert.Equal(t, []string{"run-1", "run-3", ""}, runs(recordsOf(await(t, sink, 3))),
		"the only workload on the GPU, or on the MIG device, before the error")

	clock.advance(10 * time.Second)
	scrape()
	clock.advance(10 * time.Second)
	scrape()
	assert.Empty(t, runs(recordsOf(await(t, sink, 4)))[3], "nothing says which of two")
}

// The attributes of a workload are on records those that they are on points.
func TestRecordsNameEveryAttributeOfAWorkload(t *testing.T) {
	known := workload.Number{Value: 1, Known: true}
	event := &queuedEvent{workload: workload.Workload{
		RunID: "x", RunAttempt: known, RankGlobal: known, RankLocal: known, WorldSize: known,
		SlurmJobID: "x", ContainerID: "x", PodUID: "x", ServiceName: "x", UserID: "x", UserName: "x",
		Pod: workload.Pod{Namespace: "x", Name: "x", Container: "x"},
	}}
	logs, err := newLogs(createDefaultConfig().(*Config), receivertest.NewNopSettings(metadata.Type), &monitors{}, consumertest.NewNop())
	require.NoError(t, err)
	attributes := recordsOf(logs.logs(event))[0].Attributes().AsRaw()
	for _, name := range metadata.MetricsInfo.NvidiaGpuWorkloadMemoryUsage.Attributes {
		if name != "hw.parent" && name != "nvidia.gpu.source" {
			assert.Contains(t, attributes, name)
		}
	}
}

func TestASwitchedOffEvent(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Events.NvidiaGpuXid.Enabled = false
	logs, err := newLogs(cfg, receivertest.NewNopSettings(metadata.Type), &monitors{}, consumertest.NewErr(errors.New("called")))
	require.NoError(t, err)
	assert.Zero(t, logs.logs(&queuedEvent{}).LogRecordCount())
	logs.deliver(&queuedEvent{})
}

// toldSource is a source whose events the test tells.
type toldSource struct {
	tell    func(device.Event)
	watched chan struct{}
	// hang holds Snapshot until its context ends.
	hang bool
	// gpus are listed.
	gpus []device.GPU
}

func (s *toldSource) Start(_ context.Context, tell func(device.Event)) error {
	s.tell = tell
	return nil
}

func (s *toldSource) Snapshot(ctx context.Context) device.Snapshot {
	select {
	case s.watched <- struct{}{}:
	default:
	}
	if s.hang {
		<-ctx.Done()
	}
	return device.Snapshot{System: device.System{Host: "h", DriverVersion: "570.124.06"}, Driver: device.DriverOK, GPUs: s.gpus}
}

func (*toldSource) Shutdown(context.Context) error { return nil }

// told starts a logs receiver on a source whose events the test tells.
func told(t *testing.T, source *toldSource, next consumer.Logs, prepare func(*gpuLogs)) (*gpuLogs, *componenttest.Telemetry) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(telemetry)
	cfg := demoConfig()
	cfg.InitialDelay = 0
	all := &monitors{}
	held := all.Use(settings.ID, func() (*monitor, error) {
		m, err := newMonitor(cfg, settings, time.Now)
		require.NoError(t, err)
		m.source = source
		return m, nil
	})
	require.NoError(t, held.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, held.Shutdown(context.Background())) })
	return startLogs(t, cfg, settings, all, next, prepare), telemetry
}

// A pipeline that is busy gets the record again; one that never will is not
// asked again.
func TestAPipelineThatRefuses(t *testing.T) {
	var mu sync.Mutex
	var codes []string
	busy := 3
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		mu.Lock()
		defer mu.Unlock()
		code := text(recordsOf(logs)[0].Attributes(), "nvidia.gpu.xid.code")
		codes = append(codes, code)
		if code == "79" && busy > 0 {
			busy--
			return errors.New("busy")
		}
		if code == "48" {
			return consumererror.NewPermanent(errors.New("never"))
		}
		return nil
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	source := &toldSource{}
	_, telemetry := told(t, source, next, func(l *gpuLogs) { l.retry = time.Millisecond })
	for _, code := range []uint64{79, 48, 31} {
		source.tell(eventOf("GPU-a", code))
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(codes) == 6
	}, time.Minute, time.Millisecond)
	assert.Equal(t, []string{"79", "79", "79", "79", "48", "31"}, codes)
	_, err = telemetry.GetMetric("otelcol_receiver_gpu_dropped_events")
	require.Error(t, err, "nothing was dropped before the pipeline")
}

// Events that come faster than the pipeline takes them are dropped and
// counted. Shutdown is bounded, though the pipeline hangs until its context
// ends, and gives up what is queued.
func TestAPipelineThatHangs(t *testing.T) {
	entered, leave := make(chan struct{}, 2*maxQueued), make(chan struct{})
	next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
		entered <- struct{}{}
		<-ctx.Done()
		<-leave
		return ctx.Err()
	})
	require.NoError(t, err)
	source := &toldSource{}
	logs, telemetry := told(t, source, next, func(*gpuLogs) {})
	source.tell(eventOf("GPU-a", 31))
	<-entered
	for range maxQueued + 2 {
		source.tell(eventOf("GPU-a", 31))
	}
	metadatatest.AssertEqualReceiverGpuDroppedEvents(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 2, Attributes: dropAttributes(logs, "logs")},
	}, metricdatatest.IgnoreTimestamp())

	stopping, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, logs.Shutdown(stopping), context.Canceled)
	close(leave)
	require.NoError(t, logs.Shutdown(t.Context()), "it ends by itself")
	metadatatest.AssertEqualReceiverGpuDroppedEvents(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 2 + 1 + maxQueued, Attributes: dropAttributes(logs, "logs")},
	}, metricdatatest.IgnoreTimestamp())
}

// Shutdown does not wait for a call into the driver, nor for a reading of the
// metrics that is under way.
func TestShutdownWhileTheDriverHangs(t *testing.T) {
	source := &toldSource{hang: true, watched: make(chan struct{}, 1)}
	logs, _ := told(t, source, consumertest.NewNop(), func(*gpuLogs) {})
	<-source.watched
	require.NoError(t, logs.Shutdown(t.Context()))

	reading, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		logs.monitor.Snapshot(reading)
	}()
	<-source.watched
	waiting, stop := context.WithCancel(t.Context())
	stop()
	assert.Empty(t, logs.monitor.Snapshot(waiting).Driver)
	logs.monitor.Watch(waiting)
	cancel()
	<-done
}

// While metrics read the GPUs nobody has to find them, and when they stop
// somebody has to.
func TestTheWatchLeavesTheMetricsAlone(t *testing.T) {
	source := &toldSource{watched: make(chan struct{}, 1)}
	m, err := newMonitor(demoConfig(), receivertest.NewNopSettings(metadata.Type), time.Now)
	require.NoError(t, err)
	m.source = source
	watches := func() int {
		m.Watch(t.Context())
		defer func() {
			for len(source.watched) > 0 {
				<-source.watched
			}
		}()
		return len(source.watched)
	}
	assert.Equal(t, 1, watches())
	m.scraped.Store(true)
	assert.Zero(t, watches())
	m.scraped.Store(false)
	assert.Equal(t, 1, watches())
	require.NoError(t, m.Shutdown(t.Context()))
}

// What is queued when the receiver stops is still told.
func TestShutdownTellsWhatIsQueued(t *testing.T) {
	sink, first := new(consumertest.LogsSink), make(chan struct{})
	next, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		<-first
		return sink.ConsumeLogs(ctx, logs)
	})
	require.NoError(t, err)
	source := &toldSource{}
	logs, _ := told(t, source, next, func(*gpuLogs) {})
	for range 10 {
		source.tell(eventOf("GPU-a", 31))
	}
	go close(first)
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, 10, sink.LogRecordCount())
	assert.Empty(t, logs.monitor.listeners, "nobody listens any more")
}

// A pipeline that is busy at the end is asked once for each event, and does not hold Shutdown.
func TestShutdownTellsABusyPipelineOnce(t *testing.T) {
	var canceled error
	tries, first := 0, make(chan struct{})
	next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
		if tries++; tries == 1 {
			close(first)
		}
		canceled = errors.Join(canceled, ctx.Err())
		return errors.New("busy")
	})
	require.NoError(t, err)
	source := &toldSource{}
	logs, telemetry := told(t, source, next, func(l *gpuLogs) { l.retry = time.Hour })
	for range 10 {
		source.tell(eventOf("GPU-a", 31))
	}
	<-first
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, 10, tries)
	metadatatest.AssertEqualReceiverGpuDroppedEvents(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 10, Attributes: dropAttributes(logs, "logs")},
	}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, canceled)
}

// dropAttributes are those of the counter of dropped events.
func dropAttributes(l *gpuLogs, signal string) attribute.Set {
	return attribute.NewSet(l.monitor.self(), attribute.String("signal", signal))
}

func TestLogsShutdownWithoutStart(t *testing.T) {
	logs, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, logs.Shutdown(t.Context()))
	require.NoError(t, logs.Shutdown(t.Context()))
}

func TestLogsThatCannotStart(t *testing.T) {
	cfg := demoConfig()
	cfg.Replay.Path = filepath.Join(t.TempDir(), "none.yaml")
	logs, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, logs.Start(t.Context(), componenttest.NewNopHost()), `"replay::path"`)
	require.NoError(t, logs.Shutdown(t.Context()))
}
