package scale

import (
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestFleet has one part of a fleet after another fail.
func TestFleet(t *testing.T) {
	of, spans := size{agents: 6, gateways: 3, runs: 24}, 800
	if testing.Short() {
		of, spans = size{agents: 2, gateways: 2, runs: 6}, 500
	}
	f := newFleet(t, of)
	f.generator = harness.StartGenerator(t, harness.Endpoints{GRPC: f.clients.address}, harness.Workload{
		Seed: 1, Scenarios: "all", Fleet: fmt.Sprintf("runs=%d,ranks=8,gpus=%d", of.runs, 8*of.runs), Rate: rate, Ranks: 8, MetricsInterval: 10 * time.Second,
	})
	f.awaitSpans(spans, f.gateways...)
	outcomes := []outcome{f.check(healthy)}
	assert.Empty(t, outcomes[0].differences, "the gateways together count what one collector does")
	f.checkSignals()

	for _, fault := range faults {
		if testing.Short() && !fault.fast {
			continue
		}
		fault.happens(f, spans)
		o := f.check(fault.name)
		outcomes = append(outcomes, o)
		if !fault.loses {
			assert.Empty(t, o.differences, fault.name)
		}
	}
	f.checkLog()
	f.checkOutput()
	if *update && !t.Failed() && !testing.Short() {
		writePage(t, outcomes)
	}
}

// rate is that of the generator's steps: the ranks of its fleet take one in 2.5 to
// 7.5 seconds, those of each scenario four a second.
const rate = 4

// healthy is what happens before the first fault.
const healthy = "nothing"

// fault is one that a fleet has to survive.
type fault struct {
	name string
	// loses says that counts may be missing, or counted twice.
	loses bool
	// fast ones are in the short test.
	fast bool
	// happens has the fault come and go, or stay, while spans arrive. What is away is
	// back before its runs are stalled.
	happens func(f *fleet, spans int)
}

var faults = []fault{
	// The runs of the agent have another gateway meanwhile, and those of other machines
	// do not: both gateways count their steps.
	{name: "network between an agent and a gateway cut", loses: true, happens: func(f *fleet, spans int) {
		a, g := f.agents[0], f.gateways[0]
		f.awaitFailover(func() { a.cut(f.T, g.number) }, a)
		f.awaitSpans(spans, f.gateways[1:]...)
		a.mend(f.T, g.number)
		f.awaitSpans(spans, f.gateways...)
	}},
	{name: "agent killed", happens: func(f *fleet, spans int) {
		a := f.agents[1]
		a.collector.Kill(f.T)
		f.awaitSpans(spans/8, f.gateways...)
		f.startAgent(a)
		f.awaitSpans(spans, f.gateways...)
	}},
	// It keeps its counters, so what it counted is still there.
	{name: "gateway killed", loses: true, fast: true, happens: func(f *fleet, spans int) {
		g := f.gateways[1]
		g.collector.Kill(f.T)
		f.awaitSpans(spans/8, append([]*gateway{f.gateways[0]}, f.gateways[2:]...)...)
		f.startGateway(g)
		f.awaitSpans(spans, f.gateways...)
	}},
	{name: "gateway paused", loses: true, fast: true, happens: func(f *fleet, spans int) {
		g := f.gateways[1]
		f.awaitFailover(func() { require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGSTOP)) }, f.agents...)
		f.awaitSpans(spans, append([]*gateway{f.gateways[0]}, f.gateways[2:]...)...)
		require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGCONT))
		f.awaitSpans(spans, f.gateways...)
	}},
	{name: "gateway that takes requests and answers none", loses: true, happens: func(f *fleet, spans int) {
		g := f.gateways[1]
		g.collector.Kill(f.T)
		var stop func()
		f.awaitFailover(func() { stop = answersNothing(f.T, at(gatewayIP(g.number), otlpPort)) }, f.agents...)
		f.awaitSpans(spans, append([]*gateway{f.gateways[0]}, f.gateways[2:]...)...)
		stop()
		f.startGateway(g)
		f.awaitSpans(spans, f.gateways...)
	}},
	// What goes there has another gateway, the same from all agents.
	{name: "dead address in DNS", fast: true, happens: func(f *fleet, spans int) {
		f.awaitFailover(func() { f.resolveNames(append(slices.Clone(f.gateways), &gateway{number: 99})...) }, f.agents...)
		f.awaitSpans(spans, f.gateways...)
		f.resolveNames(f.gateways...)
		f.awaitSpans(spans, f.gateways...)
	}},
	{name: "gateway added", happens: func(f *fleet, spans int) {
		f.addGateway()
		f.resolve(f.gateways...)
		f.awaitSpans(spans, f.gateways...)
		f.awaitLeftRuns()
	}},
	{name: "gateway drained", happens: func(f *fleet, spans int) {
		g, others := f.gateways[0], f.gateways[1:]
		f.resolveNames(others...)
		f.awaitSpans(spans, others...)
		f.awaitQuiet(g)
		f.awaitRead(g)
		f.end(g)
		require.Zero(f, g.collector.Stop(f.T), "exit code after SIGTERM")
		f.gateways = others
		f.scrape(others...)
	}},
	{name: "all gateways killed", loses: true, happens: func(f *fleet, spans int) {
		for _, g := range f.gateways {
			g.collector.Kill(f.T)
		}
		for _, g := range f.gateways {
			f.startGateway(g)
		}
		f.awaitSpans(spans, f.gateways...)
	}},
}

