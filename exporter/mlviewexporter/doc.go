//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/curves ./internal/model ./internal/report ./internal/series ./internal/text -run Generated -update

// Package mlviewexporter serves a live page of runs, GPUs, failures, calls and
// models. It reads what the other components have computed and decides nothing
// itself.
package mlviewexporter
