// Package recording reads, plays and writes recordings of GPUs.
package recording
