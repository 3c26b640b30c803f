package mlguardextension

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.uber.org/zap"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

var _ extensionmiddleware.GRPCClient = (*guard)(nil)

const (
	// suspectAfter is how long a call waits until its endpoint is probed.
	suspectAfter = 2 * time.Second
	// probeTimeout is how long an endpoint has to greet a new connection.
	probeTimeout = 2 * time.Second
	// probePause is the time between two probes of an endpoint.
	probePause = time.Second
	// trialAfter is how long an endpoint that greets and answers no call is down, until
	// calls try it again.
	trialAfter = time.Minute
)

// failover has the connections of exporters to endpoints that can stand in for each
// other, such as the gateways of load_balancing. Connections to an endpoint that greets
// nobody, or answers no call, are led to another one, the same in every process that knows
// the same ones.
type failover struct {
	after  time.Duration
	logger *zap.Logger
	report func(down int64)

	mu        sync.Mutex
	endpoints map[string]*endpoint
	// running ends with the extension.
	running context.Context //nolint:containedctx // of probes, which outlive each call
	end     context.CancelFunc
	probes  sync.WaitGroup
}

// endpoint is the place that connections have as their target.
type endpoint struct {
	target      string
	connections map[*connection]struct{}
	// suspected endpoints are probed, until one greets and answers.
	suspected, down bool
	// asked is when the first two calls of a method began to which, as to all after them,
	// there is no answer. One call may take long.
	asked map[string][]time.Time
	// calls ends with lose when the endpoint is down, and is made anew when it is up.
	calls context.Context //nolint:containedctx // of calls of several connections
	lose  context.CancelFunc
}

// serve has calls made to the endpoint.
func (e *endpoint) serve() {
	e.down = false
	e.calls, e.lose = context.WithCancel(context.Background())
}

// connection is one of an exporter. As the resolver of its target it decides where
// the connection leads.
type connection struct {
	*failover
	endpoint *endpoint
	client   resolver.ClientConn
	creds    credentials.TransportCredentials
	leadsTo  string
}

// GetGRPCClientOptions returns what makes a connection one of those that stand in for
// each other.
func (g *guard) GetGRPCClientOptions(context.Context) ([]grpc.DialOption, error) {
	c := &connection{failover: &g.failover}
	// An idle connection would end its resolver, and nobody knew of its endpoint.
	return []grpc.DialOption{grpc.WithResolvers(c), grpc.WithChainUnaryInterceptor(c.intercept), grpc.WithIdleTimeout(0)}, nil
}

// Scheme is that of targets without one.
func (*connection) Scheme() string { return "dns" }

// Build learns the target. Names are resolved whenever a connection is made.
func (c *connection) Build(target resolver.Target, client resolver.ClientConn, options resolver.BuildOptions) (resolver.Resolver, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := target.Endpoint()
	e := c.endpoints[name]
	if e == nil {
		e = &endpoint{target: name, connections: map[*connection]struct{}{}, asked: map[string][]time.Time{}}
		e.serve()
		c.endpoints[name] = e
	}
	c.endpoint, c.client, c.creds, c.leadsTo = e, client, options.DialCreds, ""
	e.connections[c] = struct{}{}
	c.lead()
	return c, nil
}

// ResolveNow does nothing: an address changes only with its endpoint.
func (*connection) ResolveNow(resolver.ResolveNowOptions) {}

// Close forgets the connection, and its endpoint with the last one.
func (c *connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.endpoint.connections, c)
	if len(c.endpoint.connections) == 0 && c.endpoints[c.endpoint.target] == c.endpoint {
		delete(c.endpoints, c.endpoint.target)
	}
	c.lead()
}

// lead has each connection lead to its endpoint, or if that is down to the one that
// stands in. If all are down, connections lead to their own. It needs the lock.
func (f *failover) lead() {
	var down int64
	for _, e := range f.endpoints {
		if e.down {
			down++
		}
	}
	f.report(down)
	for _, e := range f.endpoints {
		to := e.target
		if e.down {
			to = f.standIn(e)
		}
		for c := range e.connections {
			if c.leadsTo == to {
				continue
			}
			c.leadsTo = to
			address := resolver.Address{Addr: to}
			if to != e.target && c.creds != nil {
				address.ServerName = nameOf(to, c.creds)
			}
			// An error says that the connection has ended, or that a later state comes.
			// gRPC calls no method of the resolver from here.
			_ = c.client.UpdateState(resolver.State{Addresses: []resolver.Address{address}})
		}
	}
}

