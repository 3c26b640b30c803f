// Package device has the model of a reading of a host's GPUs, in the units of the
// metrics, for every source.
package device
