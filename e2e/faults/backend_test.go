package faults

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	// Collectors compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"
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

// newBackend returns a backend that is down. Its port is its own until the test
// ends: a socket that does not listen refuses connections and keeps others out.
func newBackend(t *testing.T) *backend {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Close(socket)) })
	require.NoError(t, unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	require.NoError(t, unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := unix.Getsockname(socket)
	require.NoError(t, err)
	port := bound.(*unix.SockaddrInet4).Port
	return &backend{
		address:  net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		arrivals: map[uint64]int{},
	}
}

// shared lets the backend listen on the port that its socket holds.
var shared = net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(socket uintptr) {
		set = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, set)
}}

// up has the backend listen until down is called or the test ends.
func (b *backend) up(t *testing.T) {
	t.Helper()
	listener, err := shared.Listen(t.Context(), "tcp", b.address)
	require.NoError(t, err)
	server, served := grpc.NewServer(), make(chan error, 1)
	ptraceotlp.RegisterGRPCServer(server, b)
	go func() { served <- server.Serve(listener) }()
	b.mu.Lock()
	b.server, b.served = server, served
	b.mu.Unlock()
	t.Cleanup(func() { b.down(t) })
}

// down closes the port and the connections.
func (b *backend) down(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	server, served := b.server, b.served
	b.server = nil
	b.mu.Unlock()
	if server != nil {
		server.Stop()
		assert.NoError(t, <-served)
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
