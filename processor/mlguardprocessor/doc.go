// Package mlguardprocessor is the ml_guard processor. First in a pipeline it
// bounds what comes in (internal/bounds); before a Prometheus exporter it admits
// identities to labels (internal/identity); last it removes text that no list
// allows (internal/content).
package mlguardprocessor

//go:generate mdatagen metadata.yaml
