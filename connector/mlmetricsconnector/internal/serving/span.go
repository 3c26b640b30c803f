package serving

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// Kind is a set of what a span may count as.
type Kind uint16

const (
	// Request is a request to a model that no other span counts.
	Request Kind = 1 << iota
	// Agent is a request to an agent.
	Agent
	// Tool is a call of a tool.
	Tool
	// Call is a call of a function or an operation, which the service was asked
	// for.
	Call
	// Step is a step of an agent.
	Step
	// Root is the outermost span of a trace.
	Root
	// Failed is a span that failed.
	Failed
	// Resent is a request that was sent before.
	Resent
	// Finished is an answer whose finish reason is known.
	Finished
	// Cut is an answer that was cut at a limit of tokens.
	Cut
	// Filtered is an answer that was withheld or refused.
	Filtered
)

// Span is what a span says about its service. Its texts are not kept unless they
// are cloned. A negative count or a NaN is unknown.
type Span struct {
	// Resource is the service.
	Resource streams.Resource
	Kind     Kind
	// Version is that of the service.
	Version string
	// Trace and Parent are those of the span, zero where there is none.
	Trace  [16]byte
	Parent [8]byte
	// Operation and Role are those of a request or step.
	Operation, Role string
	// Model is the requested model, Answered the one that answered.
	Model, Answered string
	// Tool is the name of a tool, Arguments a hash of what it was called with, 0
	// if that is unknown.
	Tool      string
	Arguments uint64
	// RequestID identifies a request, or is "".
	RequestID string
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	Times
	Tokens
	// Dimensions are those of an embedding.
	Dimensions int64
	// Cost is in US dollars.
	Cost float64
}

// Times are the seconds of a span as its producer measured them: the whole duration, until
// the first token, and of waiting.
type Times struct{ Seconds, FirstToken, Queued float64 }

// Tokens are those of a request. Cached are among Input.
type Tokens struct{ Input, Output, Cached int64 }

// Unknown is a Span of which nothing is known.
var Unknown = Span{
	Times: Times{math.NaN(), math.NaN(), math.NaN()}, Tokens: Tokens{-1, -1, -1}, Cost: math.NaN(),
}

// is reports whether a span counts as all of a set.
func (s *Span) is(all Kind) bool { return s.Kind&all == all }

// Versions has the newest versions of a service. Index 0 is for none.
type Versions struct {
	names [shift.Versions]string
	seen  [shift.Versions]time.Time
}

// index returns that of a version. Beyond the limit the version that was seen
// longest ago is forgotten.
func (v *Versions) index(name string, now time.Time) uint8 {
	if name == "" {
		return 0
	}
	at := slices.Index(v.names[:], name)
	if at < 0 {
		at = 1
		for i := range v.seen {
			if i > 0 && v.seen[i].Before(v.seen[at]) {
				at = i
			}
		}
		v.names[at] = strings.Clone(name)
	}
	v.seen[at] = now
	return uint8(at) // #nosec G115 -- below shift.Versions
}

// Name returns a version as evidence names it.
func (v *Versions) Name(index int) string {
	if v.names[index] == "" {
		return "no version"
	}
	return "version " + v.names[index]
}
