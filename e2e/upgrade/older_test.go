package upgrade

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Each version reads what the other wrote.
func TestStateOfOlderAndBack(t *testing.T) {
	for name, pair := range map[string]struct{ writer, reader version }{
		"forward": {older(t), this(t)},
		"back":    {this(t), older(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			in := fill(t, pair.writer, folder)
			age(t, folder, in.Written)
			check(t, pair.reader, folder, in, "")
		})
	}
}

// The configurations that an older version shipped start unchanged, and take data of
// all signals.
func TestConfigurationsOfOlder(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join(older(t).root, "distribution", "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, configs)
	for _, config := range configs {
		t.Run(filepath.Base(config), func(t *testing.T) {
			t.Parallel()
			backend, dir := harness.StartSink(t), t.TempDir()
			host, port, err := net.SplitHostPort(backend.Endpoint)
			require.NoError(t, err)
			writeFleetFiles(t, dir)
			c := harness.StartCollector(t, harness.CollectorOptions{
				Config: config, Dir: dir,
				Env: []string{
					"TRACES_EXPORTER=otlp_grpc/jaeger", "JAEGER_ENDPOINT=" + backend.Endpoint,
					"LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + backend.Endpoint,
					"GATEWAY_HOST=" + host, "GATEWAY_PORT=" + port,
					"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"),
					"FLEET_TOKEN=" + filepath.Join(dir, "token"), "FLEET_READERS=" + filepath.Join(dir, "readers"),
					"FLEET_CERT=" + filepath.Join(dir, "crt"), "FLEET_KEY=" + filepath.Join(dir, "key"),
					"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
				},
			})
			var options []grpc.DialOption
			fleet := filepath.Base(config) == "fleet.yaml"
			if fleet {
				options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
			}
			sender, err := harness.NewGRPCSender(c.Address(t, "receivers::otlp::protocols::grpc"), options...)
			require.NoError(t, err)
			defer func() { assert.NoError(t, sender.Close()) }()
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer token")
			require.NoError(t, sender.Metrics(ctx, oneMetric()))
			require.NoError(t, sender.Logs(ctx, oneRecord()))
			if !fleet {
				deploy(t, c, "1")
				require.Eventually(t, func() bool { return len(backend.Spans()) > 0 }, arrival, poll, "spans")
				require.Eventually(t, func() bool { return len(backend.Logs()) > 0 }, arrival, poll, "log records")
			}
			for _, signal := range []string{"metric_points", "log_records"} {
				require.EventuallyWithT(t, func(e *assert.CollectT) {
					assert.Positive(e, sum(e, t, c, harness.TelemetryPath, "otelcol_receiver_accepted_"+signal))
				}, arrival, poll)
			}
			assert.Zero(t, c.Stop(t), "exit code")
			assert.Empty(t, harness.LogErrors(c.Output()))
		})
	}
}

// writeFleetFiles writes the files that fleet.yaml names.
func writeFleetFiles(t *testing.T, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"token": []byte("token"), "readers": []byte("ada:password\n"),
		"crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		"key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}

func oneMetric() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", deployed)
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("queue.length")
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(1)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return md
}

func oneRecord() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", deployed)
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("text")
	return ld
}

// sum adds up a metric that a collector shows at the address of a component.
func sum(t require.TestingT, test *testing.T, c *harness.Collector, path, metric string) (total float64) {
	samples, err := harness.Scrape(test.Context(), c.Address(test, path))
	require.NoError(t, err)
	for _, sample := range harness.Select(samples, metric, nil) {
		total += sample.Value
	}
	return total
}

// canaries are what docs/upgrades.md compares of two versions that get equal traffic.
var canaries = []string{"ml_tokens_total", "ml_steps_total", "ml_batches_total", "ml_samples_total", "ml_requests_total", "ml_errors_total", "traces_span_metrics_calls_total"}

// A gateway understands what an agent of the other version sends: every span arrives,
// and the numbers of what was computed are equal.
func TestOlderAgentsAndGateways(t *testing.T) {
	computed := map[string]map[string]float64{}
	for name, pair := range map[string]struct{ agent, gateway version }{
		"this version only": {this(t), this(t)},
		"an older agent":    {older(t), this(t)},
		"an older gateway":  {this(t), older(t)},
	} {
		t.Run(name, func(t *testing.T) { computed[name] = compute(t, pair.agent, pair.gateway) })
	}
	want := computed["this version only"]
	assert.Equal(t, want, computed["an older agent"])
	assert.Equal(t, want, computed["an older gateway"])
}

// compute sends the same telemetry through an agent and a gateway, and returns what
// the gateway has computed.
func compute(t *testing.T, agent, gateway version) map[string]float64 {
	t.Helper()
	backend, dir := harness.StartSink(t), t.TempDir()
	to := harness.StartCollector(t, harness.CollectorOptions{
		Binary: gateway.binary, Config: filepath.Join(gateway.root, "distribution", "config", "gateway.yaml"), Dir: dir,
		Env: []string{"JAEGER_ENDPOINT=" + backend.Endpoint, "OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "gateway")},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s",
			"connectors::span_metrics::metrics_flush_interval": "1s",
		},
	})
	host, port, err := net.SplitHostPort(to.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	from := harness.StartCollector(t, harness.CollectorOptions{
		Binary: agent.binary, Config: filepath.Join(agent.root, "distribution", "config", "agent-gateway.yaml"), Dir: dir,
		Env: []string{"GATEWAY_HOST=" + host, "GATEWAY_PORT=" + port, "OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "agent")},
	})
	sent := harness.Generate(t, from, harness.Workload{Seed: 1, Scenarios: "all", Duration: 5 * time.Second, Rate: 5, Ranks: 2})
	require.EventuallyWithT(t, func(e *assert.CollectT) {
		arrived := map[string]bool{}
		for _, span := range backend.Spans() {
			arrived[span.SpanID().String()] = true
		}
		for _, span := range sent.Spans {
			if !arrived[span.SpanID] {
				assert.Fail(e, "a span did not arrive", "%s of %s", span.Name, span.Scenario)
				return
			}
		}
	}, arrival, poll)
	// What came last is shown with all that came before.
	deploy(t, from, "1")
	var samples []harness.Sample
	require.EventuallyWithT(t, func(e *assert.CollectT) {
		var err error
		samples, err = harness.Scrape(t.Context(), to.Address(t, "exporters::prometheus"))
		assert.NoError(e, err)
		for _, name := range []string{"ml_requests_total", "traces_span_metrics_calls_total"} {
			assert.NotEmpty(e, harness.Select(samples, name, harness.Labels{"job": deployed}), name)
		}
	}, arrival, poll)
	values := map[string]float64{}
	for _, name := range canaries {
		for _, sample := range harness.Select(samples, name, nil) {
			values[name] += sample.Value
		}
	}
	assert.Zero(t, from.Stop(t), "exit code")
	assert.Zero(t, to.Stop(t), "exit code")
	for _, name := range canaries {
		assert.Positive(t, values[name], name)
	}
	return values
}
