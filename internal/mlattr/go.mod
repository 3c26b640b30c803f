module github.com/otelcol-ml/otelcol-ml/internal/mlattr

go 1.26
