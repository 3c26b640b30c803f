module github.com/otelcol-ml/otelcol-ml/e2e/servers/alertmanager

go 1.26.0

require github.com/prometheus/alertmanager v0.34.0
