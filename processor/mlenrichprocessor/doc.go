// Package mlenrichprocessor is the ml_enrich processor. It recognises the
// telemetry of machine learning clients and adds what they leave out: the
// canonical attribute names, the run, the keys that tie spans, metrics and logs
// together, and the rates that can be derived correctly. It only adds; what the
// producer sent stays as it was.
//
// The files here move pdata. Each question has a package of its own in
// internal: run, correlate, rate, gpujoin and label. What clients mean
// by their names is in internal/mlattr.
package mlenrichprocessor

//go:generate mdatagen metadata.yaml
