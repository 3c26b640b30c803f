// Package xid says what the codes mean with which the NVIDIA driver reports
// errors, XIDs.
package xid

// Reference is where the meanings, and what the codes ask for, come from:
// NVIDIA's catalogue. The texts here are this project's own.
const Reference = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"

// Severity is how bad an error is for who runs the GPU.
type Severity int

// The severities.
const (
	// Notice only tells something, or belongs to another error.
	Notice Severity = iota
	// Program is most likely the fault of the program that used the GPU. The
	// GPU goes on.
	Program
	// Device is an error of the hardware, its firmware or the driver.
	Device
	// Gone means that nothing works any more until somebody acts.
	Gone
)

// Effect is what an error says about the GPU's health.
type Effect int

// The effects, from the least to the worst.
const (
	// None says nothing about the GPU's health.
	None Effect = iota
	// Predicts means that the GPU works, and that a part of it has failed or
	// will.
	Predicts
	// Degrades means that the GPU works with less, or that its hardware has
	// lost data.
	Degrades
	// Fails means that NVIDIA's catalogue asks for a reset of the GPU or of
	// its host.
	Fails
)

// Meaning is what a code means.
type Meaning struct {
	// Text is a short sentence without its full stop.
	Text string
	// Severity is how bad it is.
	Severity Severity
	// Effect is what it says about the GPU's health, where the driver itself
	// does not.
	Effect Effect
	// Known is false for a code that the table does not have.
	Known bool
}

// Of returns the meaning of a code. Of a code that is not in the table nothing
// is claimed but that the driver reported it: it is an error of the device
// without an effect on its health.
func Of(code uint64) Meaning {
	if meaning, found := meanings[code]; found {
		meaning.Known = true
		return meaning
	}
	return Meaning{Text: "The driver reported an error whose meaning is not known here", Severity: Device}
}

// Common are the codes that every GPU has a series of from the beginning, in
// ascending order: those that are seen most, and those that one must not miss.
var Common = []uint64{13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119, 120, 140, 149, 154}
