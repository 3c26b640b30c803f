module github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver

go 1.26
