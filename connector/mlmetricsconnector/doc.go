//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/series/seriespage -run TestPage -update
//go:generate go test ./internal/problem/problempage -run TestPage -update

// Package mlmetricsconnector derives metrics for ML teams from spans: tokens,
// requests, errors, optimizer steps, losses and epochs, by run and rank. The
// table of all series is in internal/series.
package mlmetricsconnector
