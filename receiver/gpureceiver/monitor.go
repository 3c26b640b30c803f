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

// monitors holds the one monitor behind the metrics and the logs of each
// receiver.
type monitors = shared.Registry[*monitor]

// monitor watches the GPUs for the metrics and the logs of one receiver: the
// driver is opened once, and each event is told to both.
type monitor struct {
	cfg       *Config
	settings  receiver.Settings
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	source    device.Source

	// reading is full while the source is asked, because the metrics and the
	// logs ask at their own times.
	reading chan struct{}
	// read is when the metrics last asked. It belongs to who fills reading.
	read    time.Time
	tenants tenants
	// recorder is nil where nothing is recorded.
	recorder *recording.Recorder

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
	if m.source, err = m.open(); err != nil {
		telemetry.Shutdown()
		return nil, err
	}
	return m, nil
}

// open returns the source. Only a configuration that can never work is an
// error.
func (m *monitor) open() (device.Source, error) {
	logger := m.settings.Logger
	if m.cfg.Source == SourceReplay {
		rec, err := m.cfg.loadReplay()
		if err != nil {
			return nil, err
		}
		logger.Info("Playing a recording; no GPU of this host is read",
			zap.String("path", m.cfg.Replay.Path), zap.String("origin", rec.Origin), zap.String("host", rec.HostName))
		return recording.NewPlayer(rec, m.now), nil
	}
	own := newDriverTelemetry(m.telemetry, m.self())
	source := nvmlsource.New(nvmlsource.Options{
		LibraryPath:            m.cfg.NVML.LibraryPath,
		RootPath:               m.cfg.RootPath,
		PodResourcesSocket:     m.cfg.podResourcesSocket(),
		CallTimeout:            m.cfg.callTimeout(),
		SlowInterval:           m.cfg.SlowInterval,
		ReleaseBetweenReadings: m.cfg.NVML.ReleaseBetweenReadings,
		Wants:                  m.cfg.wants(),
		RequireBuild:           m.cfg.Source == SourceNVML,
		Logger:                 logger,
		Now:                    m.now,
		Attempted:              own.attempted,
		Opened:                 own.opened,
		Called:                 own.called,
		Failed:                 own.failed,
		Dropped:                m.droppedValues,
		Abandoned:              own.abandoned,
	})
	return source, own.watch(source)
}

// self tells this receiver's own metrics from those of another gpu receiver.
func (m *monitor) self() attribute.KeyValue {
	return attribute.String("receiver", m.settings.ID.String())
}

// droppedValues counts values that cannot be true.
func (m *monitor) droppedValues(value string, count int64) {
	m.telemetry.ReceiverGpuDroppedValues.Add(context.Background(), count,
		metric.WithAttributes(m.self(), attribute.String("nvml.call", value)))
}

// droppedEvent counts an event that is not told as a signal.
func (m *monitor) droppedEvent(signal string) {
	m.telemetry.ReceiverGpuDroppedEvents.Add(context.Background(), 1,
		metric.WithAttributes(m.self(), attribute.String("signal", signal)))
}

// Start implements shared.Object.
func (m *monitor) Start(ctx context.Context, _ component.Host) error {
	if err := m.record(); err != nil {
		return err
	}
	return m.source.Start(ctx, m.tell)
}

// record begins a recording where one is configured. A file that exists is
// what a restart finds after a recording, so that it must not keep the
// collector from starting.
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
		m.settings.Logger.Warn("Nothing is recorded, because the file exists; remove it, or set another record::path", zap.Error(err))
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
	err := m.source.Shutdown(ctx)
	if m.recorder != nil {
		err = errors.Join(err, m.recorder.Shutdown(ctx))
	}
	m.telemetry.Shutdown()
	return err
}

// Snapshot looks at the GPUs. Where ctx ends while somebody else does, it
// returns a snapshot without a state of the driver.
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
	m.tenants.see(&snapshot)
	return snapshot
}

// Watch finds the GPUs, so that their events come. It does nothing while the
// metrics read them, which finds them as well.
func (m *monitor) Watch(ctx context.Context) {
	if !m.begin(ctx) {
		return
	}
	defer m.end()
	if since := m.now().Sub(m.read); since >= 0 && since < m.cfg.CollectionInterval {
		return
	}
	m.source.Watch(ctx)
}

// begin waits until nobody else asks the source, and reports whether ctx has
// not ended before.
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

// Listen calls listener with each event from now on, until the returned
// function is called. The listener must not block.
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

// tell gives an event to every listener.
func (m *monitor) tell(event device.Event) {
	if m.recorder != nil {
		m.recorder.Event(&event)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for listener := range m.listeners {
		(*listener)(event)
	}
}
