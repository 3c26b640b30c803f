package gpureceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

// monitors holds one monitor for each receiver ID, which the receiver's metrics
// and logs share.
type monitors = shared.Registry[*monitor]

// monitor reads the GPUs for the metrics and the logs of one receiver: it opens
// the driver once, and passes each event to both.
type monitor struct {
	cfg       *Config
	settings  receiver.Settings
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	driver    *driverTelemetry
	source    device.Source

	// reading is a lock on the source, because the metrics and the logs read at
	// their own times.
	reading chan struct{}
	// read is the time of the last Snapshot. It is guarded by reading.
	read    time.Time
	tenants tenants
	// recorder is nil if nothing is recorded, and kernel if the kernel's log is not
	// read.
	recorder *recording.Recorder
	kernel   *kernelLog

	mu        sync.Mutex
	listeners map[*func(device.Event)]struct{}
}

var _ shared.Object = (*monitor)(nil)

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
	m.driver = newDriverTelemetry(telemetry, m.self())
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
	source := nvmlsource.New(nvmlsource.Options{
		LibraryPath:            m.cfg.NVML.LibraryPath,
		RootPath:               m.cfg.RootPath,
		UserNames:              m.cfg.UserNames,
		PodResourcesSocket:     m.cfg.podResourcesSocket(),
		CallTimeout:            m.cfg.callTimeout(),
		SlowInterval:           m.cfg.slowInterval,
		ReleaseBetweenReadings: m.cfg.NVML.ReleaseBetweenReadings,
		Wants:                  m.cfg.wants(),
		RequireBuild:           m.cfg.Source == SourceNVML,
		Logger:                 logger,
		Now:                    m.now,
		Telemetry:              m.driver,
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
	if err := m.record(); err != nil {
		return err
	}
	if m.kernel == nil {
		return m.source.Start(ctx, m.notify)
	}
	if err := m.source.Start(ctx, m.kernel.merger.NVML); err != nil {
		return err
	}
	m.kernel.reader.Start()
	return nil
}

// record starts a recording if one is configured. An existing file is no error,
// because a restart finds the file of the recording before it.
func (m *monitor) record() error {
	if m.cfg.Record.Path == "" || m.cfg.Source == SourceReplay {
		return nil
	}
	recorder, err := recording.NewRecorder(recording.RecorderOptions{
		Path:     m.cfg.Record.Path,
		Duration: m.cfg.Record.Duration,
		Program:  fmt.Sprintf("the gpu receiver of %s %s", m.settings.BuildInfo.Command, m.settings.BuildInfo.Version),
		Logger:   m.settings.Logger,
		Now:      m.now,
	})
	if errors.Is(err, fs.ErrExist) {
		m.settings.Logger.Warn("The recording's file exists, so that nothing is recorded; remove it or set another record::path", zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf(`"record::path" is %q; it must be a file that can be created: %w`, m.cfg.Record.Path, err)
	}
	m.recorder = recorder
	return nil
}

// Shutdown implements shared.Object.
func (m *monitor) Shutdown(ctx context.Context) error {
	if m.kernel != nil {
		m.kernel.reader.Shutdown()
	}
	err := m.source.Shutdown(ctx)
	if m.kernel != nil {
		m.kernel.merger.Close()
	}
	if m.recorder != nil {
		err = errors.Join(err, m.recorder.Shutdown(ctx))
	}
	m.telemetry.Shutdown()
	return err
}

// Snapshot reads the GPUs. If ctx ends while another reading holds the source,
// the snapshot has no driver state.
func (m *monitor) Snapshot(ctx context.Context) device.Snapshot {
	if !m.begin(ctx) {
		return device.Snapshot{}
	}
	defer m.end()
	m.read = m.now()
	snapshot := m.source.Snapshot(ctx)
	if m.recorder != nil {
		m.recorder.Add(&snapshot)
	}
	m.tenants.update(&snapshot)
	if m.kernel != nil {
		m.kernel.update(&snapshot)
		snapshot.KernelLog = string(m.kernel.reader.State())
	}
	return snapshot
}

// Watch finds the GPUs, so that they report events. It does nothing if Snapshot
// did the same within the collection interval.
func (m *monitor) Watch(ctx context.Context) {
	if !m.begin(ctx) {
		return
	}
	defer m.end()
	if since := m.now().Sub(m.read); since >= 0 && since < m.cfg.CollectionInterval {
		return
	}
	found := m.source.Watch(ctx)
	m.kernel.update(&found)
}

// begin locks the source. It reports false if ctx ends before.
func (m *monitor) begin(ctx context.Context) bool {
	select {
	case m.reading <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *monitor) end() {
	<-m.reading
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

// flush passes on events that wait for another source.
func (m *monitor) flush() {
	if m.kernel != nil {
		m.kernel.merger.Flush()
	}
}

// notify passes an event to every listener.
func (m *monitor) notify(event device.Event) {
	if m.recorder != nil && event.Switch == nil {
		m.recorder.Event(&event)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for listener := range m.listeners {
		(*listener)(event)
	}
}
