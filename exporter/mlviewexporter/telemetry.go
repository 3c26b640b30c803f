package mlviewexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
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

// streamPath is the path of the stream, whose requests last as long as a page is
// open.
const streamPath = "/api/v1/events"

// traffic counts what the page sends.
type traffic struct {
	// bytes are those of all answers; clients are the open streams, events what
	// was sent on them, and dropped the streams whose client was too slow.
	bytes, clients, events, dropped atomic.Int64
}

// count counts the traffic of next, and passes the status of each answer to done.
func (t *traffic) count(next http.Handler, done func(ctx context.Context, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countingWriter{ResponseWriter: w, traffic: t, status: http.StatusOK}
		if r.URL.Path == streamPath {
			counted.stream = true
			t.clients.Add(1)
			defer t.clients.Add(-1)
		}
		next.ServeHTTP(counted, r)
		if counted.late {
			t.dropped.Add(1)
		}
		done(r.Context(), counted.status)
	})
}

// countingWriter counts an answer while it is sent.
type countingWriter struct {
	http.ResponseWriter
	traffic *traffic
	status  int
	// stream reports whether the answer is a stream, late whether its client did
	// not read it in time.
	stream, late bool
}

// WriteHeader notes the status.
func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what was written.
func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.traffic.bytes.Add(int64(n))
	return n, w.note(err)
}

// FlushError sends what was written. An event of a stream ends with it.
func (w *countingWriter) FlushError() error {
	err := w.note(http.NewResponseController(w.ResponseWriter).Flush())
	if err == nil && w.stream {
		w.traffic.events.Add(1)
	}
	return err
}

// note notes whether the error says that the client was too slow, and returns it.
func (w *countingWriter) note(err error) error {
	w.late = w.late || w.stream && errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// Unwrap lets http.ResponseController set deadlines.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
