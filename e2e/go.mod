module github.com/otelcol-ml/otelcol-ml/e2e

go 1.26.0

require (
	github.com/prometheus/client_model v0.6.2
	github.com/prometheus/common v0.70.1
	github.com/stretchr/testify v1.12.1
	go.opentelemetry.io/collector/pdata v1.64.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/mod v0.37.0
	google.golang.org/grpc v1.83.0
)

require (
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/otelcol-ml/otelcol-ml/cmd/mlgen v0.0.0
	go.opentelemetry.io/collector/featuregate v1.64.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/otelcol-ml/otelcol-ml/cmd/mlgen => ../cmd/mlgen
