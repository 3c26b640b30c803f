package mlviewexporter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// telemetry reports about the exporter itself.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	id      attribute.KeyValue
	own     metric.MeasurementOption
}

func newTelemetry(set exporter.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create the exporter's telemetry: %w", err)
	}
	id := attribute.String("exporter", set.ID.String())
	return &telemetry{builder: builder, id: id, own: metric.WithAttributeSet(attribute.NewSet(id))}, nil
}

func (t *telemetry) with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(t.id, attribute.String(key, value)))
}

// observe registers what is read when somebody asks.
func (t *telemetry) observe(store *model.Store) error {
	return t.builder.RegisterExporterMlViewRowsHiddenCallback(func(_ context.Context, o metric.Int64Observer) error {
		for list, rows := range store.Hidden() {
			o.Observe(int64(rows), t.with("list", list))
		}
		return nil
	})
}

// lastError is the text of an error that may occur at each interval, "" for none.
type lastError string

// differs notes an error, nil for none, and reports whether it is another one than the last.
func (l *lastError) differs(err error) bool {
	was := *l
	*l = ""
	if err != nil {
		*l = lastError(err.Error())
	}
	return err != nil && *l != was
}
