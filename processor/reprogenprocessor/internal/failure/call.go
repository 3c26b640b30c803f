package failure

import (
	"errors"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// MaxCallBytes is the size of a payload that is read, in bytes. A larger one makes its
// failure a context.
const MaxCallBytes = 256 << 10

// Reason is why a failure cannot be replayed. It is "" if it can.
type Reason string

// The reasons.
const (
	// NoPayload means that the span carries none.
	NoPayload Reason = "no_payload"
	// Truncated means that the size or the hash that the client sent does
	// not belong to the payload that arrived.
	Truncated Reason = "payload_truncated"
	// TooLarge means more than MaxCallBytes.
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
	// Unverified means that the payload is stored elsewhere, and that no hash
	// was sent to check it with.
	Unverified Reason = "payload_unverified"
	// NoArguments means that the span names a function and has no arguments.
	NoArguments Reason = "no_arguments"
	// Unsupported means that a conversation holds what no request can be made
	// of: images, audio, files.
	Unsupported Reason = "payload_unsupported"
	// CommandAmbiguous means that a recorded command is one text that can be
	// taken apart in several ways.
	CommandAmbiguous Reason = "command_ambiguous"
	// Withheld means that the collector keeps no content.
	Withheld Reason = "content_withheld"
	// Unwanted means that the client asks that nothing of it be replayed.
	Unwanted Reason = "unwanted"
	// UnsafeOutput means that a check on the finished script failed.
	UnsafeOutput Reason = "unsafe_output"
	// TooLargeOutput means that the finished artifact would be too large.
	TooLargeOutput Reason = "too_large"
)

// Call is a decoded payload.
type Call struct {
	// Tree is the whole payload, keys in their order; nil if it is Remote.
	Tree jsontree.Object
	// Remote is where the payload is stored, or nil if it is Tree.
	Remote *Remote
	// Module and Function are the target.
	Module, Function string
	// Lossy is true where a character of the payload had to be replaced.
	Lossy bool
	// Weight estimates the bytes that Tree takes in memory.
	Weight int
}

// WeightPerByte is what a byte of JSON may become as a tree: "0," is two
// bytes, and a value of 16 with a text of 16.
const WeightPerByte = 16

// ReasonOf returns why a text could not be decoded.
func ReasonOf(err error) Reason {
	switch {
	case errors.Is(err, jsontree.ErrDepth):
		return TooDeep
	case errors.Is(err, jsontree.ErrDuplicate):
		return Ambiguous
	}
	return Invalid
}

// Remote is a payload that is stored elsewhere. The collector never fetches it: the
// script does, and checks its hash.
type Remote struct {
	// URI is where the client put the payload.
	URI string `json:"uri"`
	// SHA256 is the payload's hash in hex, lower case.
	SHA256 string `json:"sha256"`
	// Size is the payload's length in bytes, or nil if it was not sent.
	Size *int64 `json:"size,omitempty"`
}

// Target names what is called, for a fingerprint.
func (c *Call) Target() string {
	if c.Module == "" {
		return c.Function
	}
	return c.Module + ":" + c.Function
}
