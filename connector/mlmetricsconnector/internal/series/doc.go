// Package series is the one table of what the ml_metrics connector writes:
// the name, unit, kind, buckets, labels and description of every series. The
// metrics are built from it, and so is the page that documents them.
package series
