//go:generate mdatagen metadata.yaml

// Package reprogenprocessor turns error spans into files that reproduce the
// error. It passes all telemetry on; detection takes a look at each span's
// status, and everything else happens on a goroutine of its own.
package reprogenprocessor
