module github.com/otelcol-ml/otelcol-ml/e2e/servers/jaeger

go 1.26

require github.com/jaegertracing/jaeger v1.76.0
