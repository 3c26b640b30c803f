package mlenrichprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
)

// maxResourceLabels bounds the labels that every metric point may gain.
const maxResourceLabels = 32

// maxTraining limits the entries, with all of which each resource is compared.
const maxTraining = 256

// Config is the configuration of ml_enrich. The defaults are right for the
// clients that it knows: "ml_enrich:" alone is a complete configuration.
type Config struct {
	// Vocabularies lists the clients whose names are understood, by their
	// names in docs/vocabulary.md. The default is all of them. An empty list
	// leaves the canonical names, the launchers' run ids, the aliases and the
	// metrics only.
	Vocabularies []string `mapstructure:"vocabularies"`

	// Aliases maps the keys of your own attributes to the canonical attributes
	// that are added beside them, on resources, spans, metric points and log
	// records. Aliases are tried before the vocabularies. The default is none.
	Aliases map[string]string `mapstructure:"aliases"`

	// Metrics maps the names of your own metrics to what they measure, so that
	// rates are derived from them. A name matches with or without "_total", and
	// with dots or underscores. Metrics are tried before the vocabularies. The
	// metrics themselves stay as they are. The default is none.
	Metrics map[string]vocabulary.MetricAlias `mapstructure:"metrics"`

	// ResourceLabels lists resource attributes that are copied to every metric
	// point of the resource, so that they become labels in Prometheus. A
	// point's own attribute of that name wins. The default is none. At most 32
	// are allowed: each multiplies the series that a metrics back end stores.
	ResourceLabels []string `mapstructure:"resource_labels"`

	// HashKey turns user names into ml.user, the first 16 hexadecimal digits of
	// an HMAC-SHA256 with this key. A user has the same value wherever the key
	// is the same, and without the key the name cannot be found by trying
	// names. The default is empty: there is no ml.user. Use 32 random bytes
	// from a secret store.
	HashKey configopaque.String `mapstructure:"hash_key"`

	// RouteByRun lets a load balancer send all spans, metrics and log records of a
	// run to one gateway. It gives every resource ml.route, which is the run, or
	// else service.name or host.name. A resource whose spans, points or records
	// belong to several runs is split into one resource a run, and each gets
	// ml.run.id, unless it names a run. What has one route is sent to the next
	// component in one call, with the route as the client metadata ml-route. The
	// default is false: resources and calls stay as they came.
	RouteByRun bool `mapstructure:"route_by_run"`

	// Training describes the optimizer steps of training jobs, which telemetry
	// does not. The first entry that matches a process counts. The default is
	// none. At most 256 are allowed.
	Training rate.Training `mapstructure:"training"`
}

// checkMetric reports everything that is wrong with an entry of metrics.
func checkMetric(name string, m vocabulary.MetricAlias) []error {
	types := []string{mlattr.TokenTypeInput, mlattr.TokenTypeOutput}
	errs := []error{
		shared.Check(vocabulary.ValidMetricName(name),
			`"metrics": the key %q is no metric's name, must have a letter or digit and at most %d bytes`, name, vocabulary.MaxMetricName),
		shared.Check(m.TokenType == "" || slices.Contains(types, m.TokenType),
			`"metrics": %q: "token_type" is %q, must be one of %s`, name, m.TokenType, quoted(types)),
	}
	if !slices.Contains(vocabulary.MeasureNames(), m.Measure) {
		errs = append(errs, fmt.Errorf(`"metrics": %q: "as" is %q, must be one of %s`, name, m.Measure, quoted(vocabulary.MeasureNames())))
	} else if _, ok := table.MeasureByName[m.Measure].Convert(m.Unit); !ok && m.Unit != "" {
		errs = append(errs, fmt.Errorf(`"metrics": %q: "unit" is %q, must be one of %s`, name, m.Unit, quoted(vocabulary.UnitsOf(m.Measure))))
	}
	return errs
}

// Validate reports everything that is wrong with the configuration. The entries of training
// validate themselves.
func (c *Config) Validate() error {
	labels, training := len(c.ResourceLabels), len(c.Training)
	errs := []error{
		shared.Check(labels <= maxResourceLabels, `"resource_labels": has %d entries, must have at most %d`, labels, maxResourceLabels),
		shared.Check(training <= maxTraining, `"training": has %d entries, must have at most %d`, training, maxTraining),
	}
	for _, name := range c.Vocabularies {
		_, ok := vocabulary.ParseSystem(name)
		errs = append(errs, shared.Check(ok, `"vocabularies": unknown vocabulary %q, must be one of %s`, name, quoted(vocabulary.SystemNames())))
	}
	allowed := vocabulary.Aliasable()
	for _, source := range sortedKeys(c.Aliases) {
		canonical := c.Aliases[source]
		switch {
		case strings.TrimSpace(source) == "":
			errs = append(errs, fmt.Errorf(`"aliases": the key for %q is empty, must be an attribute's name`, canonical))
		case !slices.Contains(allowed, canonical):
			errs = append(errs, fmt.Errorf(`"aliases": %q means %q, must be one of %s`, source, canonical, quoted(allowed)))
		case source == canonical:
			errs = append(errs, fmt.Errorf(`"aliases": %q means itself, must mean another attribute`, source))
		}
	}
	for _, name := range sortedKeys(c.Metrics) {
		errs = append(errs, checkMetric(name, c.Metrics[name])...)
	}
	seen := make(map[string]bool)
	for _, label := range c.ResourceLabels {
		errs = append(errs,
			shared.Check(strings.TrimSpace(label) != "", `"resource_labels": %q is empty, must be an attribute's name`, label),
			shared.Check(!seen[label], `"resource_labels": %q is listed twice, must be listed once`, label))
		seen[label] = true
	}
	return errors.Join(errs...)
}

// reader compiles the configured vocabulary, or returns the one that all components
// share.
func (c *Config) reader() *vocabulary.Reader {
	var systems vocabulary.System
	for _, name := range c.Vocabularies {
		system, _ := vocabulary.ParseSystem(name)
		systems |= system
	}
	if systems == vocabulary.AllSystems && len(c.Aliases) == 0 && len(c.Metrics) == 0 {
		return vocabulary.Default()
	}
	return vocabulary.NewReader(vocabulary.Options{Systems: systems, Aliases: c.Aliases, Metrics: c.Metrics})
}

func quoted(names []string) string {
	return strings.Join(mlattr.Mapped(names, strconv.Quote), ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
