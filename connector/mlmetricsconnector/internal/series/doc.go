// Package series is the table of the series that the ml_metrics connector writes:
// name, unit, kind, buckets, labels and description of each. The connector builds
// its metrics from the table, and the test of seriespage the page that documents them.
package series
