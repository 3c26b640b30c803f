// Package input has what the page is given besides points of metrics: its settings, spans, events and
// facts.
package input

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Source is the process that has sent spans, as its resource and the spans say.
type Source struct {
	// Sender has sent the spans, zero for the collector itself.
	Sender share.Sender

	Namespace, Service, Version string
	Run, Job, JobName           string
	User, Host, Rank            string
	Simulated                   bool
	// SomeRanks reports whether only some ranks of the run may send, so that the
	// others are not missing.
	SomeRanks bool
	// Settings say how the run was started. Only one source of a run of a resource has them.
	Settings []api.Setting
}

// CallPart is what a span says of a call.
type CallPart uint8

const (
	// NoCall is a span that is no call.
	NoCall CallPart = iota
	// WholeCall is a call.
	WholeCall
	// RecordedCall is a call that a client's own event records.
	RecordedCall
)

// Span is what the page reads of one span. Its texts may share memory with
// what was received; a Store copies what it keeps.
type Span struct {
	Trace      [16]byte
	ID, Parent [8]byte
	Name       string
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	// Server reports whether the span's kind is server.
	Server bool
	Source *Source

	// Fact is what the span says. Its Operation is that of the conventions where it has no
	// other one, and its Library and Function are those that its events name, if any do.
	Fact spanfact.Fact
	// Tool is the tool that the span runs, Agent and Session whose work it is.
	Tool, Agent, Session string
	// Held reports whether the page holds the span with its trace. Then Details has its
	// attributes and events. They are valid as long as what was received.
	Held    bool
	Details Details
	// Sizes are those that the span reports.
	Sizes Sizes
	// ML reports whether the span is a machine-learning operation, Runless whether
	// such a span has no run.
	ML, Runless bool

	Failure
	Call
	Request
}

// slowCall is the duration in seconds above which a call is slow, as in ml_metrics.
const slowCall = 1

// Slow reports whether the span is a slow call. Requests to models are slow by nature.
func (s *Span) Slow() bool { return s.Part != NoCall && !s.Asks && s.Duration > slowCall }

// Failure says with what a span failed.
type Failure struct {
	Failed         bool
	Class, Message string
	// Fingerprint is that of its reproduction.
	Fingerprint string
}

// Call is what a span says of a call.
type Call struct {
	Part CallPart
	// Duration is the producer's own measure, in seconds, or the span's, and zero if
	// neither is usable. Queue and Serialize are NaN if unknown.
	Duration, Queue, Serialize float64
}

// Request is what a span says of a request to a model.
type Request struct {
	// Asks reports whether the span is a request to a model, or reports the tokens of one.
	Asks bool
	// FirstToken, in seconds, and Decode, in tokens per second, are NaN if
	// unknown. DecodeBasis is the ml.throughput.basis of Decode.
	FirstToken, Decode float64
	DecodeBasis        string
	// Cached is the number of cached input tokens, NaN if unknown.
	Cached float64
	// LengthStop reports whether the answer ended at the limit of tokens.
	LengthStop bool
}

// Event is what the page reads of a log record: an error of a GPU's driver or a
// reproduction of another collector.
type Event struct {
	// XID and GPU are those of a driver's error.
	XID       *api.XID
	GPU, Host string
	// Failure is a reproduction.
	Failure *api.Failure
	// Change and Problem are what ml_metrics has recorded, Namespace the
	// service.namespace of the program that has changed.
	Change    *api.Change
	Problem   *Record
	Namespace string
}

// Subject is what has a problem: service.namespace, service.name, ml.run.id, host.name and
// hw.id, as far as they apply.
type Subject struct{ Namespace, Service, Run, Host, GPU string }

// Record is what ml_metrics says of a problem when it begins, when its evidence changes,
// when it becomes stale and when it ends.
type Record struct {
	ID, Kind string
	Onset    time.Time
	// Updated reports whether only the evidence of a problem that lasts has changed.
	Updated bool
	// Stale is when the newest evidence arrived of a problem that lasts without new
	// Evidence, zero for others. Ended is when the problem ended, zero while it lasts,
	// and EndReason a value of mlattr.ProblemEndReason.
	Stale, Ended time.Time
	EndReason    string
	Subject
	// Holder is the workload that held the GPUs at the onset, Held are the GPUs concerned,
	// each its host.name, a slash and its hw.id.
	Holder Workload
	Held   []string
	// GPUs are those that the problem keeps from work. Value, Usual, GPUs and GPUHours are
	// nil if unknown.
	Value, Usual, GPUs, GPUHours *float64
	Unit                         string
	Evidence, Excluded           []string
	// Before has phrases about changes, each after its time in RFC 3339.
	Before []string
	// Cause is the ID of the problem that this one follows from.
	Cause string
	Advice
}

// Advice is what ml_metrics says to do next.
type Advice struct {
	Next string
	// PID is the process to look at, GPUIndex the driver's index of its GPU, and Recovery
	// what the driver of a failed GPU asks for, an mlattr.GPURecoveryAction; 0 and nil if
	// unknown.
	PID, Recovery int64
	GPUIndex      *int64
}

