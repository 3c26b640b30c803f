package faults

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	// Collectors compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// backend takes OTLP over gRPC, with the limits that a gRPC server has by
// default, and counts how often each span arrives. It can be down, slow, or
// refuse.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	// address is where the backend listens while it is up.
	address string

	mu       sync.Mutex
	server   *grpc.Server
	served   chan error
	arrivals map[uint64]int
	// answer is what a request gets; nil is success. A span counts as arrived
	// only where the answer is success.
	answer func(context.Context) error
	// answered counts the requests that got an answer, of whatever kind.
	answered int
}

// newBackend returns a backend that is down.
func newBackend(t *testing.T) *backend {
	t.Helper()
	return &backend{
		address:  net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t))),
		arrivals: map[uint64]int{},
	}
}

// up has the backend listen until down is called or the test ends.
func (b *backend) up(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", b.address)
	require.NoError(t, err)
	server, served := grpc.NewServer(), make(chan error, 1)
	ptraceotlp.RegisterGRPCServer(server, b)
	go func() { served <- server.Serve(listener) }()
	b.mu.Lock()
	b.server, b.served = server, served
	b.mu.Unlock()
	t.Cleanup(b.down)
}

// down closes the port and the connections.
func (b *backend) down() {
	b.mu.Lock()
	server, served := b.server, b.served
	b.server = nil
	b.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served
	}
}

// answers sets what requests get from now on.
func (b *backend) answers(answer func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// Export counts the spans of a request that is answered with success.
func (b *backend) Export(ctx context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	answer := b.answer
	b.mu.Unlock()
	var err error
	if answer != nil {
		err = answer(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered++
	if err != nil {
		return ptraceotlp.NewExportResponse(), err
	}
	for _, resource := range request.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				b.arrivals[idOf(span.SpanID())]++
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// arrived returns how many spans have arrived, each counted once.
func (b *backend) arrived() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrivals)
}

// requests returns how many requests got an answer.
func (b *backend) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered
}

// compare returns how many of the ids never arrived and how many spans arrived
// more than once.
func (b *backend) compare(ids []uint64) (lost, twice int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if b.arrivals[id] == 0 {
			lost++
		}
	}
	for _, times := range b.arrivals {
		if times > 1 {
			twice++
		}
	}
	return lost, twice
}
