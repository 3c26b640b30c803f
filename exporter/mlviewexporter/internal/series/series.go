// Package series has the series that the page reads, and their streams with rates and means.
package series

// Series identifies a metric that the page reads. Its values are the constants of
// generated_series.go.
type Series uint8

// Subject is what the streams of a series belong to.
type Subject string

// The values of Subject.
const (
	OfRun       Subject = "run"
	OfModel     Subject = "model"
	OfService   Subject = "service"
	OfPool      Subject = "pool"
	OfProblem   Subject = "problem"
	OfGPU       Subject = "gpu"
	OfHost      Subject = "host"
	OfCollector Subject = "collector"
)

// kind is what is computed of the values of a series.
type kind string

const (
	// counter has a rate over rateWindow. Without a kind the last value counts.
	counter kind = "counter"
	// histogram has a mean over meanWindow.
	histogram kind = "histogram"
)

// definition describes a series.
type definition struct {
	// Constant is the name of its constant.
	Constant, Name string
	Subject        Subject
	Kind           kind
	// Own are the attributes of the series that tell its streams apart, besides
	// those that Labels has fields for.
	Own []string
	// Only limits the series to the points whose first own attribute has this
	// value.
	Only string
	// Whole reports whether ml_metrics computes the series for a whole run.
	Whole bool
	// Derived reports whether ml_metrics computes the series.
	Derived bool `yaml:"-"`
}

// ByName has the series by the name of their metric.
var ByName = func() map[string]Series {
	byName := make(map[string]Series, Count)
	for i, d := range definitions[1:] {
		byName[d.Name] = Series(i + 1) // #nosec G115 -- fewer than Count
	}
	return byName
}()

// MaxOwn is the largest number of own labels of a series.
const MaxOwn = 8

// Own returns the attributes that are Labels.Own, in their order. The caller
// must not change it.
func (s Series) Own() []string { return definitions[s].Own }

// Wants reports whether the page reads a point whose first own attribute has
// this value.
func (s Series) Wants(first string) bool {
	only := definitions[s].Only
	return only == "" || only == first
}

// Subject returns what the streams of the series belong to.
func (s Series) Subject() Subject { return definitions[s].Subject }

// Counts reports whether the series is a counter.
func (s Series) Counts() bool { return definitions[s].Kind == counter }

// Grows reports whether the series is a counter or a histogram.
func (s Series) Grows() bool { return definitions[s].Kind != "" }

// Derived reports whether ml_metrics computes the series.
func (s Series) Derived() bool { return definitions[s].Derived }

// OfWholeRun reports whether ml_metrics computes the series for a whole run, which
// has few streams of it.
func (s Series) OfWholeRun() bool { return definitions[s].Whole }

// OfWorkers reports whether the series is a gauge of the workers of a pool in one process.
func (s Series) OfWorkers() bool { return s == PoolSize || s == PoolBusy || s == PoolIdle }

// OfHardware reports whether the series is about a GPU or a host. Its streams
// belong to no service.
func (s Series) OfHardware() bool {
	of := definitions[s].Subject
	return of == OfGPU || of == OfHost
}
