// Package recording reads recordings of GPUs and plays them as a source of
// snapshots.
package recording
