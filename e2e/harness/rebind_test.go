package harness

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestRebind(t *testing.T) {
	var config map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(`
receivers:
  otlp:
    protocols:
      grpc:
      http:
        endpoint: ${env:OTLP_HTTP:-127.0.0.1:4318}
  otlp/fx:
    protocols:
      http:
        endpoint: 0.0.0.0:11000
        traces_url_path: /
  gpu:
    source: auto
exporters:
  otlp:
    endpoint: jaeger:4317
  prometheus:
    endpoint: ${env:PROMETHEUS:-127.0.0.1:8889}
  ml_view:
    interval: 1s
extensions:
  health_check:
service:
  telemetry:
    metrics:
      readers:
        - pull:
            exporter:
              prometheus:
                host: ${env:SELF_HOST:-127.0.0.1}
                port: 8888
                without_units: true
`), &config))

	next := 10000
	overrides, listeners := rebind(config, []string{"PROMETHEUS=0.0.0.0:9464"}, func() int { next++; return next })

	configured := map[string]string{}
	actual := map[string]bool{}
	for path, listener := range listeners {
		configured[path] = listener.configured
		actual[listener.actual] = true
	}
	assert.Equal(t, map[string]string{
		"receivers::otlp::protocols::grpc":    "localhost:4317",
		"receivers::otlp::protocols::http":    "127.0.0.1:4318",
		"receivers::otlp/fx::protocols::http": "0.0.0.0:11000",
		"exporters::prometheus":               "0.0.0.0:9464",
		"exporters::ml_view":                  "127.0.0.1:8890",
		"extensions::health_check":            "localhost:13133",
		TelemetryPath:                         "127.0.0.1:8888",
	}, configured)
	assert.Len(t, actual, len(configured), "every listener has a port of its own")

	assert.Equal(t, listeners["receivers::otlp/fx::protocols::http"].actual,
		lookUp(overrides, "receivers", "otlp/fx", "protocols", "http", "endpoint"))
	assert.NotContains(t, overrides["exporters"], "otlp", "what is sent to is left alone")
	assert.NotContains(t, overrides["receivers"], "gpu")
	readers := lookUp(overrides, "service", "telemetry", "metrics", "readers").([]any)
	require.Len(t, readers, 1)
	reader := lookUp(readers[0], "pull", "exporter", "prometheus").(map[string]any)
	assert.Equal(t, []string{"host", "port", "without_units"}, sortedKeys(maps.Clone(reader)))
}

func TestLogErrors(t *testing.T) {
	log := "2026-01-02T03:04:05.678Z\tinfo\tservice.go:1\tno error here\t{\"error\": \"error\"}\n" +
		"2026-01-02T03:04:05.678Z\twarn\tgrpc.go:1\tconnection refused\t{}\n" +
		"2026-01-02T03:04:05.678Z\terror\tqueue.go:1\tDropping data.\t{}\n" +
		"go.opentelemetry.io/collector/queue\n\tqueue.go:50\n" +
		"panic: assignment to entry in nil map\n"
	assert.Equal(t, []string{
		"2026-01-02T03:04:05.678Z\terror\tqueue.go:1\tDropping data.\t{}",
		"panic: assignment to entry in nil map",
	}, LogErrors(log))
}

func TestListeningSocket(t *testing.T) {
	for name, test := range map[string]struct {
		line, address, inode string
		ok                   bool
	}{
		"v4":          {"0: 0100007F:22B9 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1", "127.0.0.1:8889", "4711", true},
		"v4 any":      {"1: 00000000:10DD 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12 1", "0.0.0.0:4317", "12", true},
		"v6 loopback": {"2: 00000000000000000000000001000000:10DE 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 13 1", "[::1]:4318", "13", true},
		"established": {"3: 0100007F:22B9 0100007F:A000 01 00000000:00000000 00:00000000 00000000 0 0 14 1", "", "", false},
		"heading":     {"sl local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			address, inode, ok := listeningSocket(test.line)
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.address, address)
			assert.Equal(t, test.inode, inode)
		})
	}
}
