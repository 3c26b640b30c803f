package mlmetricsconnector

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxInstanceLabel is the longest name of Config.InstanceLabel, in bytes.
const maxInstanceLabel = 128

var instanceLabels = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*$`)

// reservedLabels are those that Prometheus and its exporters write.
var reservedLabels = []string{"job", "instance", "le", "quantile", "service_name", "service_namespace"}

// checkInstanceLabel returns an error that says what Config.InstanceLabel must be.
// Names are compared as Prometheus writes them.
func checkInstanceLabel(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > maxInstanceLabel || !instanceLabels.MatchString(name) {
		return fmt.Errorf(`must be empty or a letter followed by letters, digits, "_" and ".", at most %d`, maxInstanceLabel)
	}
	shown := shownName(name)
	taken := slices.Contains(reservedLabels, shown) || strings.HasPrefix(shown, "ml_") || strings.HasPrefix(shown, "otel_") ||
		slices.ContainsFunc(series.RunLabels, func(label string) bool { return shownName(label) == shown })
	for i := range series.All {
		taken = taken || slices.ContainsFunc(series.All[i].Labels, func(label string) bool { return shownName(label) == shown })
	}
	if taken {
		return errors.New("must not be a label that series have, nor begin with ml or otel")
	}
	return nil
}

// shownName returns the name of a label in Prometheus.
func shownName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// writerOf returns the attribute that tells this collector's series from those of
// others; its name is empty if the configuration asks for none. It returns an error
// if the collector has no service.instance.id.
func writerOf(set component.TelemetrySettings, cfg *Config) (streams.Label, error) {
	if cfg.InstanceLabel == "" {
		return streams.Label{}, nil
	}
	if id, known := set.Resource.Attributes().Get(series.Instance); known {
		if value, ok := mlattr.ReadText(id); ok {
			return streams.Label{Name: cfg.InstanceLabel, Value: value}, nil
		}
	}
	return streams.Label{}, fmt.Errorf(`"instance_label" is %q, but the collector has no %s: set it under service::telemetry::resource`, cfg.InstanceLabel, series.Instance)
}
