package gpureceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// maxWorkloads bounds the workload series of one GPU.
const maxWorkloads = 128

// gpuScraper turns snapshots of the GPUs into metrics.
type gpuScraper struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	metrics   *metadata.MetricsBuilder
	now       func() time.Time

	source   device.Source
	counters *counters
	groups   *workload.Groups

	// stopping ends when the receiver is to stop, and with it every reading.
	stopping  context.Context
	interrupt context.CancelFunc
}

func newScraper(cfg *Config, set receiver.Settings) (*gpuScraper, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	s := &gpuScraper{
		cfg:       cfg,
		settings:  set,
		telemetry: telemetry,
		metrics:   metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, set),
		now:       time.Now,
		counters:  newCounters(),
		groups:    workload.NewGroups(maxWorkloads),
	}
	s.stopping, s.interrupt = context.WithCancel(context.Background())
	return s, nil
}

// Start opens the source. Only a configuration that can never work is an
// error.
func (s *gpuScraper) Start(ctx context.Context, _ component.Host) error {
	source, err := s.open()
	if err != nil {
		return err
	}
	s.source = source
	s.metrics.Reset(metadata.WithStartTime(pcommon.NewTimestampFromTime(s.now())))
	return source.Start(ctx)
}

func (s *gpuScraper) open() (device.Source, error) {
	logger := s.settings.Logger
	if s.cfg.Source == SourceReplay {
		rec, err := recording.Load(s.cfg.Replay.Path)
		if err != nil {
			return nil, fmt.Errorf(`"replay::path" must name a recording: %w`, err)
		}
		logger.Info("Playing a recording; no GPU of this host is read",
			zap.String("path", s.cfg.Replay.Path), zap.String("origin", rec.Origin), zap.String("host", rec.HostName))
		return recording.NewPlayer(rec, s.now), nil
	}
	return nvmlsource.New(nvmlsource.Options{
		LibraryPath:  s.cfg.NVML.LibraryPath,
		RootPath:     s.cfg.RootPath,
		CallTimeout:  s.cfg.callTimeout(),
		RequireBuild: s.cfg.Source == SourceNVML,
		Logger:       logger,
		Now:          s.now,
		Attempted: func() {
			s.telemetry.ReceiverGpuDriverAttempts.Add(context.Background(), 1, metric.WithAttributes(s.id()))
		},
		Failed: func(call, code string) {
			s.telemetry.ReceiverGpuFailedCalls.Add(context.Background(), 1, metric.WithAttributes(
				s.id(), attribute.String("nvml.call", call), attribute.String("nvml.return", code)))
		},
	}), nil
}

// dropped counts a value that cannot be true.
func (s *gpuScraper) dropped(value string) {
	s.telemetry.ReceiverGpuDroppedValues.Add(context.Background(), 1,
		metric.WithAttributes(s.id(), attribute.String("nvml.call", value)))
}

// id tells this receiver's own metrics from those of another gpu receiver.
func (s *gpuScraper) id() attribute.KeyValue {
	return attribute.String("receiver", s.settings.ID.String())
}

// Shutdown closes the source. It is safe without Start.
func (s *gpuScraper) Shutdown(ctx context.Context) error {
	s.interrupt()
	s.telemetry.Shutdown()
	if s.source == nil {
		return nil
	}
	return s.source.Shutdown(ctx)
}

// ScrapeMetrics reads the GPUs once. A GPU or driver that fails is no error:
// its values are absent, its state is a metric, and changes are logged.
func (s *gpuScraper) ScrapeMetrics(ctx context.Context) (pmetric.Metrics, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	snapshot := s.source.Snapshot(ctx)
	now := pcommon.NewTimestampFromTime(s.now())
	s.recordDriver(now, &snapshot)
	for i := range snapshot.GPUs {
		s.recordGPU(now, &snapshot, &snapshot.GPUs[i])
	}
	return s.metrics.Emit(), nil
}
