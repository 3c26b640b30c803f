//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/artifact -run TestReasonsAreGenerated -update

// Package reprogenprocessor turns error spans into files that reproduce the
// error. It passes all telemetry on. A consume call only finds and counts
// failures; artifacts are written by goroutines of the processor's own.
package reprogenprocessor
