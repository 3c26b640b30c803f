// Package fingerprint decides which failures are the same defect.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// version is part of every fingerprint. A change of a rule that moves all
// failures to other groups raises it; one that moves some leaves the others
// where they are.
const version = "1"

// Parts are what makes two failures the same. Hosts, processes, ranks, ids
// and device numbers have no part in it.
type Parts struct {
	// Service is the name of the program that failed.
	Service string
	// Kind is the kind of artifact.
	Kind string
	// Type is the class of the root cause.
	Type string
	// Target is the call that failed, as module:function, or a span's name
	// with its numbers taken out.
	Target string
	// Trigger is why there is a failure without an exception, or "".
	Trigger string
	// Status is the HTTP status that a request failed with, or 0.
	Status int64
	// Frames are the application's frames, the innermost first.
	Frames []Frame
	// MessageTemplate is the message's template, or "" where the frames
	// suffice.
	MessageTemplate string
	// Override is what the client calls the failure. It replaces all but
	// Service.
	Override string
}

// Sum returns the fingerprint: the first 16 hex digits of a SHA-256.
func Sum(p Parts) string {
	fields := []string{version, p.Service}
	if p.Override != "" {
		fields = append(fields, "override", p.Override)
	} else {
		fields = append(fields, "parts", p.Kind, p.Type, p.Target, p.MessageTemplate)
		for _, f := range p.Frames {
			// Folders of runs and sessions have numbers in their names.
			fields = append(fields, Template(f.Module), f.Function)
		}
		if p.Trigger != "" {
			fields = append(fields, "trigger", p.Trigger)
		}
		if p.Status != 0 {
			fields = append(fields, "status", strconv.FormatInt(p.Status, 10))
		}
	}
	// A JSON array keeps two fields from running into each other.
	text, _ := json.Marshal(fields)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

var generic = map[string]bool{
	"": true, "Exception": true, "BaseException": true, "Error": true, "RuntimeError": true,
	"builtins.Exception": true, "builtins.RuntimeError": true,
}

// NeedsMessage reports whether type and frames alone would throw unlike
// failures together.
func NeedsMessage(errorType string, frames []Frame) bool {
	return len(frames) == 0 || generic[errorType]
}
