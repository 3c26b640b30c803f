package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	// Collectors compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"
)

// sink takes OTLP over gRPC, and counts spans, points and what they have taken on the
// wire.
type sink struct {
	ptraceotlp.UnimplementedGRPCServer
	address string
	// keeps reports whether requests are kept until take.
	keeps               bool
	spans, points, wire atomic.Int64

	mu      sync.Mutex
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
}

func startSink(tb testing.TB, keeps bool) *sink {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &sink{address: listener.Addr().String(), keeps: keeps}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	ptraceotlp.RegisterGRPCServer(server, s)
	pmetricotlp.RegisterGRPCServer(server, &metricSink{sink: s})
	plogotlp.RegisterGRPCServer(server, &logSink{})
	go func() { _ = server.Serve(counting{listener, &s.wire}) }()
	tb.Cleanup(server.Stop)
	return s
}

// Export counts spans.
func (s *sink) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.spans.Add(int64(request.Traces().SpanCount()))
	if s.keeps {
		s.mu.Lock()
		s.traces = append(s.traces, request.Traces())
		s.mu.Unlock()
	}
	return ptraceotlp.NewExportResponse(), nil
}

// take returns the requests since the last call.
func (s *sink) take() (traces []ptrace.Traces, metrics []pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	traces, metrics, s.traces, s.metrics = s.traces, s.metrics, nil, nil
	return traces, metrics
}

type metricSink struct {
	pmetricotlp.UnimplementedGRPCServer
	sink *sink
}

// Export counts points.
func (m *metricSink) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	m.sink.points.Add(int64(request.Metrics().DataPointCount()))
	if m.sink.keeps {
		m.sink.mu.Lock()
		m.sink.metrics = append(m.sink.metrics, request.Metrics())
		m.sink.mu.Unlock()
	}
	return pmetricotlp.NewExportResponse(), nil
}

type logSink struct {
	plogotlp.UnimplementedGRPCServer
}

// Export takes records and forgets them.
func (*logSink) Export(context.Context, plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), nil
}

// counting is a listener whose connections count what they read.
type counting struct {
	net.Listener
	read *atomic.Int64
}

// Accept returns a connection that counts.
func (c counting) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{connection, c.read}, nil
}

type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}
