// Package mlenrichprocessor is the ml_enrich processor. It recognises the
// telemetry of machine learning clients and adds what they leave unsaid: the
// canonical attribute names, the run, the keys that tie spans, metrics and
// logs together, and the rates that can be derived correctly. It adds only;
// what the producer sent stays as it was.
//
// The rules are in files without pdata (rates.go, run.go, keys.go, ladder.go,
// memorybreakdown.go), the vocabulary is in internal/mlattr, and traces.go,
// metrics.go, logs.go and gpujoin.go move the data.
package mlenrichprocessor

//go:generate mdatagen metadata.yaml
