module github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor

go 1.26
