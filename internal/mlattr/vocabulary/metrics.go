package vocabulary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Meaning is what a received metric is about.
type Meaning struct {
	table.Metric
	// System is the client's vocabulary, and zero for a metric that the user
	// named.
	System System
	// Factor converts the values into the unit of the measure.
	Factor float64
	// Side is the client's Table.Side.
	Side string
	// Replicas are the client's Table.Replicas.
	Replicas []string
	// Repeated is true where another metric repeats this one; see
	// Metric.Repeats.
	Repeated bool
}

// MetricAlias is a metric that the user named.
type MetricAlias struct {
	// Measure is the name of one of Measures.
	Measure string
	// Unit is the unit of the values, whatever the metric states. Empty means
	// the unit that the metric states, or else that of the measure.
	Unit string
	// TokenType is input, output, or empty.
	TokenType string
}

// metricRule is a compiled Metric.
type metricRule struct {
	meaning Meaning
	measure *table.Measure
	// fixed is true where the unit that the metric states is ignored.
	fixed bool
}

// MaxMetricName is the longest name of a metric that is looked up, in bytes.
const MaxMetricName = 128

// MeasureNames returns the names of Measures, sorted.
func MeasureNames() []string { return slices.Sorted(maps.Keys(table.MeasureByName)) }

// UnitsOf returns the units that the values of a measure can have, sorted,
// without annotations in braces. It returns nil for a name that is not in
// Measures.
func UnitsOf(measure string) []string {
	m := table.MeasureByName[measure]
	if m == nil {
		return nil
	}
	names := slices.Collect(maps.Keys(table.UnitFactors[m.Dimension]))
	if m.Unit != "" && !slices.Contains(names, m.Unit) {
		names = append(names, m.Unit)
	}
	slices.Sort(names)
	return names
}

// Check returns an error if the alias names no measure, no unit of the measure
// or no token type.
func (a MetricAlias) Check() error {
	m := table.MeasureByName[a.Measure]
	if m == nil {
		return fmt.Errorf("%q is not a measure", a.Measure)
	}
	if a.Unit != "" {
		if _, ok := m.Convert(a.Unit); !ok {
			return fmt.Errorf("%q is not a unit of %q", a.Unit, a.Measure)
		}
	}
	switch a.TokenType {
	case "", mlattr.TokenTypeInput, mlattr.TokenTypeOutput:
		return nil
	default:
		return fmt.Errorf("%q is not a token type", a.TokenType)
	}
}

// MetricMeaning returns what a metric is about, by its name and its unit, which
// may be empty. known are the clients that the resource, the scope and the name
// identify. A name is found with and without "_total" at its end and "ray_"
// before it, and with any characters in place of its dots, as Prometheus
// changes names. It returns false for a metric that no vocabulary and no user
// has named, and for a unit that cannot be converted.
func (r *Reader) MetricMeaning(known System, name, unit string) (Meaning, bool) {
	var buffer [MaxMetricName]byte
	key, ok := metricKey(buffer[:0], name)
	if !ok {
		return Meaning{}, false
	}
	rules := r.metrics[string(key)]
	for i := range rules {
		rule := &rules[i]
		if rule.meaning.Everyday && rule.meaning.System&known == 0 {
			continue
		}
		meaning := rule.meaning
		if unit != "" && !rule.fixed {
			if meaning.Factor, ok = rule.measure.Convert(unit); !ok {
				return Meaning{}, false
			}
		}
		return meaning, true
	}
	return Meaning{}, false
}

// ValidMetricName reports whether a name can be looked up: it has a letter or
// digit and at most MaxMetricName bytes.
func ValidMetricName(name string) bool {
	_, ok := metricKey(nil, name)
	return ok
}

