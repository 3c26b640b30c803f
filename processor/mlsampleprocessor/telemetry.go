package mlsampleprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// Values of reason in the metric of lost spans.
const (
	lostOverflow = "overflow"
	lostRefused  = "refused"
)

// early is the reason for units that were decided early, for notices.
const early = "early"

// telemetry is the metrics of a traces instance.
type telemetry struct {
	builder   *metadata.TelemetryBuilder
	processor attribute.KeyValue
	maxBytes  int64
	left      shared.Tally
	withdraw  func()
}

func newTelemetry(set processor.Settings, maxBytes int64, sampler *sample.Sampler) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, processor: attribute.String("processor", set.ID.String()), maxBytes: maxBytes}
	return t, builder.RegisterProcessorMlSampleBytesWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(sampler.Bytes(), t.with())
		return nil
	})
}

func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(attributes, t.processor)...))
}

// count adds what was decided since the previous call.
func (t *telemetry) count(ctx context.Context, sampler *sample.Sampler) {
	counts := sampler.Counts()
	for kind := range sample.Kinds {
		for reason := range sample.Reasons {
			if n := counts.Units[kind][reason]; n > 0 {
				t.builder.ProcessorMlSampleUnits.Add(ctx, n,
					t.with(attribute.String("kind", kind.String()), attribute.String("reason", reason.String())))
			}
		}
	}
	for outcome, n := range map[string]int64{"kept": counts.Kept, "dropped": counts.Dropped} {
		if n > 0 {
			t.builder.ProcessorMlSampleSpans.Add(ctx, n, t.with(attribute.String("outcome", outcome)))
		}
	}
	if counts.Early > 0 {
		t.builder.ProcessorMlSampleUnitsEarly.Add(ctx, counts.Early, t.with())
		t.left.Add(early, counts.Early)
	}
	if counts.Overflow > 0 {
		t.lost(ctx, lostOverflow, counts.Overflow)
	}
}

// lost counts lost spans.
func (t *telemetry) lost(ctx context.Context, reason string, spans int64) {
	t.builder.ProcessorMlSampleSpansLost.Add(ctx, spans, t.with(attribute.String("reason", reason)))
	t.left.Add(reason, spans)
}

func (t *telemetry) start(host component.Host) {
	t.withdraw = shared.StateOf(host).PublishNotices(t.processor.Value.AsString(), t.notices)
}

func (t *telemetry) shutdown() {
	t.builder.Shutdown()
	if t.withdraw != nil {
		t.withdraw()
	}
}
