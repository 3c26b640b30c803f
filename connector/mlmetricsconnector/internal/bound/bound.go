// Package bound decides what limits the speed of a training run, and on what the
// time of a call or request is spent.
package bound

import (
	"cmp"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Bound is what limits a run.
type Bound string

// The values of Bound, in the order of precedence.
const (
	// Checkpoint: saving and restoring take more than a fifth of the time.
	Checkpoint Bound = "checkpoint"
	// Input: loading data takes more than a fifth of the time.
	Input Bound = "input"
	// GPU: the utilization of the GPUs is above 0.7.
	GPU Bound = "gpu"
	// Launch: the program works more than half of the time, and the utilization
	// of the GPUs is below 0.4: they wait for kernel launches or other ranks.
	Launch Bound = "launch"
	// Unknown: none of these applies.
	Unknown Bound = "unknown"
)

// All has all values.
var All = [...]Bound{Checkpoint, Input, GPU, Launch, Unknown}

const (
	muchTime = 0.2
	mostTime = 0.5
	highUse  = 0.7
	lowUse   = 0.4
)

// Evidence is what is known of a run.
type Evidence struct {
	// Checkpoint, DataLoad and Productive are fractions of the run's time.
	Checkpoint, DataLoad, Productive float64
	// Utilization is that of the run's GPUs, 0 to 1, NaN if it is unknown.
	Utilization float64
}

// Of returns what limits the run.
func Of(e Evidence) Bound {
	switch {
	case e.Checkpoint > muchTime:
		return Checkpoint
	case e.DataLoad > muchTime:
		return Input
	case e.Utilization > highUse:
		return GPU
	case e.Utilization >= 0 && e.Utilization < lowUse && e.Productive > mostTime:
		return Launch
	default:
		return Unknown
	}
}

// Cause is what the time of a call or request was spent on.
type Cause uint8

// The values of Cause, in the order in which time is given to them.
const (
	// Queue: it waited for a worker, or to be scheduled.
	Queue Cause = iota
	// Serialize: its arguments were encoded.
	Serialize
	// Loading: data was loaded.
	Loading
	// ModelServer: a model's server worked on it, as seen by its client.
	ModelServer
	// Network: a client waited for another process, beyond the time in which a
	// model's server is known to have worked on it.
	Network
	// OnGPU: the program worked, while the GPUs of its run or service were busy.
	OnGPU
	// OnCPU: the program worked, while its process computed.
	OnCPU
	// NotKnown: nothing that arrived says.
	NotKnown

	// Causes is the number of causes.
	Causes
)

// causes are the values of ml.call.bound.
var causes = [Causes]string{
	Queue: "queue", Serialize: "serialize", Loading: string(Input), ModelServer: "model_server",
	Network: "network", OnGPU: string(GPU), OnCPU: "cpu", NotKnown: string(Unknown),
}

// String returns the value of ml.call.bound.
func (c Cause) String() string { return causes[c] }

// busyCores is how many cores a process uses at least that computes: it has one
// thread that is seldom interrupted. Less may be a thread that waits for another.
const busyCores = 0.7

// Kind is what a span does in the time that nothing below it accounts for.
type Kind uint8

const (
	// Works means that the program works.
	Works Kind = iota
	// Waits means that the call waits for a worker.
	Waits
	// ContainsWait means that the call waits until the work below it begins.
	ContainsWait
	// Loads means that data is loaded.
	Loads
	// Asks means that a client waits for a model's server.
	Asks
	// CallsOut means that a client waits for another process.
	CallsOut
)

// Times are seconds by Cause.
type Times [Causes]float64

// Add adds other.
func (t *Times) Add(other *Times) {
	for c := range t {
		t[c] += other[c]
	}
}

// Sum returns all seconds.
func (t *Times) Sum() float64 { return shared.Sum(t[:]) }

// Span is what is known of the time of a call, a request or a part of one.
type Span struct {
	// Seconds is how long it lasted.
	Seconds float64
	// Below is what the spans below it account for.
	Below Times
	// Queue and Serialize are what its client measured, 0 if it did not.
	Queue, Serialize float64
	// Function is the time in the function that was called, as its client measured
	// it, 0 if it did not.
	Function float64
	// Kind is what the rest of its time was spent on.
	Kind Kind
	// Utilization is that of the GPUs of its run or service meanwhile, 0 to 1, and
	// Cores how many cores its process used; negative if unknown.
	Utilization, Cores float64
}

// Divide returns on what the time of the span was spent. The times add up to
// Seconds.
//
// Spans below that overlap can account for more than Seconds; then each counts in
// proportion. What the client measured counts as far as the spans below do not show
// the same. If the time in the function is known, the rest is the way there and back.
// Else it goes by Kind. Work is bound by the GPU above the utilization
// that applies to runs, because a program that feeds a GPU also uses a core, and
// else by the CPU from 0.7 cores: a Python program computes with one thread.
func (s *Span) Divide() (times Times) {
	if !(s.Seconds > 0) {
		return times
	}
	times = s.Below
	if sum := times.Sum(); sum > s.Seconds {
		for c := range times {
			times[c] *= s.Seconds / sum
		}
	}
	rest := s.Seconds - times.Sum()
	take := func(cause Cause, seconds float64) {
		if seconds = min(seconds-times[cause], rest); seconds > 0 {
			times[cause] += seconds
			rest -= seconds
		}
	}
	take(Queue, s.Queue)
	take(Serialize, s.Serialize)
	last := s.remainder()
	if s.Function > 0 {
		below := times.Sum() - times[Queue] - times[Serialize] - times[Network]
		work := max(min(s.Function-below, rest), 0)
		times[last], rest = times[last]+work, rest-work
		last = Network
	}
	times[last] += max(rest, 0)
	return times
}

// remainder returns the cause of the time for which nothing else accounts.
func (s *Span) remainder() Cause {
	switch {
	case s.Kind == ContainsWait && s.Below == Times{}:
		return NotKnown // the work may come later
	case s.Kind == Waits, s.Kind == ContainsWait:
		return Queue
	case s.Kind == Loads:
		return Loading
	case s.Kind == Asks && s.Below[ModelServer] == 0:
		return ModelServer
	case s.Kind == Asks, s.Kind == CallsOut:
		return Network
	case s.Utilization > highUse:
		return OnGPU
	case s.Cores >= busyCores:
		return OnCPU
	default:
		return NotKnown
	}
}

// ways is how many spans have the same place in a Memory. Their keys fill half a
// cache line.
const ways = 4

// Memory has the times of spans until the span above them arrives, because children
// usually arrive first, often in an earlier request. Its size is fixed: beyond it,
// those that came first are forgotten. It takes a quarter of the time of a lastused.Map
// (decision 51). It is not safe for concurrent use.
type Memory struct {
	// keys are those of the spans at each place, the newest first, or 0, and
	// times what is below them.
	keys  [][ways]uint64
	times [][ways]Times
}

// NewMemory returns a Memory for about so many spans.
func NewMemory(spans int) *Memory {
	places := 1 << bits.Len(uint(max(spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &Memory{keys: make([][ways]uint64, places), times: make([][ways]Times, places)}
}

func (m *Memory) place(above uint64) int {
	return int(above & uint64(len(m.keys)-1)) // #nosec G115 -- an index
}

// Add adds times below a span. Its key is a hash of its ids, and not zero.
func (m *Memory) Add(above uint64, below *Times) {
	place := m.place(above)
	keys, times := &m.keys[place], &m.times[place]
	if i := slices.Index(keys[:], above); i >= 0 {
		times[i].Add(below)
		return
	}
	copy(keys[1:], keys[:ways-1])
	copy(times[1:], times[:ways-1])
	keys[0], times[0] = above, *below
}

// Take adds the times below a span to times, and forgets them.
func (m *Memory) Take(above uint64, times *Times) {
	place := m.place(above)
	keys := &m.keys[place]
	if i := slices.Index(keys[:], above); i >= 0 {
		times.Add(&m.times[place][i])
		copy(keys[i:], keys[i+1:])
		copy(m.times[place][i:], m.times[place][i+1:])
		keys[ways-1] = 0
	}
}

// Timed is a span of a request whose time is divided by cause.
type Timed struct {
	Self, Parent nesting.Key
	Start, End   pcommon.Timestamp
	Span
	// OfModel reports whether the span is that of a model's server, Serves whether
	// its program works for others, who may wait for their turn.
	OfModel, Serves bool
	// Again reports whether the span was delivered before.
	Again bool
	// Times is on what its time was spent, after Memory.Divide.
	Times Times
}

// endOf is what orders the spans, apart from the rest, which would fill the processor's
// caches.
type endOf struct {
	end, start pcommon.Timestamp
	// at is the index of the span.
	at int32
}

// Order is the order in which the spans of a request are divided: children before their
// parents. The zero Order is that of no spans.
type Order []endOf

// Sort makes it the order of all. It takes little time if they are in such an order, as SDKs
// send them.
func (o *Order) Sort(all []Timed) {
	*o = (*o)[:0]
	for i := range all {
		*o = append(*o, endOf{all[i].End, all[i].Start, int32(i)}) // #nosec G115 -- spans of a request
	}
	slices.SortFunc(*o, func(a, b endOf) int {
		if a.end != b.end {
			return cmp.Compare(a.end, b.end)
		}
		return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(a.at, b.at))
	})
}

// Divide divides the times of the spans of a request in their order.
func (m *Memory) Divide(all []Timed, order Order) {
	for _, next := range order {
		m.divide(&all[next.at])
	}
}

// divide divides the time of one span, after those below it.
func (m *Memory) divide(one *Timed) {
	if one.Again {
		return
	}
	if one.Self.Known() {
		m.Take(uint64(one.Self), &one.Below)
	}
	leaf := one.Below == Times{}
	one.Times = one.Divide()
	switch {
	case !one.Parent.Known() || one.Parent == one.Self:
	case one.OfModel:
		m.Add(uint64(one.Parent), &Times{ModelServer: one.Seconds})
	case leaf && one.Kind == Works && !one.Serves && one.Queue+one.Serialize == 0:
		// The work of the parent, for all that is known.
	default:
		m.Add(uint64(one.Parent), &one.Times)
	}
}
