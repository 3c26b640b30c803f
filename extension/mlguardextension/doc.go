// Package mlguardextension is the ml_guard extension. It is receiver middleware
// that refuses OTLP requests before they are decoded, if decoding would cost
// far more than their size suggests.
package mlguardextension

//go:generate mdatagen metadata.yaml
