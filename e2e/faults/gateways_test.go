package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// fleet is an agent that sends to gateways, each with a back end of its own, so
// that it is known what each gateway has received.
type fleet struct {
	*testing.T
	agent    *harness.Collector
	gateways []*gateway
	load     *load
	// folder has the queues, and hosts the addresses of the gateways' name.
	folder, hosts string
	// certificate is the folder with that of agents and gateways, if they have TLS.
	certificate string
	port        string
}

// gateway is one of them. It keeps its address and its queue over restarts.
type gateway struct {
	ip        string
	folder    string
	backend   *backend
	collector *harness.Collector
}

// gatewaysName is the name of all gateways.
const gatewaysName = "gateways.test"

// newFleet returns an agent and three gateways, with the shipped configurations.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetWith(t, "")
}

// newFleetWith returns one that has TLS if there is a folder for its certificate.
func newFleetWith(t *testing.T, certificate string) *fleet {
	t.Helper()
	folder := t.TempDir()
	f := &fleet{
		certificate: certificate,
		T:           t, load: &load{spans: 100, runs: 20, resends: true, most: 30000},
		folder: folder, hosts: filepath.Join(folder, "hosts"), port: strconv.Itoa(harness.FreePort(t)),
	}
	for i := range 3 {
		g := &gateway{ip: fmt.Sprintf("127.0.0.%d", i+1), folder: filepath.Join(folder, fmt.Sprintf("gateway-%d", i)), backend: newBackend(t)}
		g.backend.up(t)
		f.gateways = append(f.gateways, g)
		f.start(g)
	}
	f.resolve(f.gateways...)
	f.agent = harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent-gateway.yaml"),
		HostsFile: f.hosts,
		Env: []string{
			"GATEWAY_HOST=" + gatewaysName, "GATEWAY_PORT=" + f.port,
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(folder, "agent"),
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(folder, "reproductions"),
		},
		Overrides: f.secured("exporters::load_balancing::protocol::otlp", map[string]any{}),
	})
	return f
}

// secured adds the settings of TLS to those of a client or server with a path.
func (f *fleet) secured(path string, overrides map[string]any) map[string]any {
	if f.certificate == "" {
		return overrides
	}
	file := func(name string) string { return filepath.Join(f.certificate, name) }
	settings := map[string]any{"cert_file": file("tls.crt"), "key_file": file("tls.key")}
	if strings.HasPrefix(path, "receivers::") {
		settings["client_ca_file"] = file("ca.crt")
	} else {
		settings["insecure"], settings["ca_file"], settings["server_name_override"] = false, file("ca.crt"), gatewaysName
	}
	overrides[path+"::tls"] = settings
	return overrides
}

// start starts a gateway.
func (f *fleet) start(g *gateway) {
	f.Helper()
	g.collector = harness.StartCollector(f, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "gateway.yaml"),
		Env:       []string{"JAEGER_ENDPOINT=" + g.backend.address, "OTELCOL_ML_QUEUE_DIR=" + g.folder},
		Overrides: f.secured("receivers::otlp::protocols::grpc", map[string]any{"receivers::otlp::protocols::grpc::endpoint": g.ip + ":" + f.port}),
	})
}

// resolve has the gateways' name have the addresses of these.
func (f *fleet) resolve(gateways ...*gateway) {
	f.Helper()
	var text strings.Builder
	for _, g := range gateways {
		fmt.Fprintf(&text, "%s %s\n", g.ip, gatewaysName)
	}
	require.NoError(f, os.WriteFile(f.hosts, []byte(text.String()), 0o600))
}

// sending calls fault while spans are sent, and returns when all are
// acknowledged. A load without an end ends when fault returns.
func (f *fleet) sending(fault func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		f.load.run(ctx, f.T, f.agent.Address(f, "receivers::otlp::protocols::grpc"))
	})
	defer running.Wait()
	if f.load.most == 0 {
		defer cancel()
	}
	fault()
}

// awaitArrivals waits until each of the gateways has received this many more spans.
func (f *fleet) awaitArrivals(more int, gateways ...*gateway) {
	f.Helper()
	var before []int
	for _, g := range gateways {
		before = append(before, g.backend.arrived())
	}
	require.Eventually(f, func() bool {
		for i, g := range gateways {
			if g.backend.arrived() < before[i]+more {
				return false
			}
		}
		return true
	}, patience, poll, "spans arrive")
}

// copies is what gateways received beyond the first copy of a span.
type copies struct {
	// away is of the gateway that was away, and healthy of the two others.
	away, healthy int
	// moved are spans that two gateways have.
	moved int
}

// compare returns how many acknowledged spans no gateway has, and the copies.
func (f *fleet) compare(away *gateway) (lost int, c copies) {
	gateways := map[uint64]int{}
	for _, g := range f.gateways {
		g.backend.mu.Lock()
		for id, times := range g.backend.arrivals {
			gateways[id]++
			if g == away {
				c.away += times - 1
			} else {
				c.healthy += times - 1
			}
		}
		g.backend.mu.Unlock()
	}
	for _, n := range gateways {
		c.moved += n - 1
	}
	for _, id := range f.load.ids() {
		if gateways[id] == 0 {
			lost++
		}
	}
	return lost, c
}

