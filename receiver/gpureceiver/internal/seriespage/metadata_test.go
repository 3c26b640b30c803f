package seriespage

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/otlptranslator"
	"go.yaml.in/yaml/v3"
)

// metric is one metric that metadata.yaml declares.
type metric struct {
	name, prometheus string
	// labels are the attributes of its points as Prometheus spells them,
	// without those that every metric has.
	labels []string
}

// common are the attributes of every point about a GPU.
var common = []string{"hw.id", "host.name", "nvidia.gpu.index", "hw.parent", "nvidia.gpu.source"}

// parse reads the metrics of a metadata.yaml, in the order of their names.
func parse(text []byte) ([]metric, error) {
	var metadata struct {
		Attributes map[string]struct {
			NameOverride string `yaml:"name_override"`
		} `yaml:"attributes"`
		Metrics map[string]struct {
			Attributes []string  `yaml:"attributes"`
			Unit       string    `yaml:"unit"`
			Gauge      *struct{} `yaml:"gauge"`
			Sum        *struct {
				Monotonic bool `yaml:"monotonic"`
			} `yaml:"sum"`
		} `yaml:"metrics"`
	}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return nil, err
	}
	if len(metadata.Metrics) == 0 {
		return nil, errors.New("it declares no metric")
	}
	names := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	labels := otlptranslator.LabelNamer{}
	var metrics []metric
	for _, name := range slices.Sorted(maps.Keys(metadata.Metrics)) {
		declared := metadata.Metrics[name]
		m := metric{name: name}
		var kind otlptranslator.MetricType
		switch {
		case declared.Gauge != nil:
			kind = otlptranslator.MetricTypeGauge
		case declared.Sum != nil && declared.Sum.Monotonic:
			kind = otlptranslator.MetricTypeMonotonicCounter
		case declared.Sum != nil:
			kind = otlptranslator.MetricTypeNonMonotonicCounter
		default:
			return nil, fmt.Errorf("%q is neither gauge nor sum", name)
		}
		var err error
		if m.prometheus, err = names.Build(otlptranslator.Metric{Name: name, Unit: declared.Unit, Type: kind}); err != nil {
			return nil, fmt.Errorf("translate %q: %w", name, err)
		}
		for _, attribute := range declared.Attributes {
			if slices.Contains(common, attribute) {
				continue
			}
			if override := metadata.Attributes[attribute].NameOverride; override != "" {
				attribute = override
			}
			label, err := labels.Build(attribute)
			if err != nil {
				return nil, fmt.Errorf("translate %q of %q: %w", attribute, name, err)
			}
			m.labels = append(m.labels, label)
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}
