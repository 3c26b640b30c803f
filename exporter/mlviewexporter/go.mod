module github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter

go 1.26

replace github.com/otelcol-ml/otelcol-ml/internal/mlattr => ../../internal/mlattr

replace github.com/otelcol-ml/otelcol-ml/internal/shared => ../../internal/shared

require (
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)
