package model

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Labels tell the streams of a series apart. Fields that do not apply are empty.
type Labels struct {
	Namespace, Service string
	Run, Job, Rank     string
	Host               string
	// GPU is hw.id.
	GPU string
	// Collector is the name of the collector that has computed the series; a Store
	// sets it from Point.From.
	Collector string
	// Own are the values of Series.Own.
	Own [MaxOwn]string
}

// keep makes the labels copies that share no memory with what was received.
func (l *Labels) keep(texts *texts) {
	for _, text := range [...]*string{&l.Namespace, &l.Service, &l.Run, &l.Job, &l.Rank, &l.Host, &l.GPU, &l.Collector} {
		*text = texts.of(*text)
	}
	for i, text := range l.Own {
		l.Own[i] = texts.of(text)
	}
}

// Point is one value of a stream.
type Point struct {
	Series Series
	// Gone reports that the stream has ended: a point without a value.
	Gone bool
	// Delta reports that Value and Count are increases.
	Delta  bool
	Labels Labels
	// Value is the value, of a histogram its sum. Count is a histogram's count.
	Value, Count float64
	// Time is the point's time in nanoseconds since 1970, by its producer's clock.
	Time int64

	// Sender has sent the point, zero for the collector itself.
	Sender share.Sender
	// From is the collector that has sent the point.
	From Connection
	// GPU describes the device of a point of a GPU, nil for other points. Points
	// of one request may share it.
	GPU *Device
	// Simulated reports whether the value is simulated or recorded.
	Simulated bool
	// Overflow reports that the point stands for data that another component had no
	// room for.
	Overflow bool
	// Origin is a hash of all that the series, the labels, From, GPU, Simulated and
	// Overflow are read from. Points with the same one differ only in what an Update has. 0 means
	// that there is none.
	Origin uint64
}

// Update is a value of a stream that is known by the Origin of an earlier Point. Its
// other fields are as those of a Point.
type Update struct {
	Origin       uint64
	Value, Count float64
	Time         int64
	Gone, Delta  bool
}

// update returns what is new in a point of a known stream.
func (p *Point) update() Update {
	return Update{Origin: p.Origin, Value: p.Value, Count: p.Count, Time: p.Time, Gone: p.Gone, Delta: p.Delta}
}

// Device is what points say of a GPU besides their values.
type Device = gpupoint.Device

// Source is the process that has sent spans, as its resource and the spans say.
type Source struct {
	// Sender has sent the spans, zero for the collector itself.
	Sender share.Sender

	Namespace, Service, Version string
	Run, Job, JobName           string
	User, Host, Rank            string
	PID                         int64
	Simulated                   bool
	// SomeRanks reports whether only some ranks of the run may send, so that the
	// others are not missing.
	SomeRanks bool
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

// SpanInput is what the page reads of one span. Its texts may share memory with
// what was received; a Store copies what it keeps.
type SpanInput struct {
	Trace      [16]byte
	ID, Parent [8]byte
	Name       string
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	// Server reports whether the span's kind is server.
	Server bool
	Source *Source

	Phase, Operation  string
	Library, Function string
	Model, Role, Side string

	// ML reports whether the span is a machine-learning operation, Runless whether
	// such a span has no run.
	ML, Runless bool
	// Failed reports whether the span failed, Class and Message with what.
	// Fingerprint is that of its reproduction. FailureElsewhere reports whether
	// another span counts the failure.
	Failed           bool
	Class, Message   string
	Fingerprint      string
	FailureElsewhere bool

	// Sizes are those that the span reports.
	Sizes Sizes

	Call CallPart
	// Duration is the producer's own measure, in seconds, or the span's, and zero if
	// neither is usable. Queue and Serialize are NaN if unknown.
	Duration, Queue, Serialize float64

	// Request reports whether the span is a request to a model, Usage whether it
	// reports tokens.
	Request, Usage bool
	// FirstToken, in seconds, and Decode, in tokens per second, are NaN if
	// unknown. DecodeBasis is the ml.throughput.basis of Decode.
	FirstToken, Decode float64
	DecodeBasis        string
	// Cached is the number of cached input tokens, NaN if unknown.
	Cached float64
	// LengthStop reports whether the answer ended at the limit of tokens.
	LengthStop bool
}

// wholeDuration returns Duration, or NaN if it is unknown or the first token came after
// it: a client may end the span of a stream when the stream begins.
func (in *SpanInput) wholeDuration() float64 {
	if in.Duration <= 0 || in.FirstToken > in.Duration {
		return math.NaN()
	}
	return in.Duration
}

// Event is what the page reads of a log record: an error of a GPU's driver or a
// reproduction of another collector.
type Event struct {
	Time time.Time
	// XID and GPU are those of a driver's error.
	XID       *XID
	GPU, Host string
	// Failure is a reproduction.
	Failure *Failure
	// Change and Problem are what ml_metrics has recorded, Namespace the
	// service.namespace of its program.
	Change    *Change
	Problem   *Record
	Namespace string
}

// Record is what ml_metrics says of a problem when it begins, when it becomes stale and
// when it ends.
type Record struct {
	ID, Kind string
	Severity mlattr.Severity
	Onset    time.Time
	// Stale is when the newest evidence arrived of a problem that lasts without new
	// evidence, zero for others. Ended is when the problem ended, zero while it lasts,
	// and EndReason a value of mlattr.ProblemEndReason.
	Stale, Ended time.Time
	EndReason    string
	Text         string
	// Service, Run, Host and GPU are what has the problem: service.name,
	// ml.run.id, host.name and hw.id.
	Service, Run, Host, GPU string
	// Holder is the workload that held the GPU at the onset.
	Holder Workload
	// Value, Usual and GPUHours are nil if unknown.
	Value, Usual, GPUHours *float64
	Unit                   string
	Evidence, Excluded     []string
	// Before has phrases about changes, each after its time in RFC 3339.
	Before []string
	Next   string
	// Cause is the ID of the problem that this one follows from.
	Cause string
	// Shadow reports whether the problem is only recorded.
	Shadow bool

	// namespace is the service.namespace, onset who had the problem, and where, when it
	// began.
	namespace string
	onset     onset
}

// Workload is what a workload of a GPU is known by.
type Workload = gpupoint.Holder
