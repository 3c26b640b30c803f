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

	bytes atomic.Int64
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
		t.builder.RegisterExporterMlViewBytesSentCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(t.bytes.Load(), t.own)
			return nil
		}),
		t.builder.RegisterExporterMlViewRowsHiddenCallback(func(_ context.Context, o metric.Int64Observer) error {
			for list, rows := range store.State().Collector.Hidden {
				o.Observe(int64(rows), t.with("list", list))
			}
			return nil
		}))
}

// refused counts a refused request by the status of its answer.
func (t *telemetry) refused(ctx context.Context, status int) {
	reason := ""
	switch status {
	case http.StatusUnauthorized:
		reason = "auth"
	case http.StatusForbidden:
		reason = "host"
	case http.StatusMethodNotAllowed:
		reason = "method"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		reason = "clients"
	default:
		return
	}
	t.builder.ExporterMlViewRequestsRefused.Add(ctx, 1, t.with("reason", reason))
}

func (t *telemetry) storageError(ctx context.Context, operation string) {
	t.builder.ExporterMlViewStorageErrors.Add(ctx, 1, t.with("operation", operation))
}

func (t *telemetry) reproductionsError(ctx context.Context) {
	t.builder.ExporterMlViewReproductionsErrors.Add(ctx, 1, t.own)
}

// count counts the bytes and the refusals of next.
func (t *telemetry) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countingWriter{ResponseWriter: w, bytes: &t.bytes}
		next.ServeHTTP(counted, r)
		t.refused(r.Context(), counted.status)
	})
}

// countingWriter counts the bytes of an answer while they are sent.
type countingWriter struct {
	http.ResponseWriter
	bytes  *atomic.Int64
	status int
}

// WriteHeader notes the status.
func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what was written.
func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