// Workload is what a workload of a GPU is known by.
type Workload = gpupoint.Holder

// SizeNames are the attributes of the sizes that spans report.
var SizeNames = [...]string{mlattr.BatchSize, mlattr.MicrobatchCount, mlattr.EpochTotal, mlattr.WorldSize}

// Sizes are by the place in SizeNames, 0 if a span does not report them.
type Sizes [len(SizeNames)]int64

// SpanRef identifies a span.
type SpanRef struct {
	Trace [16]byte
	Span  [8]byte
}

// rememberedSpans is how many Parents has at the most; half as many are at least.
const rememberedSpans = 32_768

// Below is what a span right below another one reports: a failure, a request to a model.
type Below struct{ Failed, Asks bool }

// Parents are the spans above such spans that were seen recently.
type Parents struct{ all *lastused.Map[SpanRef, Below] }

// NewParents returns an empty set.
func NewParents() Parents { return Parents{lastused.NewMap[SpanRef, Below](rememberedSpans)} }

// Note remembers the spans above failures and requests.
func (p Parents) Note(spans []Span) {
	for i := range spans {
		if in := &spans[i]; (in.Failed || in.Asks) && in.Parent != ([8]byte{}) {
			above := SpanRef{in.Trace, in.Parent}
			known, _ := p.all.Get(above)
			if both := (Below{known.Failed || in.Failed, known.Asks || in.Asks}); both != known {
				p.all.Put(above, both)
			}
		}
	}
}

// Of returns what is known to be below a span.
func (p Parents) Of(in *Span) Below {
	below, _ := p.all.Get(SpanRef{in.Trace, in.ID})
	return below
}

// Settings configure a Store.
type Settings struct {
	// Interval is how long a State is kept before it is computed again, and the
	// least time between two points of a curve.
	Interval time.Duration
	// History is how long curves and ended runs are kept.
	History time.Duration
	// MaxRuns and MaxGPUs limit the runs and GPUs.
	MaxRuns, MaxGPUs int
	// MaxTraces and TraceBytes limit the held traces.
	MaxTraces  int
	TraceBytes int64
	// Content reports whether whole messages of errors are held. Otherwise only
	// their first 200 characters are, as in the groups of repro_gen. Prompts,
	// completions and arguments are held only then, as attributes of spans.
	Content bool
	// Owners are the names of owners by uid, user name, pod, hash or service.
	Owners map[string]string
	// Reproductions reports whether SetFailures is called with what repro_gen writes.
	// Otherwise no failure has a command, and the rows say so.
	Reproductions bool
	// Withheld reports whether it is not, because anybody can read the page.
	Withheld bool
	// JaegerURL is the address of Jaeger, to which traces are linked. Empty means
	// no links.
	JaegerURL string
	// Fleet reports whether all data comes from other collectors, which are told apart
	// by Point.From. Otherwise Point.From and SeeConnection are ignored.
	Fleet bool
	// Version is the version of the distribution.
	Version string
	// Reported returns what the collector's components have left out.
	Reported func() []api.Missing
	// Now returns the time.
	Now func() time.Time
}

// Bounds are what all owners of rows share: the settings, the texts that are held, and what
// lists have no room for.
type Bounds struct {
	Settings
	Texts  *kept.Texts
	Limits *kept.Counts
}

// Details are the attributes and events of a span: pairs of texts, each after its length.
// An event is a pair without a key, and the pairs after it are its attributes.
type Details []byte

// Attribute adds an attribute of the span, or of the event that was added last.
func (d Details) Attribute(key string, value []byte) Details {
	d = append(binary.AppendUvarint(d, uint64(len(key))), key...)
	return append(binary.AppendUvarint(d, uint64(len(value))), value...)
}

// Event adds an event at an offset from the span's start, in nanoseconds.
func (d Details) Event(name string, offset int64) Details {
	return d.Attribute("", append(strconv.AppendInt(nil, offset, 10), " "+name...))
}

// Rows returns what was added. of returns a value as it is shown.
func (d Details) Rows(of func(key, value string) string) (row api.SpanDetail) {
	next := func() string {
		n, size := binary.Uvarint(d)
		text := string(d[size : size+int(n)]) // #nosec G115 -- Attribute has written it
		d = d[size+len(text):]
		return text
	}
	attributes := &row.Attributes
	for len(d) > 0 {
		switch key, value := next(), next(); key {
		case "":
			offset, name, _ := strings.Cut(value, " ")
			ns, _ := strconv.ParseInt(offset, 10, 64) // Event has written it.
			row.Events = append(row.Events, api.SpanEvent{Name: name, Offset: float64(ns) / 1e9})
			attributes = &row.Events[len(row.Events)-1].Attributes
		default:
			*attributes = append(*attributes, api.Setting{Name: key, Value: of(key, value)})
		}
	}
	api.MakeLists(&row)
	return row
}
