// Package xid has the meanings of XIDs, the codes with which the NVIDIA driver
// reports errors.
package xid

import "regexp"

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

// Of returns the meaning of a code. A code that is not in the table is an error
// of the device without an effect on its health.
func Of(code uint64) Meaning {
	meaning, found := meanings[code]
	if !found {
		return Meaning{Text: "The driver reported an error whose meaning is not known here", Severity: Device}
	}
	meaning.Known = true
	return meaning
}

// RecoveryChanged is the code of a new recovery action, what the driver asks for to
// recover the GPU.
const RecoveryChanged = 154

// Explain returns the meaning of an error with the driver's message about it, and
// what the message says of NVLink. Text is the message without the code and the
// process, empty if only the code is known. Without a message that it can read, Explain returns what Of returns.
func Explain(code uint64, text string) (Meaning, Detail) {
	switch {
	case text == "":
	case code == RecoveryChanged:
		if found := actionText.FindStringSubmatch(text); found != nil {
			if meaning, known := recoveryActions[uint64(hexWord(found[1]))]; known {
				meaning.Known = true
				return meaning, Detail{}
			}
		}
	case code >= 144 && code <= 150:
		if found := nvlinkText.FindStringSubmatch(text); found != nil {
			return explainNVLink(code, found)
		}
	}
	return Of(code), Detail{}
}

// recoveryActions are the meanings of XID 154 by the action that the driver asks for.
var recoveryActions = map[uint64]Meaning{
	0: {Text: "The driver asks for no action any more to recover the GPU", Severity: Notice},
	1: {Text: "The driver asks for a reset of the GPU", Severity: Device, Effect: Fails},
	2: {Text: "The driver asks for a reboot of the host", Severity: Device, Effect: Fails},
	3: {Text: "The driver asks to drain the GPU of peer-to-peer work", Severity: Device, Effect: Degrades},
	4: {Text: "The driver asks to drain and reset the GPU", Severity: Device, Effect: Degrades},
}

// AfterAction returns the effect of what makes the driver ask for a recovery action, by
// NVML's number. An unknown action is still an action to take.
func AfterAction(action float64) Effect {
	if meaning, found := recoveryActions[uint64(action)]; found {
		return meaning.Effect
	}
	return Degrades
}

// actionText is the form of the end of a message such as "GPU recovery action changed
// from 0x0 (None) to 0x1 (GPU Reset Required)".
var actionText = regexp.MustCompile(` to 0x([0-9a-fA-F]{1,8})(?: |$)`)

// OfSwitch returns the meaning of an error that the driver of NVSwitches reports
// with a code of its own (SXid).
func OfSwitch(fatal bool) Meaning {
	if fatal {
		return Meaning{Text: "An NVSwitch reported a fatal error: programs on the GPUs that it connects fail", Severity: Device, Effect: Fails}
	}
	return Meaning{Text: "An NVSwitch reported an error after which it continues", Severity: Program}
}
