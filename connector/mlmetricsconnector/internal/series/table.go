// Package series is the table of the series that the ml_metrics connector writes:
// name, unit, kind, buckets, labels and description of each. The connector builds
// its metrics from the table, and the test of seriespage the page that documents them.
package series

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// ID identifies a series of the table. It is the index into All.
type ID uint8

// Kind is how a series aggregates values.
type Kind string

const (
	// Counter is a cumulative, monotonic sum of whole numbers.
	Counter Kind = "counter"
	// Gauge holds the newest value, that of the span that ended last.
	Gauge Kind = "gauge"
	// Histogram is a cumulative histogram with explicit buckets.
	Histogram Kind = "histogram"
	// Total is a cumulative, monotonic sum of fractional numbers.
	Total Kind = "total"
	// State is the newest value, as a non-monotonic sum: 1 or 0 for a state, or
	// a number of things.
	State Kind = "state"
	// Balance is a cumulative sum of whole numbers that can decrease, but never
	// below zero.
	Balance Kind = "balance"
)

// MaxLabels is the largest number of labels of a series, not counting RunLabels.
const MaxLabels = 7

// Series describes one metric.
type Series struct {
	// ID is the name of the constant of the series.
	ID string
	// Name is the metric's name in OpenTelemetry.
	Name string
	// Unit is its UCUM unit. It is empty for a gauge without a unit that is no
	// ratio, because Prometheus exporters append "_ratio" for "1".
	Unit string
	// Kind is how values are aggregated.
	Kind Kind
	// Description is the metric's description: what it includes and excludes.
	Description string
	// Labels are the metric's own attributes, at most MaxLabels. A point omits
	// those without a value.
	Labels []string
	// Buckets are the inclusive upper bounds of a histogram.
	Buckets []float64
	// WholeOnly, if not empty, is the only value of the first label whose streams
	// have Buckets. Other streams have a count and a sum, which give a mean.
	WholeOnly string `yaml:"whole_only"`
	// EveryRun reports whether every run id is a label. If false, a run id that
	// was computed for a single trace is a label for steps only; otherwise every
	// request of an LLM application would be a run of its own.
	EveryRun bool `yaml:"every_run"`
	// NoRun reports whether the series has no labels for run, job and rank, only
	// for the host. Distributions of requests or calls for each run and rank would
	// be most of all series.
	NoRun bool `yaml:"no_run"`
	// Momentary reports whether the values are computed for each emission. A
	// stream without a value ends with that emission. Of the labels of a run it
	// has only the id, and with NoRun only those that its description names.
	Momentary bool
	// Next are the names under which clients send the same after version 1.41 of the
	// conventions.
	Next []string
	// Counted reports whether the series before it is a counter of its observations, which is
	// written with each of its streams.
	Counted bool
	// OptIn has the configuration with which alone the series is written. It is
	// empty for a series that is always written.
	OptIn string `yaml:"opt_in"`
}

// RunLabels are the attributes that every series has in addition to its own,
// each where it is known. They distinguish ranks, runs and hosts in a back end
// that drops resource attributes.
var RunLabels = []string{mlattr.RunID, mlattr.JobID, mlattr.RankGlobal, mlattr.HostName}

// Bounds returns the bucket bounds of a histogram's stream with that first label.
func (s *Series) Bounds(first string) []float64 {
	if s.WholeOnly != "" && first != s.WholeOnly {
		return nil
	}
	return s.Buckets
}

// Shown returns how many series Prometheus shows for a stream with that first
// label: for a histogram one for each bound, the infinite bucket, the sum, the
// count, and its counter.
func (s *Series) Shown(first string) int {
	switch {
	case s.Kind != Histogram:
		return 1
	case s.Counted:
		return len(s.Bounds(first)) + 4
	default:
		return len(s.Bounds(first)) + 3
	}
}

// Overflow is the attribute, always true, of a stream that adds up the updates
// beyond a limit.
const Overflow = mlattr.Overflow

// Labels without a span attribute. The table has more, which no code names.
const (
	// Timing is what was timed: host, the program's own thread, or device, the
	// work of the GPU. It is host unless the client's resource says device.
	Timing = "ml.timing"
	// Instance distinguishes the processes of a service where a value belongs to
	// one process.
	Instance = "service.instance.id"
	// ServerPort is the port of a model's server, a whole number.
	ServerPort = "server.port"
)

// Values of ml.cost.source, and the value of gen_ai.token.type for costs of neither
// input nor output.
const (
	CostStated   = "stated"
	CostComputed = "computed"
	CostOther    = "other"
)

// WholeStep is the mlattr.Phase of the duration of a whole step.
const WholeStep = "step"
