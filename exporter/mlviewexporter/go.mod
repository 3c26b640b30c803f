module github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter

go 1.26

replace github.com/otelcol-ml/otelcol-ml/internal/mlattr => ../../internal/mlattr

replace github.com/otelcol-ml/otelcol-ml/internal/shared => ../../internal/shared