// One of three gateways is away for a while. No acknowledged span is lost, and
// no other gateway gets a span twice.
func TestAGatewayIsAway(t *testing.T) {
	for name, away := range map[string]func(f *fleet, g *gateway, others []*gateway){
		"killed, its address stays": func(f *fleet, g *gateway, others []*gateway) {
			g.collector.Kill(f.T)
			f.awaitArrivals(1000, others...)
			f.start(g)
		},
		"killed, its address goes": func(f *fleet, g *gateway, others []*gateway) {
			g.collector.Kill(f.T)
			f.resolve(others...)
			f.awaitArrivals(1000, others...)
			f.start(g)
			f.resolve(f.gateways...)
		},
		"stopped, its address goes": func(f *fleet, g *gateway, others []*gateway) {
			f.resolve(others...)
			assert.Zero(f, g.collector.Stop(f.T))
			f.awaitArrivals(1000, others...)
			f.start(g)
			f.resolve(f.gateways...)
		},
		"paused": func(f *fleet, g *gateway, others []*gateway) {
			require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGSTOP))
			f.awaitArrivals(1000, others...)
			require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGCONT))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "killed, its address goes" {
				t.Skip("not one of the fast ones: make e2e-faults runs it")
			}
			t.Parallel()
			f := newFleet(t)
			g, others := f.gateways[1], []*gateway{f.gateways[0], f.gateways[2]}
			f.sending(func() {
				f.awaitArrivals(500, f.gateways...)
				away(f, g, others)
			})
			require.Eventually(t, func() bool {
				lost, _ := f.compare(g)
				return lost == 0
			}, patience, poll, "acknowledged spans are lost")
			assert.Zero(t, f.agent.Stop(t), "exit code after SIGTERM")
			_, c := f.compare(g)
			acknowledged, refused := f.load.counts()
			t.Logf("%s: acknowledged %d, refused %d, copies %+v", name, acknowledged, refused, c)
			assert.Zero(t, c.healthy, "a gateway that was not away got spans twice")
		})
	}
}

// A gateway is replaced by another with the same address and queue, twice, while
// spans are sent. Each span arrives once.
func TestAGatewayIsReplaced(t *testing.T) {
	f := newFleet(t)
	f.load.most = 0
	g, others := f.gateways[1], []*gateway{f.gateways[0], f.gateways[2]}
	f.sending(func() {
		f.awaitArrivals(500, f.gateways...)
		for range 2 {
			f.resolve(others...)
			f.awaitArrivals(1000, others...)
			assert.Zero(t, g.collector.Stop(t), "exit code after SIGTERM")
			f.start(g)
			f.resolve(f.gateways...)
			f.awaitArrivals(100, g)
		}
	})
	require.Eventually(t, func() bool {
		lost, _ := f.compare(g)
		return lost == 0
	}, patience, poll, "acknowledged spans are lost")
	assert.Zero(t, f.agent.Stop(t), "exit code after SIGTERM")
	_, c := f.compare(g)
	acknowledged, refused := f.load.counts()
	t.Logf("acknowledged %d, refused %d, copies %+v", acknowledged, refused, c)
	assert.Zero(t, c, "spans arrived twice")
}

// silent is a gateway that greets connections, takes requests and answers none.
type silent struct {
	ptraceotlp.UnimplementedGRPCServer
}

// Export waits for the end of the request.
func (*silent) Export(ctx context.Context, _ ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	<-ctx.Done()
	return ptraceotlp.NewExportResponse(), ctx.Err()
}

// A gateway that hangs for good, or an address at which nobody is, stops no agent: every
// span that is sent meanwhile arrives at the others, while it still hangs.
func TestAGatewayHangs(t *testing.T) {
	pause := func(f *fleet, g *gateway) (mend func()) {
		require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGSTOP))
		return func() { require.NoError(f, syscall.Kill(g.collector.PID(), syscall.SIGCONT)) }
	}
	for name, hang := range map[string]func(f *fleet, g *gateway) (mend func()){
		"paused for good":           pause,
		"paused for good, with TLS": pause,
		"killed, its address stays": func(f *fleet, g *gateway) func() {
			g.collector.Kill(f.T)
			return func() { f.start(g) }
		},
		"answers nothing": func(f *fleet, g *gateway) func() {
			g.collector.Kill(f.T)
			listener, err := net.Listen("tcp", g.ip+":"+f.port)
			require.NoError(f, err)
			server := grpc.NewServer()
			ptraceotlp.RegisterGRPCServer(server, &silent{})
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			stop := sync.OnceFunc(func() {
				server.Stop()
				assert.NoError(f, <-served)
			})
			f.Cleanup(stop)
			return func() { stop(); f.start(g) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certificate := ""
			if strings.HasSuffix(name, "TLS") {
				certificate = t.TempDir()
				harness.WriteCertificate(t, certificate, gatewaysName)
			}
			f := newFleetWith(t, certificate)
			g := f.gateways[1]
			arrived := func() bool { lost, _ := f.compare(g); return lost == 0 }
			f.load.most = 3000
			f.sending(func() {})
			require.Eventually(t, arrived, patience, poll, "spans arrive at all gateways")
			mend := hang(f, g)
			f.load.most += 12000
			f.load.next.Store(3000)
			f.sending(func() {})
			require.Eventually(t, arrived, patience, poll, "what waited for the gateway moves to another")
			require.NotContains(t, f.agent.Output(), "panic")
			mend()
			// It is back, and gets its runs again.
			f.load.most = 0
			f.sending(func() { f.awaitArrivals(500, f.gateways...) })
			require.Eventually(t, arrived, patience, poll, "acknowledged spans are lost")
		})
	}
}
