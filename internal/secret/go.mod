module github.com/otelcol-ml/otelcol-ml/internal/secret

go 1.26
