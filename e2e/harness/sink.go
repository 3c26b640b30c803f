package harness

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	// Collectors compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"
)

// Sink is a back end that takes OTLP over gRPC and keeps all of it.
type Sink struct {
	// Endpoint is where the sink listens, as host:port.
	Endpoint string

	mu      sync.Mutex
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
	logs    []plog.Logs
}

// StartSink starts a sink that ends with the test.
func StartSink(tb testing.TB) *Sink {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	sink := &Sink{Endpoint: listener.Addr().String()}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, &traceSink{sink: sink})
	pmetricotlp.RegisterGRPCServer(server, &metricSink{sink: sink})
	plogotlp.RegisterGRPCServer(server, &logSink{sink: sink})

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	tb.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			tb.Errorf("the sink ended: %v", err)
		}
	})
	return sink
}

// Traces returns all requests with spans that have arrived.
func (s *Sink) Traces() []ptrace.Traces {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.traces)
}

// MetricRequests returns all requests with metrics that have arrived.
func (s *Sink) MetricRequests() []pmetric.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.metrics)
}

// Logs returns all requests with log records that have arrived.
func (s *Sink) Logs() []plog.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs)
}

// Spans returns all spans that have arrived.
func (s *Sink) Spans() []ptrace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var spans []ptrace.Span
	for _, traces := range s.traces {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

// Metrics returns the names of all metrics that have arrived.
func (s *Sink) Metrics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, metrics := range s.metrics {
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					names = append(names, metric.Name())
				}
			}
		}
	}
	return names
}

// LogRecords returns all log records that have arrived.
func (s *Sink) LogRecords() []plog.LogRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	var records []plog.LogRecord
	for _, logs := range s.logs {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					records = append(records, record)
				}
			}
		}
	}
	return records
}

type traceSink struct {
	ptraceotlp.UnimplementedGRPCServer
	sink *Sink
}

// Export keeps the request's spans.
func (s *traceSink) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.traces = append(s.sink.traces, request.Traces())
	return ptraceotlp.NewExportResponse(), nil
}

type metricSink struct {
	pmetricotlp.UnimplementedGRPCServer
	sink *Sink
}

// Export keeps the request's metrics.
func (s *metricSink) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.metrics = append(s.sink.metrics, request.Metrics())
	return pmetricotlp.NewExportResponse(), nil
}

type logSink struct {
	plogotlp.UnimplementedGRPCServer
	sink *Sink
}

// Export keeps the request's log records.
func (s *logSink) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.logs = append(s.sink.logs, request.Logs())
	return plogotlp.NewExportResponse(), nil
}
