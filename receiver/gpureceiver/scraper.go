package gpureceiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// gpuScraper turns snapshots of the GPUs into metrics.
type gpuScraper struct {
	cfg      *Config
	settings receiver.Settings
	monitors *monitors
	metrics  *metadata.MetricsBuilder
	// recorded are the enabled metrics that are made of readings.
	recorded []gpuMetric
	now      func() time.Time

	monitor   *monitor
	release   shared.Release
	telemetry *metadata.TelemetryBuilder
	tracker   *tracker
	errors    *errorCounts
	unlisten  func()
	groups    *groups

	// stopping ends when the receiver stops, and interrupts every reading.
	stopping  context.Context
	interrupt context.CancelFunc
}

func newScraper(cfg *Config, set receiver.Settings, all *monitors) *gpuScraper {
	s := &gpuScraper{
		cfg:      cfg,
		settings: set,
		monitors: all,
		metrics:  metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set),
		recorded: slices.DeleteFunc(cfg.metrics(), func(m gpuMetric) bool { return m.record == nil }),
		now:      time.Now,
		tracker:  newTracker(),
		groups:   newGroups(maxWorkloads),
	}
	s.errors = newErrorCounts(func() { s.monitor.droppedEvent("metrics") })
	s.stopping, s.interrupt = context.WithCancel(context.Background())
	return s
}

// Start opens the source. It fails only for a configuration that can never
// work.
func (s *gpuScraper) Start(ctx context.Context, host component.Host) error {
	found, release, err := s.monitors.Acquire(ctx, host, s.settings.ID, func() (*monitor, error) {
		return newMonitor(s.cfg, s.settings, func() time.Time { return s.now() })
	})
	if err != nil {
		return err
	}
	s.monitor, s.release, s.telemetry = found, release, found.telemetry
	s.unlisten = found.Listen(s.errors.add)
	s.metrics.Reset(metadata.WithStartTime(pcommon.NewTimestampFromTime(s.now())))
	return nil
}

// Shutdown releases the source. It is safe without Start.
func (s *gpuScraper) Shutdown(ctx context.Context) error {
	s.interrupt()
	if s.release == nil {
		return nil
	}
	s.unlisten()
	return s.release(ctx)
}

// ScrapeMetrics reads the GPUs once. A failing GPU or driver is no error: its
// values are absent, its state is a metric, and changes are logged.
func (s *gpuScraper) ScrapeMetrics(ctx context.Context) (pmetric.Metrics, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	snapshot := s.monitor.Snapshot(ctx)
	if snapshot.Driver == "" {
		// The receiver stops before anything was read.
		return pmetric.NewMetrics(), nil
	}
	at := s.now()
	now := pcommon.NewTimestampFromTime(at)
	recordDriver(s.metrics, now, &snapshot, s.errors)
	s.tracker.begin()
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		gpu.DropImplausible(func(value string) { s.monitor.driver.Dropped(value, 1) })
		gpu.EventsKnown = gpu.EventsKnown || snapshot.KernelLog == string(kernellog.OK) && gpu.MIG == nil
		known := s.observe(gpu, at)
		known.count(&gpu.Readings)
		s.recordGPU(now, &snapshot, gpu, known)
	}
	// A failing driver lists no GPUs, and an interrupted reading not all of
	// them, so that a missing GPU does not mean that it is gone.
	if snapshot.Driver == device.DriverOK && ctx.Err() == nil {
		for _, known := range s.tracker.vanished(at, s.cfg.remember) {
			s.recordVanished(now, &snapshot, known)
		}
	}
	return s.metrics.Emit(), nil
}

// observe returns what is remembered about a GPU, with its present state.
func (s *gpuScraper) observe(gpu *device.GPU, at time.Time) *trackedGPU {
	known, returned := s.tracker.observe(gpu, at)
	if returned {
		s.errors.forgetTimes(gpu.ID)
	}
	if gpu.EventsKnown && !known.seeded {
		s.errors.seed(gpu.ID)
		known.seeded = true
	}
	known.updateState(gpu, s.errors.since(gpu.ID, at.Add(-s.cfg.remember)))
	return known
}

// pointsOf returns the points of a GPU or MIG device.
func (s *gpuScraper) pointsOf(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.Identity) *points {
	p := &points{
		MetricsBuilder: s.metrics, cfg: s.cfg, now: now,
		id: gpu.ID, host: snapshot.Host, index: int64(gpu.Index),
		labels: hostLabels(snapshot),
	}
	if gpu.MIG != nil {
		p.labels = p.with(metadata.WithHwParentMetricAttribute(gpu.MIG.Parent))
	}
	return p
}

// recordGPU emits the metrics of one GPU on its resource.
func (s *gpuScraper) recordGPU(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.GPU, known *trackedGPU) {
	p := s.pointsOf(now, snapshot, &gpu.Identity)
	p.recordIdentity(snapshot, &gpu.Identity)
	for i := range s.recorded {
		s.recorded[i].record(p, &gpu.Readings)
	}
	if gpu.MIG == nil {
		if snapshot.Driver == device.DriverOK {
			p.recordStatus(known.state)
		}
		p.recordXIDs(s.errors)
	}
	p.recordWorkloads(gpu, s.groups)
	if merged := s.groups.merged; merged > 0 {
		s.telemetry.ReceiverGpuMergedWorkloads.Add(context.Background(), int64(merged), metric.WithAttributes(s.monitor.self()))
	}
	s.emit(snapshot, &gpu.Identity, known)
}

// recordVanished emits the identity, status and error counts of a GPU that is
// missing.
func (s *gpuScraper) recordVanished(now pcommon.Timestamp, snapshot *device.Snapshot, known *trackedGPU) {
	p := s.pointsOf(now, snapshot, &known.identity)
	p.recordIdentity(snapshot, &known.identity)
	p.recordStatus(health.Failed)
	p.recordXIDs(s.errors)
	s.emit(snapshot, &known.identity, known)
}

// emit ends the points of a GPU.
func (s *gpuScraper) emit(snapshot *device.Snapshot, gpu *device.Identity, known *trackedGPU) {
	s.metrics.EmitForResource(metadata.WithResource(s.resource(snapshot, gpu, known)), metadata.WithStartTimeOverride(known.start))
}

// resource returns a GPU's resource, which is built again only if it changes.
func (s *gpuScraper) resource(snapshot *device.Snapshot, gpu *device.Identity, known *trackedGPU) pcommon.Resource {
	of := description{snapshot.System, *gpu}
	if known.description != of {
		known.description, known.resource = of, describe(s.metrics.NewResourceBuilder(), &snapshot.System, gpu)
	}
	return known.resource
}