// metricKey appends the form that all spellings of a metric's name have in
// common.
func metricKey(key []byte, name string) ([]byte, bool) {
	if len(name) > MaxMetricName {
		return nil, false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			key = append(key, c)
		case len(key) > 0 && key[len(key)-1] != '_':
			key = append(key, '_')
		}
	}
	if n := len(key); n > 0 && key[n-1] == '_' {
		key = key[:n-1]
	}
	const ray, total = "ray_", "_total"
	if len(key) > len(ray) && string(key[:len(ray)]) == ray {
		key = key[len(ray):]
	}
	if n := len(key) - len(total); n > 0 && string(key[n:]) == total {
		key = key[:n]
	}
	return key, len(key) > 0
}

// compileMetrics fills r.metrics. The user's metrics go first.
func (r *Reader) compileMetrics(aliases map[string]MetricAlias) error {
	r.metrics = make(map[string][]metricRule)
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		alias := aliases[name]
		if err := alias.Check(); err != nil {
			return fmt.Errorf("metric %q: %w", name, err)
		}
		metric := table.Metric{Source: name, Measure: alias.Measure, Unit: alias.Unit, TokenType: alias.TokenType}
		if said := unitOfName(name); metric.Unit == "" && said != "" {
			if _, ok := table.MeasureByName[alias.Measure].Convert(said); ok {
				metric.Unit = said
			}
		}
		err := r.addMetric(metric, new(Vocabulary), alias.Unit != "")
		if err != nil {
			return err
		}
	}
	for _, client := range r.tables {
		for _, metric := range client.Metrics {
			if err := r.addMetric(metric, &client, false); err != nil {
				return err
			}
		}
		r.markRepeated(client)
	}
	return nil
}

// markRepeated sets Meaning.Repeated of the table's metrics.
func (r *Reader) markRepeated(client Vocabulary) {
	for _, metric := range client.Metrics {
		for _, other := range metric.Repeats {
			key, _ := metricKey(nil, other)
			rules := r.metrics[string(key)]
			own := func(r metricRule) bool { return r.meaning.System == client.System }
			elsewhere := !slices.ContainsFunc(rules, own)
			for i := range rules {
				rules[i].meaning.Repeated = rules[i].meaning.Repeated || elsewhere || own(rules[i])
			}
		}
	}
}

func (r *Reader) addMetric(metric table.Metric, of *Vocabulary, fixed bool) error {
	measure := table.MeasureByName[metric.Measure]
	if measure == nil {
		return fmt.Errorf("metric %q: %q is not a measure", metric.Source, metric.Measure)
	}
	if metric.Unit == "" {
		metric.Unit = measure.Unit
	}
	factor, ok := measure.Convert(metric.Unit)
	if !ok {
		return fmt.Errorf("metric %q: %q is not a unit of %q", metric.Source, metric.Unit, metric.Measure)
	}
	key, ok := metricKey(nil, metric.Source)
	if !ok {
		return fmt.Errorf("metric %q: must have a letter or digit and at most %d bytes", metric.Source, MaxMetricName)
	}
	r.metrics[string(key)] = append(r.metrics[string(key)], metricRule{
		meaning: Meaning{Metric: metric, System: of.System, Side: of.Side, Replicas: of.Replicas, Factor: factor},
		measure: measure, fixed: fixed,
	})
	return nil
}

// nameUnits are the units that the last word of a name can state. Ambiguous
// words, such as min, are not in it.
var nameUnits = map[string]string{
	"seconds": "s", "secs": "s", "sec": "s", "s": "s",
	"milliseconds": "ms", "millis": "ms", "ms": "ms",
	"microseconds": "us", "micros": "us", "us": "us",
	"nanoseconds": "ns", "nanos": "ns", "ns": "ns",
	"percent": "%",
}

// unitOfName returns the unit at the end of a name such as acme.wait_ms or
// acme.waitMs, or "".
func unitOfName(name string) string {
	if rest, camel := strings.CutSuffix(name, "Ms"); camel && rest != "" && rest[len(rest)-1] >= 'a' && rest[len(rest)-1] <= 'z' {
		return "ms"
	}
	key, ok := metricKey(nil, name)
	if !ok {
		return ""
	}
	text := string(key)
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return ""
	}
	return nameUnits[text[at+1:]]
}