// answersNothing has a server take requests at an address and answer none, until the
// returned function is called.
func answersNothing(t *testing.T, address string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	// A server without handlers would refuse them.
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	t.Cleanup(stop)
	return stop
}

// end keeps what Prometheus has read of a gateway that is about to end for good.
func (f *fleet) end(g *gateway) {
	f.Helper()
	require.NoError(f, f.ended.readEnded(f.Context(), f.joined, g))
}

// awaitSpans waits until the back end of each gateway has this many more spans.
func (f *fleet) awaitSpans(more int, gateways ...*gateway) {
	f.Helper()
	before := f.stored.arrived()
	require.Eventually(f, func() bool {
		now := f.stored.arrived()
		for _, g := range gateways {
			if now[g.number] < before[g.number]+more {
				return false
			}
		}
		return true
	}, patience, poll, "spans arrive")
}

// awaitFailover waits until one of the agents has found a gateway down because of a
// fault. An agent without runs of that gateway does not look.
func (f *fleet) awaitFailover(fault func(), agents ...*agent) {
	f.Helper()
	found := func(a *agent) int { return strings.Count(a.collector.Output(), "An endpoint does not answer") }
	before := map[*agent]int{}
	for _, a := range agents {
		before[a] = found(a)
	}
	fault()
	require.Eventually(f, func() bool {
		return slices.ContainsFunc(agents, func(a *agent) bool { return found(a) > before[a] })
	}, patience, poll, "no agent finds the gateway down")
}

// awaitLeftRuns waits until a gateway takes a run for stalled or silent that has
// moved to another one, so that it shows whether anybody is paged for that.
func (f *fleet) awaitLeftRuns() {
	f.Helper()
	f.joined.AwaitSeries(f.T, `run_writer:overruled`)
}

// quietFor is longer than agents take to notice that an address has gone.
const quietFor = 8 * time.Second

// awaitQuiet waits until agents send nothing more to a gateway.
func (f *fleet) awaitQuiet(g *gateway) {
	f.Helper()
	last, changed := -1, time.Now()
	require.Eventually(f, func() bool {
		if now := f.stored.arrived()[g.number]; now != last {
			last, changed = now, time.Now()
		}
		return time.Since(changed) > quietFor
	}, patience, poll, "spans arrive at a gateway without an address")
}

// awaitRead waits until Prometheus has read what a gateway has counted.
func (f *fleet) awaitRead(g *gateway) {
	f.Helper()
	address := at(gatewayIP(g.number), seriesPort)
	require.EventuallyWithT(f, func(c *assert.CollectT) {
		shown, read := counters{}, counters{}
		assert.NoError(c, shown.read(f.Context(), address))
		assert.NoError(c, read.readEnded(f.Context(), f.joined, g))
		assert.Empty(c, shown.minus(read), "not read yet")
	}, patience, time.Second)
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	return raw
}
