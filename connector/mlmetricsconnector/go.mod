module github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector

go 1.26
