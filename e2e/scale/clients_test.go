package scale

import (
	"context"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// clients take what the workload generator sends and pass the telemetry of each
// process to the agent of its machine, and all of it to a single collector. As an
// SDK, they send in order and repeat what was not acknowledged.
type clients struct {
	ptraceotlp.UnimplementedGRPCServer
	address string
	agents  []*client
	single  *client

	// gate is held for reading while a request is passed on to its clients, and for
	// writing while they begin or cease to hold requests.
	gate sync.RWMutex
}

// startClients starts clients of agents and of a single collector, given their
// addresses. They end with the test.
func startClients(t *testing.T, single string, agents ...string) *clients {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &clients{address: listener.Addr().String()}
	c.single = startClient(t, single)
	for _, agent := range agents {
		c.agents = append(c.agents, startClient(t, agent))
	}
	server, served := grpc.NewServer(), make(chan error, 1)
	ptraceotlp.RegisterGRPCServer(server, c)
	pmetricotlp.RegisterGRPCServer(server, &metricClients{clients: c})
	plogotlp.RegisterGRPCServer(server, &logClients{clients: c})
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	return c
}

// pause has the clients hold what the generator sends from now on, and returns a
// function that ends this. When it returns, every earlier request is acknowledged by
// its agents and by the single collector.
func (c *clients) pause(t *testing.T) (resume func()) {
	t.Helper()
	c.hold(true)
	for number, to := range c.all() {
		if !assert.Eventually(t, to.idle, patience, poll) {
			to.mu.Lock()
			require.Fail(t, "requests are not acknowledged", "client %d: %d wait, %d repeated, %v", number, len(to.waiting), to.repeated, to.failed)
		}
	}
	return func() { c.hold(false) }
}

func (c *clients) all() []*client { return append(slices.Clone(c.agents), c.single) }

// hold has all clients begin or cease to hold requests, each of them wholly.
func (c *clients) hold(on bool) {
	c.gate.Lock()
	defer c.gate.Unlock()
	for _, to := range c.all() {
		to.hold(on)
	}
}

// Export passes spans on.
func (c *clients) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	parts := map[*client]ptrace.Traces{}
	for _, rs := range request.Traces().ResourceSpans().All() {
		to := c.agentOf(rs.Resource().Attributes())
		if _, ok := parts[to]; !ok {
			parts[to] = ptrace.NewTraces()
		}
		rs.CopyTo(parts[to].ResourceSpans().AppendEmpty())
	}
	parts[c.single] = request.Traces()
	for to, part := range parts {
		to.send(item{spans: idsOf(part), send: func(ctx context.Context, sender *harness.GRPCSender) error { return sender.Traces(ctx, part) }})
	}
	return ptraceotlp.NewExportResponse(), nil
}

type metricClients struct {
	pmetricotlp.UnimplementedGRPCServer
	clients *clients
}

// Export passes metrics on.
func (m *metricClients) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	c := m.clients
	c.gate.RLock()
	defer c.gate.RUnlock()
	parts := map[*client]pmetric.Metrics{}
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		to := c.agentOf(rm.Resource().Attributes())
		if _, ok := parts[to]; !ok {
			parts[to] = pmetric.NewMetrics()
		}
		rm.CopyTo(parts[to].ResourceMetrics().AppendEmpty())
	}
	parts[c.single] = request.Metrics()
	for to, part := range parts {
		to.send(item{send: func(ctx context.Context, sender *harness.GRPCSender) error { return sender.Metrics(ctx, part) }})
	}
	return pmetricotlp.NewExportResponse(), nil
}

type logClients struct {
	plogotlp.UnimplementedGRPCServer
	clients *clients
}

