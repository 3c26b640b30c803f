package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// patience is how long a condition may take on a busy machine; a test that
	// passes does not wait for it.
	patience = 2 * time.Minute
	poll     = 50 * time.Millisecond

	// The ports of gateways and agents, each at an address of its own.
	otlpPort, seriesPort, ownPort = 4317, 8889, 8888
	// gatewaysName is the name of all gateways.
	gatewaysName = "gateways.test"
	// single is the store's number of the collector that gets everything.
	single = -1

	// stallTimeout is longer than a fault and shorter than the time after it, so
	// that a gateway that has lost a run says so within the test.
	stallTimeout = 90 * time.Second
	scrapeEvery  = 4 * time.Second
)

// size is that of a fleet.
type size struct{ agents, gateways, runs int }

// fleet is agents that send to gateways, clients that send to the agents, and a
// single collector that gets the same.
type fleet struct {
	*testing.T
	size   size
	began  time.Time
	folder string
	// hosts is the file with the addresses that the gateways' name has.
	hosts string
	// certificate is the folder with that of agents and gateways.
	certificate string
	agents      []*agent
	gateways    []*gateway
	// lives are all processes of both.
	lives   []life
	stored  *store
	clients *clients
	// joined reads the gateways, alone the single collector.
	joined, alone *harness.Prometheus
	generator     *harness.Generator
	only          *harness.Collector
	onlyStored    *store
	// ended are the counters of gateways that have ended, as Prometheus read them
	// last.
	ended counters
	// before is what the check before has found since the start, and unsettled what
	// the counters last differed by.
	before    outcome
	unsettled counters
}

// agent is the collector of a machine. It keeps its address and its queue over
// restarts.
type agent struct {
	*host
	folder    string
	collector *harness.Collector
}

// gateway keeps its address and its queue over restarts, too.
type gateway struct {
	number    int
	folder    string
	backend   *backend
	collector *harness.Collector
	// started is when the collector last started.
	started time.Time
}

func at(ip string, port int) string { return fmt.Sprintf("%s:%d", ip, port) }

// newFleet starts a fleet in which nothing is sent yet.
func newFleet(t *testing.T, of size) *fleet {
	t.Helper()
	folder := t.TempDir()
	f := &fleet{T: t, size: of, began: time.Now(), folder: folder, hosts: filepath.Join(folder, "hosts"), stored: newStore(), onlyStored: newStore(), ended: counters{}}
	f.certificate = t.TempDir()
	harness.WriteCertificate(t, f.certificate, gatewaysName)
	for range of.gateways {
		f.addGateway()
	}
	f.resolve(f.gateways...)
	var addresses []string
	for i := range of.agents {
		a := &agent{host: newHost(t, i), folder: filepath.Join(folder, fmt.Sprintf("agent-%d", i))}
		f.startAgent(a)
		f.agents = append(f.agents, a)
		addresses = append(addresses, at(a.address, otlpPort))
	}
	f.only = harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Env: []string{
			"JAEGER_ENDPOINT=" + newBackend(t, f.onlyStored, single).address,
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(folder, "reproductions"),
		},
		Overrides: soon(map[string]any{}),
	})
	f.clients = startClients(t, f.only.Address(t, "receivers::otlp::protocols::grpc"), addresses...)
	f.joined = f.prometheus(
		fmt.Sprintf("relabel_configs:\n%s    file_sd_configs:\n      - files: [%s]", documentedLabel(t), f.targets(seriesPort)),
		fmt.Sprintf("file_sd_configs:\n      - files: [%s]", f.targets(ownPort)))
	f.alone = f.prometheus(
		fmt.Sprintf("static_configs:\n      - targets: [%q]", f.only.Address(t, "exporters::prometheus")),
		fmt.Sprintf("static_configs:\n      - targets: [%q]", f.only.Address(t, harness.TelemetryPath)))
	return f
}

// soon adds the settings that make results visible soon.
func soon(overrides map[string]any) map[string]any {
	overrides["connectors::ml_metrics::flush_interval"] = "1s"
	overrides["connectors::ml_metrics::initial_zero"] = (scrapeEvery + 2*time.Second).String()
	overrides["connectors::ml_metrics::stall_timeout"] = stallTimeout.String()
	return overrides
}

// prometheus starts one with the shipped configuration, given where it finds the
// series and the collectors' own metrics.
func (f *fleet) prometheus(series, own string) *harness.Prometheus {
	f.Helper()
	return harness.StartPrometheus(f, map[string]string{
		`static_configs:
      - targets: ["otelcol-ml:8889"]`: series,
		`static_configs:
      - targets: ["otelcol-ml:8888"]`: own,
		"scrape_interval: 5s":     "scrape_interval: " + scrapeEvery.String(),
		"scrape_timeout: 4s":      "scrape_timeout: " + scrapeEvery.String(),
		"evaluation_interval: 5s": "evaluation_interval: " + (2 * scrapeEvery).String(),
	})
}

