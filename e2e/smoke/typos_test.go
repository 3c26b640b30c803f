package smoke

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Typos in the shipped configurations and their variables: `validate` finds each, and
// says what is wrong where. The text before => in change becomes the one after it, and LINE
// is its line.
func TestTypos(t *testing.T) {
	const (
		number = "; it must be a number"
		unit   = "; it must be a time with a unit, such as 500ms, 15s or 5m"
		mib    = "; it must be a whole number of MiB, from 0 to 4294967295"
		spaces = "; it must be a map of keys and values, with a space after each colon"
	)
	for name, test := range map[string]struct{ file, change, variable, want string }{
		"a size for a number":         {"agent", "limit_mib:=>limit_mib:", "MEMORY_LIMIT_MIB=1G", `agent.yaml:LINE: processors::memory_limiter::limit_mib is "1G", the value of MEMORY_LIMIT_MIB` + mib},
		"a size with its unit":        {"gateway", "", "MEMORY_LIMIT_MIB=512MiB", `processors::memory_limiter::limit_mib is "512MiB", the value of MEMORY_LIMIT_MIB` + mib},
		"half a MiB":                  {"production", "", "MEMORY_LIMIT_MIB=0.5", `processors::memory_limiter::limit_mib is "0.5", the value of MEMORY_LIMIT_MIB` + mib},
		"a limit below 0":             {"agent-gateway", "", "MEMORY_LIMIT_MIB=-5", `processors::memory_limiter::limit_mib is "-5", the value of MEMORY_LIMIT_MIB` + mib},
		"a limit that would wrap":     {"fleet", "", "MEMORY_LIMIT_MIB=4294967296", `processors::memory_limiter::limit_mib is "4294967296", the value of MEMORY_LIMIT_MIB` + mib},
		"neither true nor false":      {"agent", "", "JAEGER_INSECURE=flase", `exporters::otlp_grpc/jaeger::tls::insecure is "flase", the value of JAEGER_INSECURE; it must be true or false`},
		"yes for true":                {"agent-gateway", "", "GATEWAY_INSECURE=yes", `exporters::load_balancing::protocol::otlp::tls::insecure is "yes", the value of GATEWAY_INSECURE; it must be true or false`},
		"a word for a port":           {"agent", "", "SELF_METRICS_PORT=eighty", `service::telemetry::metrics::readers[0]::pull::exporter::prometheus::port is "eighty", the value of SELF_METRICS_PORT` + number},
		"a port too large":            {"agent", "", "SELF_METRICS_PORT=88888", `service::telemetry::metrics::readers[0] has port 88888, the value of SELF_METRICS_PORT; it must be a number up to 65535`},
		"an address' port too large":  {"agent", "", "OTLP_GRPC_ENDPOINT=0.0.0.0:99999", `receivers::otlp::protocols::grpc::endpoint has port 99999, the value of OTLP_GRPC_ENDPOINT`},
		"a URL for an address":        {"agent", "", "OTLP_GRPC_ENDPOINT=http://0.0.0.0:4317", `receivers::otlp::protocols::grpc::endpoint is "http://0.0.0.0:4317", the value of OTLP_GRPC_ENDPOINT; it must be an address and a port`},
		"an address for a URL":        {"gateway", "", "REMOTE_WRITE_URL=prometheus:9090/api/v1/write", `exporters::prometheus_remote_write::endpoint is "prometheus:9090/api/v1/write", the value of REMOTE_WRITE_URL; it must begin with http:// or https://`},
		"an address without a port":   {"agent", "", "HEALTH_ENDPOINT=0.0.0.0", `extensions::health_check::endpoint is "0.0.0.0", the value of HEALTH_ENDPOINT; it must be an address and a port`},
		"a port of another server":    {"agent", "", "PROMETHEUS_ENDPOINT=127.0.0.1:4317", `has port 4317, the value of PROMETHEUS_ENDPOINT, and so has`},
		"a port in a name":            {"agent-gateway", "", "GATEWAY_HOST=gateways:4317", `exporters::load_balancing::resolver::dns::hostname is "gateways:4317", the value of GATEWAY_HOST`},
		"letters in a port":           {"agent-gateway", "", "GATEWAY_PORT=4317x", `exporters::load_balancing::resolver::dns has port 4317x, the value of GATEWAY_PORT`},
		"a destination without port":  {"agent", "", "JAEGER_ENDPOINT=jaeger", `exporters::otlp_grpc/jaeger::clientconfig: address jaeger: missing port in address`},
		"another exporter":            {"agent", "", "TRACES_EXPORTER=otlp_grpc/jeager", `service::pipelines::traces/out: references exporter "otlp_grpc/jeager" which is not configured`},
		"a network of 33 bits":        {"agent", "", "OTELCOL_ML_TRUSTED_SENDERS=[10.0.0.0/33]", `processors::ml_guard: trusted_senders[0] is "10.0.0.0/33"`},
		"another compression":         {"agent", "", "JAEGER_COMPRESSION=gzp", `unsupported compression type "gzp"`},
		"a tab":                       {"agent", "  ml_guard:=>\tml_guard:", "", `agent.yaml:LINE: "ml_guard:" begins with a tab; it must be indented with spaces`},
		"a tab within":                {"agent", "    max_streams: 100000=>\tmax_streams: 100000", "", `agent.yaml:LINE: "max_streams: 100000" begins with a tab`},
		"a list without end":          {"agent", "extensions: [health_check, ml_guard]=>extensions: [health_check, ml_guard", "", `agent.yaml is not valid YAML: line 2`},
		"a key twice":                 {"agent", "  debug:\n=>  debug:\n  debug:\n", "", `mapping key "debug"`},
		"a value without a space":     {"agent", "max_streams: 100000=>max_streams:100000", "", `agent.yaml:LINE: processors::delta_to_cumulative is "max_streams:100000"` + spaces},
		"a key without a colon":       {"agent", "max_streams: 100000=>max_streams 100000", "", `agent.yaml:LINE: processors::delta_to_cumulative is "max_streams 100000"` + spaces},
		"a time without a unit":       {"agent", "flush_interval: 15s=>flush_interval: 15", "", `agent.yaml:LINE: connectors::ml_metrics::flush_interval is "15"` + unit},
		"a stock time without a unit": {"agent", "check_interval: 1s=>check_interval: 1", "", `agent.yaml:LINE: processors::memory_limiter::check_interval is "1"` + unit},
		"another unit":                {"agent", "collection_interval: 10s=>collection_interval: 10sec", "", `agent.yaml:LINE: receivers::gpu::collection_interval is "10sec"` + unit},
		"a unit after a space":        {"agent", "metric_expiration: 5m=>metric_expiration: 5 m", "", `agent.yaml:LINE: exporters::prometheus::metric_expiration is "5 m"` + unit},
		"another key":                 {"agent", "flush_interval:=>flush_intervall:", "", "'mlmetricsconnector.Config' has invalid keys: flush_intervall"},
		"another component":           {"agent", "repro_gen]\n      exporters: [ml_metrics=>repro_gne]\n      exporters: [ml_metrics", "", `service::pipelines::traces/in: references processor "repro_gne" which is not configured`},
		"another extension":           {"agent", "extensions: [health_check, ml_guard]=>extensions: [health_check, ml_gaurd]", "", `exporters::prometheus::middlewares is "ml_guard"; it must be in service::extensions, which has health_check, ml_gaurd`},
		"a name for a list":           {"agent", "extensions: [health_check, ml_guard]=>extensions: health_check", "", `service::extensions is "health_check"; it must be a list`},
		"another word":                {"agent", "when_refused: drop=>when_refused: droop", "", `"when_refused" is "droop"; it must be "drop" or "refuse"`},
		"another signal":              {"agent", "    traces/in:=>    trace/in:", "", `unknown pipeline signal: "trace"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(harness.Path("distribution", "config", test.file+".yaml"))
			require.NoError(t, err)
			before, after, _ := strings.Cut(test.change, "=>")
			require.Contains(t, string(text), before)
			line := strings.Count(string(text)[:strings.Index(string(text), before)], "\n") + 1
			file := filepath.Join(t.TempDir(), test.file+".yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), before, after, 1)), 0o600))
			var env []string
			switch variable, _, _ := strings.Cut(test.variable, "="); variable {
			case "":
			case "REMOTE_WRITE_URL":
				env = []string{test.variable, "METRICS_EXPORTER=prometheus_remote_write"}
			default:
				env = []string{test.variable}
			}
			code, output := harness.Validate(t, env, file)
			assert.NotZero(t, code)
			assert.Contains(t, output, strings.ReplaceAll(test.want, "LINE", strconv.Itoa(line)))
		})
	}
}
