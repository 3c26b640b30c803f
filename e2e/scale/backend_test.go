package scale

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	// Collectors compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"
)

// store is what back ends have received: each span, how often from which gateway,
// and its run.
type store struct {
	mu    sync.Mutex
	spans map[pcommon.SpanID]*stored
	// from counts the spans by gateway.
	from map[int]int
	// logs has the gateways from which records of a run came.
	logs map[string]map[int]bool
}

// stored is a span of a store.
type stored struct {
	run string
	// what names the span and its service.
	what string
	from map[int]int
}

func newStore() *store {
	return &store{spans: map[pcommon.SpanID]*stored{}, from: map[int]int{}, logs: map[string]map[int]bool{}}
}

// backend takes OTLP over gRPC from one gateway.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	store   *store
	gateway int
	address string
}

// newBackend starts a back end that ends with the test.
func newBackend(t *testing.T, to *store, gateway int) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &backend{store: to, gateway: gateway, address: listener.Addr().String()}
	server, served := grpc.NewServer(), make(chan error, 1)
	ptraceotlp.RegisterGRPCServer(server, b)
	plogotlp.RegisterGRPCServer(server, &logBackend{backend: b})
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) {
			assert.NoError(t, err)
		}
	})
	return b
}

// Export keeps the spans of a request.
func (b *backend) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for _, resource := range request.Traces().ResourceSpans().All() {
		of := text(resource.Resource().Attributes(), "ml.run.id")
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				found := b.store.spans[span.SpanID()]
				if found == nil {
					found = &stored{run: of, from: map[int]int{}, what: text(resource.Resource().Attributes(), "service.name") + " " + span.Name()}
					if own := text(span.Attributes(), "ml.run.id"); own != "" {
						found.run = own
					}
					b.store.spans[span.SpanID()] = found
				}
				found.from[b.gateway]++
				b.store.from[b.gateway]++
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

type logBackend struct {
	plogotlp.UnimplementedGRPCServer
	backend *backend
}

// Export keeps the runs of a request's records.
func (b *logBackend) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	to := b.backend.store
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, resource := range request.Logs().ResourceLogs().All() {
		of := text(resource.Resource().Attributes(), "ml.run.id")
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				run := of
				if own := text(record.Attributes(), "ml.run.id"); own != "" {
					run = own
				}
				if run == "" {
					continue
				}
				if to.logs[run] == nil {
					to.logs[run] = map[int]bool{}
				}
				to.logs[run][b.backend.gateway] = true
			}
		}
	}
	return plogotlp.NewExportResponse(), nil
}

func text(attributes pcommon.Map, key string) string {
	value, _ := attributes.Get(key)
	return value.Str()
}

// has returns how many of the spans are here.
func (s *store) has(ids []pcommon.SpanID) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.spans[id] != nil {
			n++
		}
	}
	return n
}

// arrived returns how many spans came from each gateway.
func (s *store) arrived() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.from)
}

// count returns how many spans there are, how often one came again from the
// gateway that had sent it, and how many came from several.
func (s *store) count() (spans, again, several int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.spans {
		for _, times := range span.from {
			again += times - 1
		}
		several += len(span.from) - 1
	}
	return len(s.spans), again, several
}

// runs returns the run of each span.
func (s *store) runs() map[pcommon.SpanID]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := make(map[pcommon.SpanID]string, len(s.spans))
	for id, span := range s.spans {
		runs[id] = span.run
	}
	return runs
}

// gatewaysOf returns from which gateways the spans of each run came, and from which
// its log records.
func (s *store) gatewaysOf() (spans, logs map[string][]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string]map[int]bool{}
	for _, span := range s.spans {
		if span.run == "" {
			continue
		}
		if of[span.run] == nil {
			of[span.run] = map[int]bool{}
		}
		for gateway := range span.from {
			of[span.run][gateway] = true
		}
	}
	return sorted(of), sorted(s.logs)
}

func sorted(sets map[string]map[int]bool) map[string][]int {
	lists := make(map[string][]int, len(sets))
	for key, set := range sets {
		lists[key] = slices.Sorted(maps.Keys(set))
	}
	return lists
}
