package sentlog

// Version is the format's version, written in the header. A reader refuses
// another one.
const Version = 1

// The types of an [Entry].
const (
	TypeHeader   = "header"
	TypeSpan     = "span"
	TypeMetric   = "metric"
	TypeLog      = "log"
	TypeRejected = "rejected"
	TypeSummary  = "summary"
)

// The signals of a request.
const (
	SignalTraces  = "traces"
	SignalMetrics = "metrics"
	SignalLogs    = "logs"
)

// Entry is one line. Exactly the member that Type names is set.
type Entry struct {
	Type     string    `json:"type"`
	Header   *Header   `json:"header,omitempty"`
	Span     *Span     `json:"span,omitempty"`
	Metric   *Metric   `json:"metric,omitempty"`
	Log      *LogEntry `json:"log,omitempty"`
	Rejected *Rejected `json:"rejected,omitempty"`
	Summary  *Summary  `json:"summary,omitempty"`
}

// Header describes the generator's run.
type Header struct {
	// Version is the format's version.
	Version int `json:"version"`
	// Seed is the seed that repeats the run, also where the user gave none.
	Seed int64 `json:"seed"`
	// Scenarios are the scenarios that ran, in the order of their names.
	Scenarios []string `json:"scenarios"`
	// StartUnixNano is when the first step's time began.
	StartUnixNano int64 `json:"start_unix_nano"`
	// Rate is the number of activity steps per second and scenario.
	Rate float64 `json:"rate"`
}

// Scope names the instrumentation that made an item.
type Scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Status is a span's status. Code is "unset", "ok" or "error".
type Status struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

// Event is a span event.
type Event struct {
	Name         string     `json:"name"`
	TimeUnixNano int64      `json:"time_unix_nano"`
	Attributes   Attributes `json:"attributes"`
}

// Span is a span as it was sent. Ids are lower-case hexadecimal; a root has an
// empty ParentSpanID. Kind is "internal", "server", "client", "producer",
// "consumer" or "unspecified".
type Span struct {
	Scenario          string     `json:"scenario"`
	Signal            string     `json:"signal"`
	TraceID           string     `json:"trace_id"`
	SpanID            string     `json:"span_id"`
	ParentSpanID      string     `json:"parent_span_id,omitempty"`
	Name              string     `json:"name"`
	Kind              string     `json:"kind"`
	Scope             Scope      `json:"scope"`
	Resource          Attributes `json:"resource"`
	Attributes        Attributes `json:"attributes"`
	DroppedAttributes uint32     `json:"dropped_attributes,omitempty"`
	Status            Status     `json:"status"`
	StartUnixNano     int64      `json:"start_unix_nano"`
	EndUnixNano       int64      `json:"end_unix_nano"`
	Events            []Event    `json:"events,omitempty"`
}

// Metric is one data point as it was sent. Kind is "gauge", "sum" or
// "histogram".
type Metric struct {
	Scenario      string     `json:"scenario"`
	Signal        string     `json:"signal"`
	Name          string     `json:"name"`
	Unit          string     `json:"unit,omitempty"`
	Kind          string     `json:"kind"`
	Scope         Scope      `json:"scope"`
	Resource      Attributes `json:"resource"`
	Attributes    Attributes `json:"attributes"`
	StartUnixNano int64      `json:"start_unix_nano,omitempty"`
	TimeUnixNano  int64      `json:"time_unix_nano"`
	// Monotonic is true for a sum that only grows.
	Monotonic bool `json:"monotonic,omitempty"`
	// Int says that a gauge's or sum's point is an integer on the wire.
	Int bool `json:"int,omitempty"`
	// Value is the point of a gauge or a sum; 0 for a histogram.
	Value float64 `json:"value"`
	// Count, Sum, Bounds and Buckets are those of a histogram.
	Count   uint64    `json:"count,omitempty"`
	Sum     float64   `json:"sum,omitempty"`
	Bounds  []float64 `json:"bounds,omitempty"`
	Buckets []uint64  `json:"buckets,omitempty"`
}

// LogEntry is one log record as it was sent.
type LogEntry struct {
	Scenario       string     `json:"scenario"`
	Signal         string     `json:"signal"`
	TraceID        string     `json:"trace_id,omitempty"`
	SpanID         string     `json:"span_id,omitempty"`
	Body           string     `json:"body"`
	Severity       string     `json:"severity"`
	SeverityNumber int32      `json:"severity_number"`
	Scope          Scope      `json:"scope"`
	Resource       Attributes `json:"resource"`
	Attributes     Attributes `json:"attributes"`
	TimeUnixNano   int64      `json:"time_unix_nano"`
}

// Rejected is a request that the server did not accept whole.
type Rejected struct {
	Scenario string `json:"scenario"`
	Signal   string `json:"signal"`
	// Items is the number of items of the request.
	Items int64 `json:"items"`
	// Refused is how many of them the server refused: all of them where the
	// request failed.
	Refused int64 `json:"refused"`
	// Reason is the server's message or the error.
	Reason string `json:"reason"`
}
