package gpureceiver

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// gpuReceiver makes the controller's Shutdown safe to call twice, and lets it
// return when its context ends or while a driver call hangs.
type gpuReceiver struct {
	receiver.Metrics
	scraper *gpuScraper
	stop    shared.Stop
}

// Shutdown interrupts the current reading, waits for it, and releases the
// source.
func (r *gpuReceiver) Shutdown(ctx context.Context) error {
	r.scraper.interrupt()
	return r.stop.Do(ctx, func() error { return r.Metrics.Shutdown(ctx) })
}

// gpuScraper turns snapshots of the GPUs into metrics.
type gpuScraper struct {
	signal
	metrics *metadata.MetricsBuilder
	// readings are the points of enabled metrics that are made of readings.
	readings []readingPoint
	tracker  tracker
	errors   *errorCounts
	// mounts are the host's network file systems.
	mounts *hoststate.Mounts

	// stopping ends when the receiver stops, and interrupts every reading.
	stopping  context.Context
	interrupt context.CancelFunc
}

func newScraper(cfg *Config, set receiver.Settings, all *monitors) *gpuScraper {
	s := &gpuScraper{
		signal:   signal{cfg: cfg, settings: set, monitors: all, now: time.Now, unlisten: func() {}},
		metrics:  metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set),
		readings: cfg.readings(),
		tracker:  make(tracker),
		mounts:   hoststate.NewMounts(cfg.RootPath),
	}
	s.errors = newErrorCounts(func() { s.monitor.droppedEvent("metrics") })
	s.stopping, s.interrupt = context.WithCancel(context.Background())
	return s
}

// Start opens the source. It fails only for a configuration that can never
// work.
func (s *gpuScraper) Start(ctx context.Context, host component.Host) error {
	if err := s.join(ctx, host, s.errors.add); err != nil {
		return err
	}
	s.monitor.scraped.Store(true)
	s.metrics.Reset(metadata.WithStartTime(pcommon.NewTimestampFromTime(s.now())))
	return nil
}

