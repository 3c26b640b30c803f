// Package payload reads the call that a client recorded: one JSON text in
// Snakepit's form.
package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// MaxBytes is the size of a payload that may be read at all. A larger one makes
// its failure a context.
const MaxBytes = 1 << 20

// Reason says why a failure cannot be replayed. It is "" where it can.
type Reason string

// The reasons.
const (
	// NoPayload means that the span carries none.
	NoPayload Reason = "no_payload"
	// Truncated means that the size or the hash that the client sent does
	// not belong to the payload that arrived.
	Truncated Reason = "payload_truncated"
	// TooLarge means more than MaxBytes.
	TooLarge Reason = "payload_too_large"
	// Invalid means that the payload is not JSON in the form of a call.
	Invalid Reason = "payload_invalid"
	// TooDeep means nested deeper than jsontree.MaxDepth.
	TooDeep Reason = "payload_too_deep"
	// Ambiguous means that a key occurs twice, or in another case: readers
	// would disagree about which call was meant.
	Ambiguous Reason = "ambiguous"
	// NoTarget means that the payload names no module or no function, and
	// that the span does not either.
	NoTarget Reason = "no_target"
	// Unverified means that the payload lies somewhere else, and that no hash
	// was sent by which it could be known.
	Unverified Reason = "payload_unverified"
	// NoArguments means that the span names a function and has no arguments.
	NoArguments Reason = "no_arguments"
	// Unsupported means that a conversation holds what no request can be made
	// of: images, audio, files.
	Unsupported Reason = "payload_unsupported"
	// CommandAmbiguous means that a recorded command is one text that can be
	// taken apart in several ways.
	CommandAmbiguous Reason = "command_ambiguous"
	// Statement means that the span is that of a database's statement: no
	// script runs one.
	Statement Reason = "statement"
	// Unwanted means that the client asks that nothing of it be replayed.
	Unwanted Reason = "unwanted"
	// UnsafeOutput means that a check on the finished script failed.
	UnsafeOutput Reason = "unsafe_output"
	// TooLargeOutput means that the finished artefact would be too large.
	TooLargeOutput Reason = "too_large"
)

// Declared is what a client says about its payload.
type Declared struct {
	// Size is the payload's length in bytes, or negative if it was not sent.
	Size int64
	// SHA256 is the payload's hash in hex, or "" if it was not sent.
	SHA256 string
}

// Call is a decoded payload.
type Call struct {
	// Tree is the whole payload, keys in their order; nil if it is Remote.
	Tree jsontree.Object
	// Remote says where the payload is, or is nil.
	Remote *Remote
	// Module and Function are the target.
	Module, Function string
	// Lossy is true where a character of the payload had to be replaced.
	Lossy bool
	// Weight estimates the bytes that Tree takes in memory.
	Weight int
}

// weightPerByte is what a byte of JSON may become as a tree: "0," is two
// bytes, and a value of 16 with a text of 16.
const weightPerByte = 16

// known lists the members of a call. The order is that of Snakepit's text.
var known = []string{
	"protocol_version", "min_supported_version", "library", "python_module",
	"function", "args", "kwargs", "idempotent", "session_id", "call_type",
}

// Decode reads a payload. named is the qualified name of the function that the
// span is about, or "": it completes a target that the payload does not name.
// Exactly one of the results is set.
func Decode(text string, declared Declared, named string) (*Call, Reason) {
	if len(text) > MaxBytes {
		return nil, TooLarge
	}
	if declared.Size >= 0 && declared.Size != int64(len(text)) {
		return nil, Truncated
	}
	if declared.SHA256 != "" {
		sum := sha256.Sum256([]byte(text))
		if !strings.EqualFold(declared.SHA256, hex.EncodeToString(sum[:])) {
			return nil, Truncated
		}
	}
	v, lossy, err := jsontree.Decode(text)
	if err != nil {
		return nil, ReasonOf(err)
	}
	tree, ok := v.(jsontree.Object)
	if !ok {
		return nil, Invalid
	}
	if !exactKeys(tree) {
		return nil, Ambiguous
	}
	if !isArguments(tree) {
		return nil, Invalid
	}
	call := callOf(tree, lossy, len(text))
	if call.Module == "" || call.Function == "" {
		if call = call.completed(named); call == nil {
			return nil, NoTarget
		}
	}
	return call, ""
}

// ReasonOf says why a text could not be decoded.
func ReasonOf(err error) Reason {
	switch {
	case errors.Is(err, jsontree.ErrDepth):
		return TooDeep
	case errors.Is(err, jsontree.ErrDuplicate):
		return Ambiguous
	}
	return Invalid
}

// exactKeys reports whether each member that looks like a known one is
// spelled exactly so. Keys of arguments are the application's own: there, N
// and n are two.
func exactKeys(tree jsontree.Object) bool {
	for i, m := range tree {
		for _, k := range known {
			if m.Key != k && strings.EqualFold(m.Key, k) {
				return false
			}
		}
		for _, other := range tree[:i] {
			if strings.EqualFold(m.Key, other.Key) {
				return false
			}
		}
		// A payload of very many members is no call, and comparing them all
		// with each other would take long.
		if i > 64 {
			return false
		}
	}
	return true
}

func isArguments(tree jsontree.Object) bool {
	if v, _ := tree.Lookup("args"); v != nil {
		if _, ok := v.(jsontree.Array); !ok {
			return false
		}
	}
	if v, _ := tree.Lookup("kwargs"); v != nil {
		if _, ok := v.(jsontree.Object); !ok {
			return false
		}
	}
	return true
}

// Target names what is called, for a fingerprint.
func (c *Call) Target() string {
	if c.Module == "" {
		return c.Function
	}
	return c.Module + ":" + c.Function
}
