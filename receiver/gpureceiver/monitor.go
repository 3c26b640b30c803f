package gpureceiver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/amdsource"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/attribution"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// monitors holds one monitor for each receiver ID, which the receiver's metrics
// and logs share.
type monitors = shared.Registry[*monitor]

// signal is the metrics or the logs of a receiver, which share its monitor.
type signal struct {
	cfg      *Config
	settings receiver.Settings
	monitors *monitors
	now      func() time.Time
	// monitor is nil before join, and use and unlisten, which does nothing before, undo it.
	monitor  *monitor
	use      shared.Use[*monitor]
	unlisten func()
}

// join opens the source, unless the other signal has, and listens to its events. It fails
// only for a configuration that can never work.
func (s *signal) join(ctx context.Context, host component.Host, listener func(device.Event)) error {
	s.use = s.monitors.Use(s.settings.ID, func() (*monitor, error) {
		return newMonitor(s.cfg, s.settings, func() time.Time { return s.now() })
	})
	err := s.use.Start(ctx, host)
	if s.monitor = s.use.Shared; s.monitor != nil {
		s.unlisten = s.monitor.Listen(listener)
	}
	return err
}

// leave stops listening and releases the source. It is safe without join, and twice.
func (s *signal) leave(ctx context.Context) error {
	s.unlisten()
	return s.use.Shutdown(ctx)
}

// monitor reads the GPUs for the metrics and the logs of one receiver: it opens
// the driver once, and passes each event to both.
type monitor struct {
	cfg       *Config
	settings  receiver.Settings
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	driver    *driverTelemetry
	source    device.Source
	// attribution is nil if a recording is played, as amd is, which is also nil if only NVIDIA's
	// GPUs are read.
	attribution *attribution.Attribution
	amd         *amdsource.Source

	// reading is a lock on the source, because the metrics and the logs read at
	// their own times.
	reading chan struct{}
	// scraped is true while metrics are made.
	scraped atomic.Bool
	tenants tenants
	// kernel is nil if the kernel's log is not read.
	kernel *kernelLog

	mu        sync.Mutex
	listeners map[*func(device.Event)]struct{}
}

func newMonitor(cfg *Config, set receiver.Settings, now func() time.Time) (*monitor, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	m := &monitor{
		cfg: cfg, settings: set, now: now, telemetry: telemetry,
		reading:   make(chan struct{}, 1),
		listeners: make(map[*func(device.Event)]struct{}),
	}
	m.driver = &driverTelemetry{builder: telemetry, self: m.self(), plain: metric.WithAttributeSet(attribute.NewSet(m.self()))}
	if m.source, err = m.open(); err != nil {
		telemetry.Shutdown()
		return nil, err
	}
	m.kernel = newKernelLog(m)
	return m, nil
}

// open returns the source. It fails only for a configuration that can never
// work.
func (m *monitor) open() (device.Source, error) {
	logger := m.settings.Logger
	if m.cfg.Source == SourceReplay {
		rec, err := m.cfg.loadReplay()
		if err != nil {
			return nil, err
		}
		logger.Info("The receiver plays a recording and does not read this host's GPUs",
			zap.String("path", m.cfg.Replay.Path), zap.String("origin", rec.Origin), zap.String("host", rec.HostName))
		return recording.NewPlayer(rec, m.now), nil
	}
	m.attribution = attribution.New(attribution.Options{
		RootPath: m.cfg.RootPath, UserNames: m.cfg.UserNames, Interval: m.cfg.slowInterval, Logger: logger, Now: m.now,
	})
	if m.cfg.Source == SourceAuto {
		m.amd = amdsource.New(amdsource.Options{
			RootPath: m.cfg.RootPath, Attribution: m.attribution, Timeout: m.cfg.callTimeout(), SlowInterval: m.cfg.slowInterval,
			Wants: m.cfg.wants(), Logger: logger, Now: m.now,
		})
	}
	source := nvmlsource.New(nvmlsource.Options{
		LibraryPath:  m.cfg.NVML.LibraryPath,
		RootPath:     m.cfg.RootPath,
		Attribution:  m.attribution,
		CallTimeout:  m.cfg.callTimeout(),
		SlowInterval: m.cfg.slowInterval,
		Wants:        m.cfg.wants(),
		RequireBuild: m.cfg.Source == SourceNVML,
		Logger:       logger,
		Now:          m.now,
		Telemetry:    m.driver,
	})
	return source, m.driver.watch(source)
}

// self is the attribute that distinguishes gpu receivers in their own metrics.
func (m *monitor) self() attribute.KeyValue {
	return attribute.String("receiver", m.settings.ID.String())
}

// droppedEvent counts an event that is lost for a signal.
func (m *monitor) droppedEvent(signal string) {
	m.telemetry.ReceiverGpuDroppedEvents.Add(context.Background(), 1,
		metric.WithAttributes(m.self(), attribute.String("signal", signal)))
}