// Export passes log records on.
func (l *logClients) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	c := l.clients
	c.gate.RLock()
	defer c.gate.RUnlock()
	parts := map[*client]plog.Logs{}
	for _, rl := range request.Logs().ResourceLogs().All() {
		to := c.agentOf(rl.Resource().Attributes())
		if _, ok := parts[to]; !ok {
			parts[to] = plog.NewLogs()
		}
		rl.CopyTo(parts[to].ResourceLogs().AppendEmpty())
	}
	parts[c.single] = request.Logs()
	for to, part := range parts {
		to.send(item{send: func(ctx context.Context, sender *harness.GRPCSender) error { return sender.Logs(ctx, part) }})
	}
	return plogotlp.NewExportResponse(), nil
}

// ranksOfMachine is how many ranks, and GPUs, of a simulated host are on one
// machine here, so that the runs span machines.
const ranksOfMachine = 4

// agentOf returns the client of the machine that a resource is on.
func (c *clients) agentOf(resource pcommon.Map) *client {
	place, half := text(resource, "host.name")+text(resource, "host"), int64(0)
	if place == "" {
		// The processes of one system, such as snakepit and snakepit.python.bridge.
		place, _, _ = strings.Cut(text(resource, "service.name"), ".")
	}
	for _, key := range []string{"ml.rank.global", "global_rank", "nvidia.gpu.index"} {
		if value, ok := resource.Get(key); ok {
			half = value.Int() / ranksOfMachine
			break
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(place))
	return c.agents[(int64(hash.Sum32())+half)%int64(len(c.agents))]
}

func idsOf(td ptrace.Traces) (ids []pcommon.SpanID) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				ids = append(ids, span.SpanID())
			}
		}
	}
	return ids
}

// item is a request.
type item struct {
	spans []pcommon.SpanID
	send  func(context.Context, *harness.GRPCSender) error
}

// client sends requests to one collector, one after the other.
type client struct {
	sender *harness.GRPCSender

	mu      sync.Mutex
	waiting []item
	// held are requests that wait until holds is false.
	held  []item
	holds bool
	// wake has room for one signal that requests wait.
	wake chan struct{}
	// acknowledged are the spans of requests that the collector has answered, and
	// repeated counts the requests that were sent again.
	acknowledged []pcommon.SpanID
	repeated     int
	// failed is why the last one was.
	failed error
}

const (
	// requestTimeout ends a request that is never answered.
	requestTimeout = 10 * time.Second
	// repeatPause keeps a client from sending without pause.
	repeatPause = 100 * time.Millisecond
)

func startClient(t *testing.T, address string) *client {
	t.Helper()
	sender, err := harness.NewGRPCSender(address)
	require.NoError(t, err)
	c := &client{sender: sender, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		assert.NoError(t, sender.Close())
	})
	return c
}

// send has a request sent after those before it.
func (c *client) send(request item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds {
		c.held = append(c.held, request)
		return
	}
	c.waiting = append(c.waiting, request)
	c.signal()
}

// hold has the client begin or cease to hold requests.
func (c *client) hold(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = on
	if !on {
		c.waiting, c.held = append(c.waiting, c.held...), nil
		c.signal()
	}
}

func (c *client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *client) run(ctx context.Context) {
	for {
		c.mu.Lock()
		waits := len(c.waiting) > 0
		var first item
		if waits {
			first = c.waiting[0]
		}
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return
		case !waits:
			select {
			case <-ctx.Done():
			case <-c.wake:
			}
		default:
			c.deliver(ctx, first)
		}
	}
}

// deliver sends the first request once.
func (c *client) deliver(ctx context.Context, first item) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	err := first.send(limited, c.sender)
	cancel()
	c.mu.Lock()
	if err == nil {
		c.acknowledged = append(c.acknowledged, first.spans...)
		c.waiting = c.waiting[1:]
	} else {
		c.repeated++
		c.failed = err
	}
	c.mu.Unlock()
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(repeatPause):
		}
	}
}

// idle reports whether every request is acknowledged.
func (c *client) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0
}

// spans returns the acknowledged spans.
func (c *client) spans() []pcommon.SpanID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.acknowledged)
}

// acknowledged returns the spans that agents have acknowledged.
func (c *clients) acknowledged() (spans []pcommon.SpanID) {
	for _, agent := range c.agents {
		spans = append(spans, agent.spans()...)
	}
	return spans
}
