package sample

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
)

// TraceID is the id of a trace.
type TraceID [16]byte

// SpanID is the id of a span within its trace. An empty one is no span's.
type SpanID [8]byte

// Role is what a span is in the training of a rank.
type Role uint8

// The roles.
const (
	// NoRole is a span that is no phase of training. It belongs to the step, or
	// to the call, of its trace.
	NoRole Role = iota
	// Load begins a step, or the next one.
	Load
	// Forward begins a step, or the next one.
	Forward
	// Work is in the middle of a step.
	Work
	// Optimizer ends a step.
	Optimizer
	// Batch ends a step of a rank that shows no optimizer.
	Batch
	// Checkpoint takes time that is not the step's.
	Checkpoint
	// Validation takes time that is not the step's, and is always kept.
	Validation
	// Lasting contains steps, and is always kept.
	Lasting
)

// Source is what the spans of one rank have in common.
type Source struct {
	// Run, Rank and Host are hashes by rule.Hash.
	Run, Rank, Host uint64
	// Attempt is the launcher's count of restarts.
	Attempt int64
	// OnDemand reports whether the rank waits between its steps for work.
	OnDemand bool
	// OneTrace reports whether a process of the rank has one trace for its life.
	OneTrace bool
}

// Span is what was read of one span.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID
	// Start and End are nanoseconds since 1970. Start is not after End.
	Start, End int64
	Source     Source
	Role       Role
	// Step is the number of the step within the run, 0 without one.
	Step int64
	// Operation is a hash of service and operation. Like is the same, or of service
	// and name without an operation: durations are compared with those of spans alike.
	Operation, Like uint64
	// Conversation is a hash of the conversation, 0 without one.
	Conversation uint64
	// Tokens is the number of output tokens.
	Tokens int64
	// Failed and Marked keep the unit.
	Failed, Marked bool
}

// Config says which units are kept, and what may wait. Its keys are those of the
// processor.
type Config struct {
	// Steps says which training steps are kept.
	Steps Steps `mapstructure:"steps"`
	// Calls says which traces without training steps are kept.
	Calls Calls `mapstructure:"calls"`
	// Wait is how long a unit waits: a step after its end on the first rank, a
	// call after the arrival of its first span. It must be from 1s to 10m. The
	// default is 30s.
	Wait time.Duration `mapstructure:"wait"`
	// MaxBytes limits the memory of what waits, in bytes. Beyond it the oldest
	// units are decided early. It must be at least 1 MiB. The default is 256 MiB.
	MaxBytes int64 `mapstructure:"max_bytes"`
}

// Steps says which training steps are kept.
type Steps struct {
	// OneIn keeps one in so many steps of each run, the same on all ranks. 1
	// keeps all. The default is 100.
	OneIn int64 `mapstructure:"one_in"`
	// SlowQuantile keeps a step that took longer on a rank than this fraction of
	// the run's last 512 steps. It must be less than 1. The default is 0.99; 0
	// keeps none for that.
	SlowQuantile float64 `mapstructure:"slow_quantile"`
	// Slow keeps a step that took longer on a rank than so many times the median
	// of the run's last 512 steps. It must be 0 or more than 1. The default is 3;
	// 0 keeps none for that.
	Slow float64 `mapstructure:"slow"`
	// First keeps so many steps at the beginning of a run and after each restart.
	// It is at most 1000. The default is 5; 0 keeps none for that.
	First int `mapstructure:"first"`
	// Before keeps so many steps before a failure, a stall or a GPU error (XID).
	// It is at most 1000. The default is 20; 0 keeps none for that.
	Before int `mapstructure:"before"`
}

// Calls says which traces without training steps are kept.
type Calls struct {
	// OneIn keeps one in so many conversations, or traces without one. 1 keeps
	// all. The default is 100.
	OneIn int64 `mapstructure:"one_in"`
	// SlowQuantile is that of Steps, compared with the last 512 traces of
	// the same service and operation. Durations are divided by output tokens.
	SlowQuantile float64 `mapstructure:"slow_quantile"`
	// Slow is that of Steps, compared as SlowQuantile is.
	Slow float64 `mapstructure:"slow"`
}

// Reason is why a unit is kept.
type Reason uint8

// The reasons, of which the first that applies counts, and Dropped for units that are not
// kept.
const (
	Failed Reason = iota
	Marked
	Slow
	First
	Rare
	Before
	Conversation
	Systematic
	Linked
	Dropped
	Reasons // the number of reasons
)

// String returns the reason's name in metrics.
func (r Reason) String() string {
	return [Reasons]string{"failed", "marked", "slow", "first", "rare", "before", "conversation", "systematic", "linked", "dropped"}[r]
}

// outcome returns what becomes of a unit, and how many it stands for, itself included.
func (r Reason) outcome(oneIn int64) (to state, count int64) {
	switch r {
	case Systematic:
		return kept, oneIn
	case Linked:
		return kept, 0
	case Dropped:
		return dropped, 0
	default:
		return kept, 1
	}
}

// reasons are those that apply, a bit for each.
type reasons uint16

// add adds a reason if it applies.
func (r *reasons) add(reason Reason, applies bool) {
	if applies {
		*r |= 1 << reason
	}
}

func (r reasons) has(reason Reason) bool { return r>>reason&1 > 0 }

// first returns the one that counts.
func (r reasons) first() Reason { return Reason(bits.TrailingZeros16(uint16(r | 1<<Dropped))) } // #nosec G115 -- at most 15

// Kind is the kind of a unit in metrics.
type Kind uint8

// The kinds.
const (
	Call Kind = iota
	Step
	Kinds // the number of kinds
)

// String returns the kind's name in metrics.
func (k Kind) String() string { return [Kinds]string{"call", "step"}[k] }

// Counts is what was decided.
type Counts struct {
	Units [Kinds][Reasons]int64
	// Kept and Dropped are spans, Overflow those that were lost because nothing
	// could be sent. Early are units that were decided before they had waited.
	Kept, Dropped, Overflow, Early int64
}

// state is whether something is decided.
type state uint8

const (
	waiting  state = iota
	retained       // to be dropped, and in memory until then
	kept
	dropped
)

// Unit is the spans of a trace that are decided together.
type Unit struct {
	trace *trace
	// step is the step that the unit is part of, nil for a call.
	step      *step
	state     state
	count     int64
	fragments []blob.Fragment
	spans     int64

	// arrived is when the first span arrived, due when a call is decided.
	arrived, due int64
	// start and end are the times of the first and last span, longest the
	// duration of the span that is like those that the unit is compared with.
	start, end, longest int64
	like, conversation  uint64
	tokens              int64
	why                 reasons
}

// observe adds what a span says about its unit.
func (u *Unit) observe(sp *Span) {
	if u.spans == 0 || sp.Start < u.start {
		u.start = sp.Start
	}
	u.end = max(u.end, sp.End)
	if length := sp.End - sp.Start; length >= u.longest {
		u.like, u.longest = sp.Like, length
	}
	u.conversation = cmp.Or(u.conversation, sp.Conversation)
	u.tokens = max(u.tokens, sp.Tokens)
	u.why.add(Failed, sp.Failed)
	u.why.add(Marked, sp.Marked)
	u.spans++
}

// pop removes the oldest item of a queue, and returns it.
func pop[T any](queue *[]*T) *T {
	oldest := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	return oldest
}