// documentedLabel returns the line of docs/scale.md that gives the series of each
// gateway a label.
func documentedLabel(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(harness.Path("docs", "scale.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "relabel_configs:\n")
	require.True(t, found, "docs/scale.md labels no gateway")
	line, _, _ := strings.Cut(rest, "\n")
	return line + "\n"
}

func (f *fleet) targets(port int) string {
	return filepath.Join(f.folder, fmt.Sprintf("targets-%d.json", port))
}

// addGateway starts another gateway, to which nothing is sent yet.
func (f *fleet) addGateway() *gateway {
	f.Helper()
	number := len(f.gateways)
	addGatewayAddress(f.T, number)
	g := &gateway{
		number: number, folder: filepath.Join(f.folder, fmt.Sprintf("gateway-%d", number)),
		backend: newBackend(f.T, f.stored, number),
	}
	f.gateways = append(f.gateways, g)
	f.startGateway(g)
	return g
}

func (f *fleet) startGateway(g *gateway) {
	f.Helper()
	address := gatewayIP(g.number)
	g.started = time.Now()
	g.collector = harness.StartCollector(f, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Env: []string{
			"JAEGER_ENDPOINT=" + g.backend.address, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + g.backend.address,
			"OTELCOL_ML_QUEUE_DIR=" + g.folder, "OTELCOL_ML_TRUSTED_SENDERS=[10.77.0.0/16]",
			// Otherwise all gateways of this machine would have one.
			fmt.Sprintf("COLLECTOR_INSTANCE_ID=gateway-%d", g.number),
		},
		Overrides: soon(map[string]any{
			"receivers::otlp::protocols::grpc::endpoint": at(address, otlpPort),
			"receivers::otlp::protocols::grpc::tls":      f.tls(map[string]any{"client_ca_file": filepath.Join(f.certificate, "ca.crt")}),
			"exporters::prometheus::endpoint":            at(address, seriesPort),
			"service::telemetry::metrics::readers": []any{map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{
				"host": address, "port": ownPort, "without_scope_info": true, "without_type_suffix": true, "without_units": true,
			}}}}},
		}),
	})
	f.lives = append(f.lives, life{fmt.Sprintf("gateway %d", g.number), g.collector})
}

func (f *fleet) startAgent(a *agent) {
	f.Helper()
	a.collector = harness.StartCollector(f, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent-gateway.yaml"),
		HostsFile: f.hosts,
		NetworkOf: a.holder.PID(),
		Env: []string{
			"GATEWAY_HOST=" + gatewaysName, fmt.Sprintf("GATEWAY_PORT=%d", otlpPort),
			"OTELCOL_ML_QUEUE_DIR=" + a.folder, "OTELCOL_ML_REPRO_DIR=" + filepath.Join(a.folder, "reproductions"),
		},
		Overrides: map[string]any{
			"receivers::otlp::protocols::grpc::endpoint": at(a.address, otlpPort),
			"exporters::load_balancing::protocol::otlp::tls": f.tls(map[string]any{
				"insecure": false, "ca_file": filepath.Join(f.certificate, "ca.crt"), "server_name_override": gatewaysName,
			}),
		},
	})
	f.lives = append(f.lives, life{"agent " + a.address, a.collector})
}

// tls adds the certificate that agents and gateways show each other, as in the chart.
func (f *fleet) tls(settings map[string]any) map[string]any {
	settings["cert_file"], settings["key_file"] = filepath.Join(f.certificate, "tls.crt"), filepath.Join(f.certificate, "tls.key")
	return settings
}

// resolve has the gateways' name have the addresses of these, and Prometheus read
// them.
func (f *fleet) resolve(gateways ...*gateway) {
	f.Helper()
	f.scrape(gateways...)
	f.resolveNames(gateways...)
}

// resolveNames has the gateways' name have the addresses of these.
func (f *fleet) resolveNames(gateways ...*gateway) {
	f.Helper()
	var names strings.Builder
	for _, g := range gateways {
		fmt.Fprintf(&names, "%s %s\n", gatewayIP(g.number), gatewaysName)
	}
	require.NoError(f, os.WriteFile(f.hosts, []byte(names.String()), 0o600))
}

// scrape has Prometheus read these gateways.
func (f *fleet) scrape(gateways ...*gateway) {
	f.Helper()
	for _, port := range []int{seriesPort, ownPort} {
		var targets []string
		for _, g := range gateways {
			targets = append(targets, at(gatewayIP(g.number), port))
		}
		written, err := json.Marshal([]map[string]any{{"targets": targets}})
		require.NoError(f, err)
		// Prometheus never reads half of it.
		next := filepath.Join(f.folder, "next.json")
		require.NoError(f, os.WriteFile(next, written, 0o600))
		require.NoError(f, os.Rename(next, f.targets(port)))
	}
}
