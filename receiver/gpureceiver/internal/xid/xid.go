// Package xid has the meanings of XIDs, the codes with which the NVIDIA driver
// reports errors.
package xid

// Reference is NVIDIA's catalogue, the source of the meanings and actions. The
// texts here are this project's own.
const Reference = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"

// Severity is the severity of an error for an operator.
type Severity int

// The severities.
const (
	// Notice is information, or belongs to another error.
	Notice Severity = iota
	// Program is most likely the fault of the program that used the GPU. The
	// GPU continues.
	Program
	// Device is an error of the hardware, its firmware or the driver.
	Device
	// Gone means that the GPU does not work until an operator acts.
	Gone
)

// Effect is an error's effect on the GPU's health.
type Effect int

// The effects, from the least to the worst.
const (
	// None has no effect.
	None Effect = iota
	// Predicts means that the GPU works, and that a part of it has failed or is
	// expected to.
	Predicts
	// Degrades means that the GPU works with less, or that its hardware has
	// lost data.
	Degrades
	// Fails means that NVIDIA's catalogue asks for a reset of the GPU or of
	// its host.
	Fails
)

// Meaning is the meaning of a code.
type Meaning struct {
	// Text is a short sentence without its full stop.
	Text string
	// Severity is the error's severity.
	Severity Severity
	// Effect is the error's effect on the GPU's health, unless the driver itself
	// reports that.
	Effect Effect
	// Known is false for a code that is not in the table.
	Known bool
}

// Common are the codes for which every GPU has a series from the start, in
// ascending order: the most frequent and the most serious ones.
var Common = []uint64{13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119, 120, 140, 149, 154}
