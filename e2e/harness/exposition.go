package harness

import (
	"context"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scrape reads a Prometheus endpoint, given as host:port, and returns its
// series. A histogram or summary gives its "_count" and "_sum".
func Scrape(ctx context.Context, address string) ([]Sample, error) {
	body, err := fetch(ctx, "http://"+address+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", address, err)
	}
	var samples []Sample
	for _, name := range sortedKeys(families) {
		for _, metric := range families[name].GetMetric() {
			samples = append(samples, samplesOf(name, metric)...)
		}
	}
	return samples, nil
}

func samplesOf(name string, metric *dto.Metric) []Sample {
	sample := func(suffix string, value float64) Sample {
		labels := Labels{"__name__": name + suffix}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		return Sample{Labels: labels, Value: value}
	}
	switch {
	case metric.Counter != nil:
		return []Sample{sample("", metric.Counter.GetValue())}
	case metric.Gauge != nil:
		return []Sample{sample("", metric.Gauge.GetValue())}
	case metric.Untyped != nil:
		return []Sample{sample("", metric.Untyped.GetValue())}
	case metric.Histogram != nil:
		return []Sample{
			sample("_count", float64(metric.Histogram.GetSampleCount())),
			sample("_sum", metric.Histogram.GetSampleSum()),
		}
	case metric.Summary != nil:
		return []Sample{
			sample("_count", float64(metric.Summary.GetSampleCount())),
			sample("_sum", metric.Summary.GetSampleSum()),
		}
	}
	return nil
}

// Select returns the samples of one metric whose labels include all of labels.
func Select(samples []Sample, name string, labels Labels) []Sample {
	var selected []Sample
	for _, sample := range samples {
		if sample.Labels["__name__"] == name && sample.Labels.includes(labels) {
			selected = append(selected, sample)
		}
	}
	return selected
}

func (l Labels) includes(others Labels) bool {
	for name, value := range others {
		if l[name] != value {
			return false
		}
	}
	return true
}
