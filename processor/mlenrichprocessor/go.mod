module github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor

go 1.26