// Shutdown releases the source. It is safe without Start.
func (s *gpuScraper) Shutdown(ctx context.Context) error {
	s.interrupt()
	if s.monitor != nil {
		s.monitor.scraped.Store(false)
	}
	return s.leave(ctx)
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
	if !snapshot.Replayed {
		s.recordHost(ctx, now, snapshot.Host)
	}
	recordDriver(s.metrics, now, &snapshot, s.errors)
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		gpu.DropImplausible(func(value string) { s.monitor.driver.Dropped(value, 1) })
		gpu.EventsKnown = gpu.EventsKnown || snapshot.KernelLog == string(kernellog.OK) && gpu.MIG == nil
		known := s.observe(gpu, at)
		known.count(&gpu.Readings)
		s.record(now, &snapshot, known, gpu)
	}
	// A failing driver lists no GPUs, and an interrupted reading not all of
	// them, so that a missing GPU does not mean that it is gone.
	if ctx.Err() == nil {
		for _, known := range s.tracker.vanished(at, s.cfg.remember, snapshot.Driver == device.DriverOK) {
			s.record(now, &snapshot, known, nil)
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
	if !gpu.Asleep { // a suspended GPU keeps its state
		known.state = health.Judge(gpu, s.errors.since(gpu.ID, at.Add(-s.cfg.remember)))
	}
	return known
}

// record emits the metrics of a GPU or MIG device on its resource. Of a GPU that is
// missing, gpu is nil, and these are its identity, status and error counts.
func (s *gpuScraper) record(now pcommon.Timestamp, snapshot *device.Snapshot, known *trackedGPU, gpu *device.GPU) {
	identity := &known.identity
	if identity.Vendor == device.AMD {
		others := *snapshot
		others.Driver, others.DriverVersion, others.CUDAVersion = device.DriverOK, "", ""
		snapshot = &others
	}
	p := &points{
		MetricsBuilder: s.metrics, cfg: s.cfg, now: now,
		id: identity.ID, host: snapshot.Host, index: int64(identity.Index),
		labels: hostLabels(snapshot),
	}
	if identity.MIG != nil {
		p.labels = p.with(metadata.WithHwParentMetricAttribute(identity.MIG.Parent))
	}
	p.recordIdentity(snapshot, identity)
	if gpu != nil {
		p.recordReadings(s.readings, &gpu.Readings)
		if merged := p.recordWorkloads(gpu); merged > 0 {
			s.monitor.telemetry.ReceiverGpuMergedWorkloads.Add(context.Background(), int64(merged), metric.WithAttributes(s.monitor.self()))
		}
	}
	if identity.MIG == nil {
		switch {
		case gpu == nil:
			p.recordStatus(health.Failed)
		case snapshot.Driver == device.DriverOK:
			p.recordStatus(known.state)
		}
		p.recordXIDs(s.errors)
	}
	resource := describe(s.metrics.NewResourceBuilder(), &snapshot.System, identity)
	s.metrics.EmitForResource(metadata.WithResource(resource), metadata.WithStartTimeOverride(known.start))
}

const nvidia = "NVIDIA"

// describe returns a GPU's resource, or that of what concerns no GPU for nil.
func describe(resource *metadata.ResourceBuilder, system *device.System, gpu *device.Identity) pcommon.Resource {
	text := func(value string, set func(string)) {
		if value != "" {
			set(value)
		}
	}
	resource.SetHostName(system.Host)
	if gpu != nil {
		resource.SetHwID(gpu.ID)
		resource.SetHwType(metadata.AttributeHwTypeGpu.String())
		vendor := cmp.Or(gpu.Vendor, nvidia)
		resource.SetHwVendor(vendor)
		text(strings.TrimPrefix(gpu.Name, vendor+" "), resource.SetHwModel)
		describeGPU(resource, gpu)
	}
	text(system.DriverVersion, resource.SetHwDriverVersion)
	text(system.CUDAVersion, resource.SetNvidiaCudaVersion)
	if system.Replayed {
		resource.SetNvidiaGpuSource(sourceReplay)
	}
	return resource.Emit()
}

// maxTracked bounds the GPUs that are remembered. Only a driver whose ids
// change at every reading can reach it.
const maxTracked = 1024

// trackedGPU is what is remembered about a GPU between readings.
type trackedGPU struct {
	// start is the time of the GPU's first reading. A first point whose time
	// equals its start means in OpenTelemetry that the true start is unknown,
	// and that rates begin at that point.
	start pcommon.Timestamp
	// seen is the time of the last snapshot with the GPU, and identity the
	// GPU's identity in it.
	seen     time.Time
	identity device.Identity
	// gone is true if the GPU vanished or fell off the bus, and has not come
	// back.
	gone bool
	// state is the health at the last reading, empty while it is unknown.
	state    health.State
	counters map[*device.Quantity]device.Monotonic
	// seeded is true once the common errors have series.
	seeded bool
}

// tracker remembers GPUs by id, also after they vanished: their counters
// continue when they come back, and until then they are reported as failed.
type tracker map[string]*trackedGPU

// observe returns what is remembered about a GPU of a snapshot, and whether the
// GPU has come back.
func (r tracker) observe(gpu *device.GPU, now time.Time) (m *trackedGPU, returned bool) {
	m = shared.Entry(r, gpu.ID, func() *trackedGPU {
		if len(r) >= maxTracked {
			// It was not seen for the longest time. If it comes back, its series have a new
			// start, which OpenTelemetry allows at any time.
			delete(r, slices.MinFunc(slices.Collect(maps.Keys(r)), func(a, b string) int { return r[a].seen.Compare(r[b].seen) }))
		}
		return &trackedGPU{start: pcommon.NewTimestampFromTime(now), counters: make(map[*device.Quantity]device.Monotonic)}
	})
	returned = m.gone && !gpu.Lost
	m.seen, m.identity, m.gone = now, gpu.Identity, gpu.Lost
	return m, returned
}

// vanished ends a reading in which the GPUs were listed, those of NVIDIA if its driver
// works. It returns the whole GPUs that are missing and were seen within remember.
// A missing MIG device was removed on purpose.
func (r tracker) vanished(now time.Time, remember time.Duration, nvidia bool) []*trackedGPU {
	var missing []*trackedGPU
	for _, m := range r {
		if m.seen.Equal(now) || m.identity.Vendor == "" && !nvidia {
			continue
		}
		m.gone = true
		if m.identity.MIG == nil && now.Sub(m.seen) < remember {
			missing = append(missing, m)
		}
	}
	return missing
}

// count replaces the counters of the readings by counters that never fall.
func (m *trackedGPU) count(readings *device.Readings) {
	readings.EachCounter(func(q *device.Quantity, value float64) float64 {
		counter := m.counters[q]
		value = counter.Add(value)
		m.counters[q] = counter
		return value
	})
}
