//go:generate mdatagen metadata.yaml
//go:generate go test ./internal/series -run TestTablesAreGenerated -update
//go:generate go test ./internal/series/seriespage -run TestPage -update
//go:generate go test ./internal/problem/problempage -run TestPage -update

// Package mlmetricsconnector derives metrics for ML teams from spans: tokens,
// requests, errors, optimizer steps, losses and epochs, by run and rank. The
// table of all series is in internal/series.
//
// Spans are read and counted once by internal/spans, and what clients' metrics say by
// internal/points. Both are kept by their owners: runs and their ranks by internal/runs,
// GPUs and hosts by internal/gpus, services by internal/serving, series by
// internal/streams. An emission judges these, and internal/detect finds problems,
// which internal/problem keeps until they are over.
package mlmetricsconnector
