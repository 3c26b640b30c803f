package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/otlptranslator"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// writePage writes the documentation of the table as Markdown.
func writePage(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Series of the ml_metrics connector

<!-- Generated from internal/series by "go generate". Do not edit. -->

Every series has ` + "`service.name`" + ` (and ` + "`service.namespace`" + `) on its resource, and these
attributes on its points, where they are known:
` + codeList(series.RunLabels) + `.
A stream with ` + "`" + series.Overflow + "`" + ` = true adds up the updates beyond a limit. Counters and
histograms are cumulative. A gauge holds the newest value, that of the span that ended
last, and an up-down counter the current value.

The Prometheus names are the defaults of the prometheus exporter, with unit and type
suffixes.

| metric | Prometheus | kind | unit | own labels |
|---|---|---|---|---|
`)
	for _, s := range series.All {
		name, err := prometheusName(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | `%s` | %s | %s | %s |\n", s.Name, anchor(s.Name), name, s.Kind, unit(s.Unit), codeList(s.Labels))
	}
	for _, s := range series.All {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Name, s.Description)
		if s.OptIn != "" {
			fmt.Fprintf(&b, "\nOnly with `%s`.\n", s.OptIn)
		}
		switch {
		case s.Momentary && s.NoRun:
			b.WriteString("\nComputed for each emission. A stream without a value ends.\n")
		case s.Momentary:
			b.WriteString("\nComputed for each emission. A stream without a value ends. `ml.run.id` is the only label\nof a run here.\n")
		case s.NoRun:
			b.WriteString("\n`host.name` is the only label of a run here.\n")
		case !s.EveryRun:
			b.WriteString("\nA run id that was computed for a single trace is not a label here.\n")
		}
		if len(s.Buckets) > 0 {
			bounds := make([]string, len(s.Buckets))
			for i, bound := range s.Buckets {
				bounds[i] = strconv.FormatFloat(bound, 'g', -1, 64)
			}
			of := ""
			if s.WholeOnly != "" {
				of = fmt.Sprintf(" where `%s` is `%s`; other streams have only a count and a sum", s.Labels[0], s.WholeOnly)
			}
			fmt.Fprintf(&b, "\nBuckets: %s%s.\n", strings.Join(bounds, ", "), of)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// prometheusName returns the name that the prometheus exporter gives a series.
func prometheusName(s series.Series) (string, error) {
	kinds := map[series.Kind]otlptranslator.MetricType{
		series.Counter:   otlptranslator.MetricTypeMonotonicCounter,
		series.Total:     otlptranslator.MetricTypeMonotonicCounter,
		series.State:     otlptranslator.MetricTypeNonMonotonicCounter,
		series.Balance:   otlptranslator.MetricTypeNonMonotonicCounter,
		series.Gauge:     otlptranslator.MetricTypeGauge,
		series.Histogram: otlptranslator.MetricTypeHistogram,
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: s.Name, Unit: s.Unit, Type: kinds[s.Kind]})
	if err != nil {
		return "", fmt.Errorf("translate %q: %w", s.Name, err)
	}
	return name, nil
}

// anchor returns the fragment that Markdown renderers give a heading.
func anchor(name string) string { return strings.ReplaceAll(name, ".", "") }

func unit(u string) string {
	if u == "" {
		return "none"
	}
	return "`" + u + "`"
}

func codeList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
