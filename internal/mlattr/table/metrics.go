package table

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// Dimension is the kind of quantity of a measure, in the words of the documentation. It
// decides which units can be converted.
type Dimension string

// The dimensions that code asks for.
const (
	// DimensionCount is a number of items.
	DimensionCount Dimension = "count"
	// DimensionTime is a time, in seconds.
	DimensionTime Dimension = "time"
)

// Measure is a quantity that metrics of clients can be about.
type Measure struct {
	// Name is that of the metric that otelcol-ml or the conventions have for the same
	// quantity, and Constant that of its constant in Go, "" if no code asks for it.
	Name, Constant string
	// Unit is the unit, in UCUM, that Meaning.Factor converts into.
	Unit string
	// Dimension decides which other units can be converted.
	Dimension Dimension
	// Description is one sentence.
	Description string
}

// measureTable is measures.yaml.
type measureTable struct {
	Measures []Measure
	Units    map[Dimension]map[string]float64
}

// Measures are all quantities that a metric can be about, in the order of the
// documentation.
var Measures = measures.Measures

// MeasureByName has each of Measures by its name.
var MeasureByName = mlattr.Index(Measures, func(m *Measure) string { return m.Name })

// UnitFactors has, for each dimension, the factors that convert clients' units into
// the measures' own. A unit in braces stands for any item.
var UnitFactors = measures.Units

// Convert returns the factor from a unit to the measure's own unit, and false
// for a unit that the measure cannot have. A unit is never guessed from the
// size of a value.
func (m *Measure) Convert(unit string) (float64, bool) {
	if unit == m.Unit {
		return 1, true
	}
	// An annotation in braces says what is counted and changes nothing.
	if n := len(unit); n > 2 && unit[0] == '{' && unit[n-1] == '}' && m.Dimension == DimensionCount {
		return 1, true
	}
	factor, ok := UnitFactors[m.Dimension][unit]
	return factor, ok
}

// Instrument is how a client means the values of a metric. A format such as
// Prometheus' may have changed a counter into a gauge.
type Instrument uint8

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

// String returns the instrument's word in configuration and documentation.
func (i Instrument) String() string { return wordOf(i, instrumentWords[:]) }

// UnmarshalText reads the instrument's word.
func (i *Instrument) UnmarshalText(text []byte) error { return readWord(i, text, instrumentWords[:]) }
