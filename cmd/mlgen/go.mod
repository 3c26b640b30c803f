module github.com/otelcol-ml/otelcol-ml/cmd/mlgen

go 1.26
