// Package mlguardextension is the ml_guard extension: middleware of receivers
// that refuses OTLP requests whose decoding would cost more than their size tells.
package mlguardextension

//go:generate mdatagen metadata.yaml