// Start implements shared.Object.
func (m *monitor) Start(ctx context.Context, _ component.Host) error {
	err := m.source.Start(ctx, m.fromSource)
	if err == nil && m.attribution != nil {
		m.attribution.Start()
	}
	if err == nil && m.kernel != nil {
		m.kernel.reader.Start()
	}
	return err
}

// Shutdown implements shared.Object.
func (m *monitor) Shutdown(ctx context.Context) error {
	if m.kernel != nil {
		m.kernel.reader.Shutdown()
	}
	if m.attribution != nil {
		m.attribution.Shutdown(ctx)
	}
	err := m.source.Shutdown(ctx)
	m.telemetry.Shutdown()
	return err
}

// Snapshot reads the GPUs. If ctx ends while another reading holds the source,
// the snapshot has no driver state.
func (m *monitor) Snapshot(ctx context.Context) device.Snapshot {
	select {
	case m.reading <- struct{}{}:
	case <-ctx.Done():
		return device.Snapshot{}
	}
	defer func() { <-m.reading }()
	snapshot := m.source.Snapshot(ctx)
	if m.amd != nil && snapshot.Driver != "" {
		m.amd.Add(ctx, &snapshot)
	}
	m.tenants.update(&snapshot)
	if m.kernel != nil {
		m.kernel.update(&snapshot)
		snapshot.KernelLog = string(m.kernel.reader.State())
	}
	return snapshot
}

// Watch reads the GPUs, so that they report events, unless the metrics do.
func (m *monitor) Watch(ctx context.Context) {
	if !m.scraped.Load() {
		m.Snapshot(ctx)
	}
}

// Listen calls listener with each event until stop is called. The listener must
// not block.
func (m *monitor) Listen(listener func(device.Event)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := &listener
	m.listeners[key] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, key)
	}
}

// fromSource takes an event of the source. While the kernel's log is read, it has the
// same event and says more.
func (m *monitor) fromSource(event device.Event) {
	if m.kernel == nil || m.kernel.reader.State() != kernellog.OK {
		m.notify(event)
	}
}

// notify passes an event to every listener.
func (m *monitor) notify(event device.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for listener := range m.listeners {
		(*listener)(event)
	}
}

// driverTelemetry records the receiver's own metrics about the driver. It is
// safe for concurrent use.
type driverTelemetry struct {
	builder *metadata.TelemetryBuilder
	self    attribute.KeyValue
	plain   metric.MeasurementOption

	// durations caches options, because building a call's attributes costs
	// more than recording its duration. There is one entry for each call and
	// what it returned.
	durations sync.Map
}

// watch observes the counts of the source's last reading.
func (d *driverTelemetry) watch(source *nvmlsource.Source) error {
	return errors.Join(
		d.builder.RegisterReceiverGpuSeenGpusCallback(shared.Gauge(func() int64 { return int64(source.Tally().GPUs) }, d.plain)),
		d.builder.RegisterReceiverGpuUnsupportedCallsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for call, gpus := range source.Tally().Unsupported {
				o.Observe(int64(gpus), metric.WithAttributes(d.self, attribute.String("nvml.call", call)))
			}
			return nil
		}))
}

// Attempted implements nvmlsource.Telemetry.
func (d *driverTelemetry) Attempted() {
	d.builder.ReceiverGpuDriverAttempts.Add(context.Background(), 1, d.plain)
}

// Opened implements nvmlsource.Telemetry.
func (d *driverTelemetry) Opened() {
	d.builder.ReceiverGpuDriverStarts.Add(context.Background(), 1, d.plain)
}

// Abandoned implements nvmlsource.Telemetry. The GPU is in the log: its id would make
// a series for each GPU.
func (d *driverTelemetry) Abandoned() {
	d.builder.ReceiverGpuAbandonedCalls.Add(context.Background(), 1, d.plain)
}

// Failed implements nvmlsource.Telemetry.
func (d *driverTelemetry) Failed(call, status string) {
	d.builder.ReceiverGpuFailedCalls.Add(context.Background(), 1, metric.WithAttributes(
		d.self, attribute.String("nvml.call", call), attribute.String("nvml.return", status)))
}

// Dropped implements nvmlsource.Telemetry.
func (d *driverTelemetry) Dropped(value string, count int64) {
	d.builder.ReceiverGpuDroppedValues.Add(context.Background(), count,
		metric.WithAttributes(d.self, attribute.String("nvml.call", value)))
}

// Called implements nvmlsource.Telemetry.
func (d *driverTelemetry) Called(call, status string, took time.Duration) {
	key := [2]string{call, status}
	options, found := d.durations.Load(key)
	if !found {
		options, _ = d.durations.LoadOrStore(key, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
			d.self, attribute.String("nvml.call", call), attribute.String("nvml.return", status)))})
	}
	d.builder.ReceiverGpuCallDuration.Record(context.Background(), took.Seconds(), options.([]metric.RecordOption)...)
}

// goneOnce is the time in which the several messages about a GPU that fell off the bus
// are one error.
const goneOnce = 90 * time.Second

