package mlviewexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

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
	traffic traffic
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
	return errors.Join(
		t.builder.RegisterExporterMlViewBytesSentCallback(t.report(&t.traffic.bytes)),
		t.builder.RegisterExporterMlViewClientsCallback(t.report(&t.traffic.clients)),
		t.builder.RegisterExporterMlViewClientsDroppedCallback(t.report(&t.traffic.dropped)),
		t.builder.RegisterExporterMlViewEventsSentCallback(t.report(&t.traffic.events)),
		t.builder.RegisterExporterMlViewRowsHiddenCallback(func(_ context.Context, o metric.Int64Observer) error {
			for list, rows := range store.Hidden() {
				o.Observe(int64(rows), t.with("list", list))
			}
			return nil
		}))
}

func (t *telemetry) report(n *atomic.Int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(n.Load(), t.own)
		return nil
	}
}

// refusals are the reasons of refused requests by the status of their answers.
var refusals = map[int]string{
	http.StatusUnauthorized: "auth", http.StatusForbidden: "host", http.StatusMethodNotAllowed: "method",
	http.StatusServiceUnavailable: "clients", http.StatusTooManyRequests: "clients",
}

// refused counts a refused request by the status of its answer.
func (t *telemetry) refused(ctx context.Context, status int) {
	if reason := refusals[status]; reason != "" {
		t.builder.ExporterMlViewRequestsRefused.Add(ctx, 1, t.with("reason", reason))
	}
}
