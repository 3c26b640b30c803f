package mlsampleprocessor

import (
	"context"

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

// telemetry is the metrics of a traces instance.
type telemetry struct {
	builder   *metadata.TelemetryBuilder
	processor attribute.KeyValue
	// left has what the page's notices count.
	left shared.Tally
}

func newTelemetry(set processor.Settings, sampler *sample.Sampler) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, processor: attribute.String("processor", set.ID.String())}
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
		t.left.Add(decidedEarly, counts.Early)
	}
	if counts.Overflow > 0 {
		t.lost(ctx, lostOverflow, counts.Overflow)
	}
}

// lost counts lost spans.
func (t *telemetry) lost(ctx context.Context, reason string, spans int64) {
	t.left.Add(reason, spans)
	t.builder.ProcessorMlSampleSpansLost.Add(ctx, spans, t.with(attribute.String("reason", reason)))
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }
