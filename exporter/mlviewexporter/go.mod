module github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter

go 1.26

replace github.com/otelcol-ml/otelcol-ml/internal/mlattr => ../../internal/mlattr

replace github.com/otelcol-ml/otelcol-ml/internal/shared => ../../internal/shared

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/stretchr/testify v1.12.1
	golang.org/x/text v0.40.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)
