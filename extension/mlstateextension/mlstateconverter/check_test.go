package mlstateconverter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension/mlstateconverter"
)

// What would fail at the start, or deliver nothing, is an error that names key, value
// and variable.
func TestWrongConfigurations(t *testing.T) {
	t.Setenv("OTLP_GRPC_ENDPOINT", "127.0.0.1")
	t.Setenv("GATEWAY_HOST", "gateways:4317")
	t.Setenv("PROMETHEUS_ENDPOINT", "127.0.0.1:4317")
	const service = "service: {extensions: [e], pipelines: {traces: {receivers: [otlp, otlp/b], processors: [p], exporters: [prometheus, load_balancing]}}}"
	for name, test := range map[string]struct{ config, want string }{
		"no port": {
			"receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1}}}}",
			`receivers::otlp::protocols::grpc::endpoint is "127.0.0.1", the value of OTLP_GRPC_ENDPOINT; it must be an address and a port, such as 127.0.0.1:4317`,
		},
		"an empty port": {"extensions: {e: {endpoint: 'localhost:'}}", `extensions::e::endpoint is "localhost:"; it must be an address and a port, such as 127.0.0.1:4317`},
		"a port twice": {
			"{receivers: {otlp: {protocols: {grpc: {endpoint: 0.0.0.0:4317}}}}, exporters: {prometheus: {endpoint: 127.0.0.1:4317}}}",
			`exporters::prometheus::endpoint has port 4317, the value of PROMETHEUS_ENDPOINT, and so has receivers::otlp::protocols::grpc::endpoint; it must be another one`,
		},
		"a port twice, once for the own metrics": {
			"{extensions: {e: {endpoint: 'localhost:8888'}}}",
			`service::telemetry::metrics::readers[0] has port 8888, and so has extensions::e::endpoint; it must be another one`,
		},
		"a middleware": {
			"receivers: {otlp: {protocols: {http: {middlewares: [{id: ml_guard}]}}}}",
			`receivers::otlp::protocols::http::middlewares is "ml_guard"; it must be in service::extensions, which has e`,
		},
		"a storage":        {"exporters: {load_balancing: {sending_queue: {storage: file_storage/queue}}}", `exporters::load_balancing::sending_queue::storage is "file_storage/queue"; it must be in service::extensions, which has e`},
		"an authenticator": {"exporters: {load_balancing: {auth: {authenticator: basicauth}}}", `exporters::load_balancing::auth::authenticator is "basicauth"; it must be in service::extensions, which has e`},
		"a name with a port": {
			"exporters: {load_balancing: {resolver: {dns: {hostname: 'gateways:4317'}}}}",
			`exporters::load_balancing::resolver::dns::hostname is "gateways:4317", the value of GATEWAY_HOST; it must be a name without a port, which has a key of its own`,
		},

		"a port that is none": {"receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:99999}}}}", `receivers::otlp::protocols::grpc::endpoint has port 99999; it must be a number up to 65535`},
		"a name's port":       {"exporters: {load_balancing: {resolver: {dns: {port: 4317x}}}}", `exporters::load_balancing::resolver::dns has port 4317x; it must be a number up to 65535`},
		"a scheme": {
			"receivers: {otlp: {protocols: {grpc: {endpoint: 'http://0.0.0.0:4317'}}}}",
			`receivers::otlp::protocols::grpc::endpoint is "http://0.0.0.0:4317"; it must be an address and a port, such as 127.0.0.1:4317`,
		},
		"no scheme":              {"{exporters: {otlp_http: {endpoint: 'h:4318'}}, service: {pipelines: {logs: {exporters: [otlp_http]}}}}", `exporters::otlp_http::endpoint is "h:4318"; it must begin with http:// or https://`},
		"extensions, not a list": {"service: {extensions: ml_guard}", `service::extensions is "ml_guard"; it must be a list, such as [health_check]`},

		"other addresses":         {config: "receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:1}}}, otlp/b: {protocols: {grpc: {endpoint: 127.0.0.2:1}}}}"},
		"any port":                {config: "receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:0}, http: {endpoint: 127.0.0.1:0}}}}"},
		"another protocol":        {config: "receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:1}, thrift_compact: {endpoint: 127.0.0.1:1}}}}"},
		"a socket":                {config: "receivers: {otlp: {protocols: {grpc: {endpoint: /run/x, transport: unix}}}}"},
		"a URL":                   {config: "extensions: {e: {server: {ws: {endpoint: 'wss://x/y'}}}}"},
		"what is not used":        {config: "{receivers: {zipkin: {endpoint: x}}, exporters: {otlp_grpc: {sending_queue: {storage: x}}}}"},
		"an exporter's endpoint":  {config: "exporters: {load_balancing: {endpoint: x}}"},
		"an address":              {config: "exporters: {load_balancing: {resolver: {dns: {hostname: '::1'}}}}"},
		"what is started":         {config: "exporters: {load_balancing: {sending_queue: {storage: e}, middlewares: [{id: e}]}}"},
		"values of other types":   {config: "{receivers: [otlp], exporters: {load_balancing: {middlewares: x, storage: {}, auth: }, prometheus: {endpoint: 7}}}"},
		"a service of other type": {config: "service: {pipelines: [x], telemetry: {metrics: {readers: x}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := read(t, service)
			if name == "a port twice, once for the own metrics" {
				require.NoError(t, conf.Merge(read(t, "service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: 8888}}}}]}}}")))
			}
			require.NoError(t, conf.Merge(read(t, test.config)))
			err := mlstateconverter.NewFactory().Create(confmap.ConverterSettings{}).Convert(t.Context(), conf)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, test.want)
			}
		})
	}
}
