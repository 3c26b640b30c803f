package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// Protocol is an OTLP transport.
type Protocol string

// The transports that the imitated clients use.
const (
	GRPC Protocol = "grpc"
	HTTP Protocol = "http"
)

// Host is the host of the imitated processes, and of the GPU recording in the
// demo.
const Host = "gpu-node-1"

// Batch is one export request. Signal determines which of Traces, Metrics and
// Logs is set.
type Batch struct {
	Scenario string
	// Signal is one of the sentlog.Signal constants.
	Signal  string
	Traces  ptrace.Traces
	Metrics pmetric.Metrics
	Logs    plog.Logs
	// Truth is what can be known from this request.
	Truth sentlog.Truth
}

// Items returns the number of spans, data points or log records.
func (b Batch) Items() int64 {
	switch b.Signal {
	case sentlog.SignalTraces:
		return int64(b.Traces.SpanCount())
	case sentlog.SignalMetrics:
		return int64(b.Metrics.DataPointCount())
	case sentlog.SignalLogs:
		return int64(b.Logs.LogRecordCount())
	default:
		return 0
	}
}

// Entries returns the lines of the sent log for this request.
func (b Batch) Entries() []sentlog.Entry {
	switch b.Signal {
	case sentlog.SignalTraces:
		return sentlog.SpanEntries(b.Scenario, b.Traces)
	case sentlog.SignalMetrics:
		return sentlog.MetricEntries(b.Scenario, b.Metrics)
	case sentlog.SignalLogs:
		return sentlog.LogEntries(b.Scenario, b.Logs)
	default:
		return nil
	}
}

// Scenario imitates one system. It is not safe for concurrent use.
type Scenario interface {
	// Step performs one unit of the system's activity, which ends at the given
	// time, and returns the requests that are due by then, in order. Times must
	// not decrease between calls.
	Step(at time.Time) []Batch
	// Finish ends the processes cleanly and returns their last requests. It
	// must be the last call.
	Finish(at time.Time) []Batch
}

// Pauser is a scenario whose processes can do what they do not trace.
type Pauser interface {
	Scenario
	// Pause has them do so until a time. The next step begins there.
	Pause(until time.Time)
}

// Settings are the options of a scenario.
type Settings struct {
	// Seed determines ids, values and order.
	Seed int64
	// Rate is the number of steps per second; it must be above 0. The spans of
	// a step fit into its interval, unless processes work in parallel.
	Rate float64
	// Ranks is the number of TorchTel processes. Must be at least 1.
	Ranks int
	// JobID and JobName are those of TorchTel; under torchrun it sends 0 and
	// "local".
	JobID   int64
	JobName string
	// ErrorRatio returns the share of calls, passes, batches and rounds that fail
	// at a time. Without it each system fails at fixed places, often enough for a
	// demonstration.
	ErrorRatio func(at time.Time) float64
	// MetricsInterval is the time between two metric exports of a process, by
	// the clock of the steps. The clients' default is 60 s.
	MetricsInterval time.Duration
}

// interval is the time between two steps.
func (s Settings) interval() time.Duration {
	return time.Duration(float64(time.Second) / s.Rate)
}

// fails reports whether what ends at a time fails: by the ratio of the settings,
// else as the system decides by itself.
func (s Settings) fails(at time.Time, random source, otherwise bool) bool {
	if s.ErrorRatio == nil {
		return otherwise
	}
	return random.Float64() < s.ErrorRatio(at)
}

// Kind describes a scenario.
type Kind struct {
	// Protocol is the transport that the imitated client uses by default.
	Protocol Protocol
	// Summary says what is imitated.
	Summary string
	create  func(Settings) Scenario
}

var kinds = map[string]Kind{
	"torchtel":   {HTTP, "PyTorch training processes instrumented by TorchTel", newTorchTel},
	"tuft":       {GRPC, "a TuFT fine-tuning server with two training runs", newTuFT},
	"snakepit":   {HTTP, "Snakepit calls from Elixir into Python workers", newSnakepit},
	"fx":         {HTTP, "FX forecasting training loops, traced in three ways", newFX},
	"taskweaver": {GRPC, "TaskWeaver agent sessions", newTaskWeaver},
}

// Names lists the scenarios in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(kinds))
}

// Find returns the description of a scenario.
func Find(name string) (Kind, bool) {
	kind, ok := kinds[name]
	return kind, ok
}

// New returns the named scenario, or an error that lists the names.
func New(name string, settings Settings) (Scenario, error) {
	kind, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("unknown scenario %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	return kind.create(settings), nil
}
