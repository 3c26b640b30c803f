package gpureceiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
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
	groups    *workload.Groups

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
		groups:   workload.NewGroups(maxWorkloads),
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
	s.recordDriver(now, &snapshot)
	s.tracker.begin()
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		gpu.DropImplausible(s.dropped)
		known := s.observe(gpu, at)
		known.count(&gpu.Readings)
		s.recordGPU(now, &snapshot, gpu, known)
	}
	// A failing driver lists no GPUs, and an interrupted reading not all of
	// them, so that a missing GPU does not mean that it is gone.
	if snapshot.Driver == device.DriverOK && ctx.Err() == nil {
		for _, known := range s.tracker.vanished(at, s.cfg.Remember) {
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
	known.updateState(gpu, s.errors.since(gpu.ID, at.Add(-s.cfg.Remember)))
	return known
}

// dropped counts an impossible value.
func (s *gpuScraper) dropped(value string) {
	s.monitor.droppedValues(value, 1)
}

// self is the attribute that distinguishes gpu receivers in their own metrics.
func (s *gpuScraper) self() attribute.KeyValue {
	return s.monitor.self()
}
