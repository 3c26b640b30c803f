package vocabulary

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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

// MetricAlias is what one metric of the user's own measures, as the configuration of
// ml_enrich states it.
type MetricAlias struct {
	// Measure is what the metric measures, such as ml.tokens, by the names in
	// docs/vocabulary.md, which says what is derived from each. It is required.
	Measure string `mapstructure:"as"`

	// Unit is the unit of its values, such as ms. It goes before the unit that
	// the metric reports. The default is the reported unit, or else the unit of
	// the measure.
	Unit string `mapstructure:"unit"`

	// TokenType is which tokens a metric of tokens counts: input or output. The
	// default is empty: both, or gen_ai.token.type of the points.
	TokenType string `mapstructure:"token_type"`
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
// without annotations in braces. The measure must be one of MeasureNames.
func UnitsOf(measure string) []string {
	m := table.MeasureByName[measure]
	names := slices.Collect(maps.Keys(table.UnitFactors[m.Dimension]))
	if m.Unit != "" && !slices.Contains(names, m.Unit) {
		names = append(names, m.Unit)
	}
	slices.Sort(names)
	return names
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
func (r *Reader) compileMetrics(aliases map[string]MetricAlias) {
	r.metrics = make(map[string][]metricRule)
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		alias := aliases[name]
		metric := table.Metric{Source: name, Measure: alias.Measure, Unit: alias.Unit, TokenType: alias.TokenType}
		if said := unitOfName(name); metric.Unit == "" && said != "" {
			if _, ok := table.MeasureByName[alias.Measure].Convert(said); ok {
				metric.Unit = said
			}
		}
		r.addMetric(metric, new(Vocabulary), alias.Unit != "")
	}
	for _, client := range r.tables {
		for _, metric := range client.Metrics {
			r.addMetric(metric, &client, false)
		}
		r.markRepeated(client)
	}
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

func (r *Reader) addMetric(metric table.Metric, of *Vocabulary, fixed bool) {
	measure := table.MeasureByName[metric.Measure]
	metric.Unit = cmp.Or(metric.Unit, measure.Unit)
	factor, _ := measure.Convert(metric.Unit)
	key, _ := metricKey(nil, metric.Source)
	r.metrics[string(key)] = append(r.metrics[string(key)], metricRule{
		meaning: Meaning{Metric: metric, System: of.System, Side: of.Side, Replicas: of.Replicas, Factor: factor},
		measure: measure, fixed: fixed,
	})
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
