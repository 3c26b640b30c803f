//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/series/seriespage series.md

// Package mlmetricsconnector turns spans into the series that ML teams look
// at: tokens, requests, errors, optimizer steps, losses and epochs, by run and
// rank. The table of all series is in internal/series.
package mlmetricsconnector
