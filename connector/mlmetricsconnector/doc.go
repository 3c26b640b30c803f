//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/series/seriespage series.md
//go:generate go run ./internal/problem/problempage ../../docs/problems.md

// Package mlmetricsconnector derives metrics for ML teams from spans: tokens,
// requests, errors, optimizer steps, losses and epochs, by run and rank. The
// table of all series is in internal/series.
package mlmetricsconnector
