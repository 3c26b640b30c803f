package table

// Instrument is how a client means the values of a metric. A format such as
// Prometheus' may have changed a counter into a gauge.
type Instrument uint8

const (
	// Counter grows until its program restarts.
	Counter Instrument = iota + 1
	// Gauge is a current value.
	Gauge
	// Histogram has one value for each request, operation or step.
	Histogram
)

// Metric is a metric of a client and what it is about.
type Metric struct {
	// Source is the client's name of the metric, without "_total".
	Source string
	// Measure is the name of one of Measures.
	Measure string
	// Instrument is how the client means its values.
	Instrument Instrument
	// Unit is the unit of the values where the metric itself has none. Empty
	// means the unit of the measure.
	Unit string
	// TokenType is the type of the tokens that are counted. Empty means both,
	// or the type that the points state.
	TokenType string `yaml:"token_type"`
	// PerDevice is true where each GPU reports its own share.
	PerDevice bool `yaml:"per_device"`
	// OfJob is true where each rank reports the number of all ranks together, so
	// that the numbers of several ranks must not be added.
	OfJob bool `yaml:"of_job"`
	// Part is the part of a GPU's memory that a metric of MeasureGPUMemory is
	// about. Empty means the part in the points' attribute kind.
	Part string
	// Repeats are the client's other metrics that count the same items, as its
	// table spells them, or that of another client if its own has none of that
	// name. In a sum, use this metric only where none of them is.
	Repeats []string
	// Everyday is true for a name that any program may use. It is understood
	// only where the client is recognised otherwise.
	Everyday bool
}

// instruments are the words of configuration and documentation.
var instruments = [...]string{Counter: "counter", Gauge: "gauge", Histogram: "histogram"}

// String returns the instrument's word in configuration and documentation.
func (i Instrument) String() string { return wordOf(i, instruments[:]) }

// UnmarshalText reads the instrument's word.
func (i *Instrument) UnmarshalText(text []byte) error { return readWord(i, text, instruments[:]) }
