// Package device describes what one look at the GPUs of a host has found, in
// the units of the metrics, whatever the values come from.
package device
