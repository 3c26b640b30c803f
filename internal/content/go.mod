module github.com/otelcol-ml/otelcol-ml/internal/content

go 1.26

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace (
	github.com/otelcol-ml/otelcol-ml/internal/mlattr => ../mlattr
	github.com/otelcol-ml/otelcol-ml/internal/testing => ../testing
)