// standIn returns the target of the endpoint that stands in for another, by the highest
// hash of both names, so that few are led elsewhere when endpoints come and go.
func (f *failover) standIn(of *endpoint) string {
	best, most := of.target, uint64(0)
	for _, e := range f.endpoints {
		if e.down {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(of.target + "\x00" + e.target))
		if sum := h.Sum64(); best == of.target || sum > most || sum == most && e.target < best {
			best, most = e.target, sum
		}
	}
	return best
}

// intercept makes a call, and makes it again if the endpoint is found to be down while
// it waits.
func (c *connection) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	c.mu.Lock()
	e := c.endpoints[c.leadsTo]
	if e == nil || e.down { // without a resolver, as through a proxy, or all are down
		c.mu.Unlock()
		return invoke(ctx, method, request, reply, conn, options...)
	}
	calls := e.calls
	if len(e.asked[method]) < 2 {
		e.asked[method] = append(e.asked[method], time.Now())
	}
	c.mu.Unlock()

	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(calls, cancel)()
	defer time.AfterFunc(suspectAfter, func() { c.suspect(e) }).Stop()
	err := invoke(waiting, method, request, reply, conn, options...)
	code := status.Code(err)
	if code == codes.Unavailable || code == codes.DeadlineExceeded {
		c.suspect(e)
	}
	if code == codes.Canceled && ctx.Err() == nil {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	if code != codes.DeadlineExceeded && code != codes.Canceled {
		c.mu.Lock()
		delete(e.asked, method)
		c.mu.Unlock()
	}
	return err
}

// suspect has an endpoint probed until it greets.
func (c *connection) suspect(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.suspected || c.running.Err() != nil || c.creds == nil {
		return
	}
	e.suspected = true
	creds := c.creds
	c.probes.Go(func() { c.probe(e, creds) })
}

// unanswered returns for how long two calls of a method have waited, and all after them.
func (e *endpoint) unanswered() (longest time.Duration) {
	for _, began := range e.asked {
		if len(began) == 2 {
			longest = max(longest, time.Since(began[1]))
		}
	}
	return longest
}

// probe finds an endpoint down if for as long as is configured it does not greet, or two
// calls and all after them wait for an answer. It is up when it greets, and in the second
// case a while has gone.
func (f *failover) probe(e *endpoint, creds credentials.TransportCredentials) {
	// The call that gave the suspicion has waited.
	for since, greeted := time.Now(), true; ; {
		greets := f.greets(e.target, creds)
		f.mu.Lock()
		if greets && !greeted || e.down && e.unanswered() >= f.after+trialAfter {
			clear(e.asked) // another process, or it is tried again
		}
		if greeted = greets; greets {
			since = time.Now()
		}
		waits, gone, failed := e.unanswered(), f.endpoints[e.target] != e, false
		up := greets && waits < f.after
		switch {
		case up && e.down:
			e.serve()
			f.logger.Info("An endpoint gets what is for it again.", zap.String("endpoint", e.target))
		case !e.down && !gone && (waits >= f.after || time.Since(since) >= f.after):
			e.down, failed = true, true
			if other := f.standIn(e); other != e.target {
				f.logger.Warn("An endpoint does not answer. Another one gets what is for it.",
					zap.String("endpoint", e.target), zap.String("other", other), zap.Duration("failover_after", f.after))
			} else {
				f.logger.Warn("An endpoint does not answer. No other one does, so what is for it waits.",
					zap.String("endpoint", e.target), zap.Duration("failover_after", f.after))
			}
		}
		f.lead()
		if failed {
			e.lose() // after its connections lead elsewhere
		}
		f.mu.Unlock()
		select {
		case <-f.running.Done():
			return
		case <-time.After(probePause):
		}
		if gone || up && waits < suspectAfter {
			f.mu.Lock()
			e.suspected = false
			f.mu.Unlock()
			return
		}
	}
}

// greets reports whether an endpoint greets a new connection: the server's first frame
// comes from the process itself, while the kernel accepts connections also for one that
// is stopped.
func (f *failover) greets(target string, creds credentials.TransportCredentials) bool {
	ctx, cancel := context.WithTimeout(f.running, probeTimeout)
	defer cancel()
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = plain.Close() })()
	defer func() { _ = plain.Close() }()
	conn, _, err := creds.Clone().ClientHandshake(ctx, nameOf(target, creds), plain)
	if err != nil {
		return false
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return false
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return false
	}
	_, err = framer.ReadFrame()
	return err == nil
}

// nameOf returns what the certificate of an endpoint is for: server_name_override, or else
// the endpoint.
func nameOf(target string, creds credentials.TransportCredentials) string {
	return cmp.Or(creds.Info().ServerName, target) //nolint:staticcheck // gRPC itself reads it
}

// stop ends the probes.
func (f *failover) stop() {
	f.mu.Lock()
	f.end()
	f.mu.Unlock()
	f.probes.Wait()
}