// kernelLog reads errors from the kernel's log.
type kernelLog struct {
	reader *kernellog.Reader

	mu sync.Mutex
	// system is that of the last listing of the GPUs.
	system device.System
	// gpus are the GPUs by address, including those that have vanished, and gone the
	// times at which they fell off the bus.
	gpus map[string]device.Identity
	gone map[string]time.Time
}

// newKernelLog returns the kernel's log of a monitor, nil if it is not configured.
func newKernelLog(m *monitor) *kernelLog {
	if !m.cfg.KernelLog.Enabled || m.cfg.Source == SourceReplay {
		return nil
	}
	k := &kernelLog{
		system: device.System{Host: workload.HostName(m.cfg.RootPath)},
		gpus:   make(map[string]device.Identity),
		gone:   make(map[string]time.Time),
	}
	k.reader = kernellog.NewReader(kernellog.Options{
		Path:   m.cfg.KernelLog.Path,
		Logger: m.settings.Logger,
		Lost: func(messages int64) {
			m.telemetry.ReceiverGpuLostKernelMessages.Add(context.Background(), messages, metric.WithAttributes(m.self()))
		},
		Report: func(report kernellog.Report) { k.report(&report, m) },
	})
	return k
}

// update takes the identities of listed GPUs.
func (k *kernelLog) update(snapshot *device.Snapshot) {
	if snapshot.Driver != device.DriverOK {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.system = snapshot.System
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i].Identity
		if at, ok := kernellog.Address(gpu.PCIBusID); ok && gpu.MIG == nil {
			k.know(at, *gpu)
		}
	}
}

// know notes a GPU. A host has few addresses, so that the limit holds only against
// a log that a user can write.
func (k *kernelLog) know(at string, gpu device.Identity) {
	if _, found := k.gpus[at]; found || len(k.gpus) < maxTracked {
		k.gpus[at] = gpu
	}
}

// report turns a report of the log into an event.
func (k *kernelLog) report(r *kernellog.Report, m *monitor) {
	k.mu.Lock()
	event := r.Event
	event.Time, event.System = m.now(), k.system
	gpu, found := k.gpus[r.Address]
	if !found || gpu.Index == device.IndexUnknown && r.UUID != "" {
		at := r.Address + ".0"
		gpu = device.Identity{ID: at, Index: device.IndexUnknown, PCIBusID: at}
		if r.UUID != "" {
			gpu.ID = r.UUID
			k.know(r.Address, gpu)
		}
	}
	again := false
	if event.Switch == nil {
		event.GPU = gpu
		if xid.Of(event.Code).Severity == xid.Gone {
			again = event.Time.Sub(k.gone[r.Address]) < goneOnce
			if len(k.gone) < maxTracked {
				k.gone[r.Address] = event.Time
			}
		}
	}
	k.mu.Unlock()
	if r.UUID == "" && !again {
		m.notify(event)
	}
}

// tenants are the workloads on each GPU at the last reading. An error mostly
// ends its process, so that the next reading no longer shows the workload.
type tenants struct {
	mu   sync.Mutex
	last []device.GPU
}

// update replaces the tenants by those of a snapshot.
func (t *tenants) update(snapshot *device.Snapshot) {
	if snapshot.Driver != device.DriverOK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = snapshot.GPUs
}

// of returns the workload that an event most likely concerns: that of the process in
// the driver's message, or else the only one on the event's GPU or MIG device, or the pod
// that holds it without using it. If there are several it returns none, because nothing
// says which. An MPS server stands for its clients. Nor is there a workload if the error is a
// program's own and its process was not on the GPU.
func (t *tenants) of(event *device.Event) workload.Workload {
	if event.Switch != nil {
		return workload.Workload{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, several, only := false, false, workload.Workload{}
	consider := func(candidate workload.Workload) {
		several = several || found && candidate != only
		found, only = true, candidate
	}
	for i := range t.last {
		gpu := &t.last[i]
		if gpu.Whole() != event.GPU.ID || !concerns(event, gpu.MIG) {
			continue
		}
		for j := range gpu.Processes {
			process := &gpu.Processes[j]
			if process.MPSServer() {
				several = several || !process.Serves // its clients are unknown
				continue
			}
			if event.PID.Known && event.PID.Value == int64(process.PID) {
				return process.Workload
			}
			consider(process.Workload)
		}
		if len(gpu.Processes) == 0 && len(gpu.Owners) == 1 {
			consider(workload.Workload{Pod: gpu.Owners[0]})
		}
	}
	if several || event.PID.Known && xid.Of(event.Code).Severity == xid.Program {
		return workload.Workload{}
	}
	return only
}

// concerns reports whether an event can concern a MIG device. An event without
// an instance concerns the whole GPU.
func concerns(event *device.Event, mig *device.MIG) bool {
	return mig == nil || (!event.GPUInstance.Known || event.GPUInstance.Value == int64(mig.GPUInstance)) &&
		(!event.ComputeInstance.Known || event.ComputeInstance.Value == int64(mig.ComputeInstance))
}
