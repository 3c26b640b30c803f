package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// own are the beginnings of the names that the registry must have.
var own = []string{"ml.", "nvidia.", "nccl.", "pytorch.", "repro.artifact"}

// clients is the metric whose points have the client's own attributes, whatever they are.
const clients = "ml.token.throughput"

// other stands for values beyond a limit of ml_guard.
const other = "_OTHER"

// IsOwn reports whether a name is one of this project.
func IsOwn(name string) bool {
	return slices.ContainsFunc(own, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
}

// Check holds telemetry against a registry.
type Check struct {
	*Registry

	// Findings say what the registry does not have, or has otherwise, and how often.
	Findings map[string]int
	// Seen are the names of the registry that there was something of.
	Seen map[string]bool
}

// NewCheck returns a Check that has seen nothing.
func NewCheck(r *Registry) *Check {
	return &Check{Registry: r, Findings: make(map[string]int), Seen: make(map[string]bool)}
}

func (c *Check) find(format string, args ...any) { c.Findings[fmt.Sprintf(format, args...)]++ }

// Traces checks the attributes of spans.
func (c *Check) Traces(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		c.resource(rs.Resource())
		for _, ss := range rs.ScopeSpans().All() {
			c.attributes("", ss.Scope().Attributes())
			for _, span := range ss.Spans().All() {
				c.attributes("", span.Attributes())
				for _, event := range span.Events().All() {
					c.attributes("", event.Attributes())
				}
				for _, link := range span.Links().All() {
					c.attributes("", link.Attributes())
				}
			}
		}
	}
}

// Logs checks the attributes of log records, and of the events that the registry has.
func (c *Check) Logs(ld plog.Logs) {
	for _, rl := range ld.ResourceLogs().All() {
		c.resource(rl.Resource())
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				name := record.EventName()
				if _, known := c.Events[name]; known {
					c.Seen["event."+name] = true
				} else if IsOwn(name) {
					c.find("the event %s is missing", name)
				}
				c.attributes("event."+name, record.Attributes())
			}
		}
	}
}

// Metrics checks name, unit and instrument of metrics, and the attributes of their points.
func (c *Check) Metrics(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		c.resource(rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				c.metric(m)
			}
		}
	}
}

func (c *Check) metric(m pmetric.Metric) {
	instrument, points := read(m)
	known, ok := c.Registry.Metrics[m.Name()]
	switch {
	case ok:
		c.Seen["metric."+m.Name()] = true
		if known.Unit != m.Unit() {
			c.find("%s has the unit %q, in the registry %q", m.Name(), m.Unit(), known.Unit)
		}
		if known.Instrument != instrument {
			c.find("%s is a %s, in the registry a %s", m.Name(), instrument, known.Instrument)
		}
	case IsOwn(m.Name()):
		c.find("the metric %s is missing", m.Name())
	}
	for _, attrs := range points {
		c.attributes("metric."+m.Name(), attrs)
	}
}

// read returns the instrument that a metric is of, and the attributes of its points.
func read(m pmetric.Metric) (instrument string, points []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			points = append(points, p.Attributes())
		}
		return "gauge", points
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			points = append(points, p.Attributes())
		}
		if m.Sum().IsMonotonic() {
			return "counter", points
		}
		return "updowncounter", points
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			points = append(points, p.Attributes())
		}
		return "histogram", points
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			points = append(points, p.Attributes())
		}
		return "histogram", points
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			points = append(points, p.Attributes())
		}
		return "summary", points
	default:
		return "metric without points", nil
	}
}

// resource checks the attributes of a resource. A number may be a text there: clients take them
// from OTEL_RESOURCE_ATTRIBUTES, which has texts only, and what a client sends is not changed.
func (c *Check) resource(of pcommon.Resource) {
	attrs := pcommon.NewMap()
	of.Attributes().CopyTo(attrs)
	attrs.RemoveIf(func(key string, v pcommon.Value) bool {
		known, ok := c.Find(key)
		_, err := strconv.ParseFloat(v.Str(), 64)
		return ok && v.Type() == pcommon.ValueTypeStr && (known.Type == "int" || known.Type == "double") && err == nil
	})
	c.attributes("", attrs)
}

// attributes checks the attributes of this project, which are of a signal or of none.
func (c *Check) attributes(signal string, attrs pcommon.Map) {
	for key, value := range attrs.All() {
		known, ok := c.Find(key)
		if !IsOwn(key) {
			continue
		}
		if !ok {
			c.find("the attribute %s is missing%s", key, on(signal))
			continue
		}
		c.Seen[key] = true
		if name, isMetric := strings.CutPrefix(signal, "metric."); isMetric {
			if of, known := c.Registry.Metrics[name]; known && name != clients && !slices.Contains(of.Attributes, key) {
				c.find("%s has no %s in the registry", name, key)
			}
		}
		if len(known.Members) > 0 && value.Str() != other && !slices.Contains(known.Members, value.AsString()) {
			c.find("%s has no value %q in the registry", key, value.AsString())
		}
		if is := typeOf(value); is != known.Type && known.Type != "any" && (is != "[]" || !strings.HasSuffix(known.Type, "[]")) {
			c.find("%s is a %s%s, in the registry a %s", key, is, on(signal), known.Type)
		}
	}
}

func on(signal string) string {
	if signal == "" {
		return ""
	}
	return " (" + signal + ")"
}

// typeOf returns the type of a value in the words of the conventions. An empty list is one of
// any type.
func typeOf(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return "string"
	case pcommon.ValueTypeInt:
		return "int"
	case pcommon.ValueTypeDouble:
		return "double"
	case pcommon.ValueTypeBool:
		return "boolean"
	case pcommon.ValueTypeSlice:
		if v.Slice().Len() == 0 {
			return "[]"
		}
		return typeOf(v.Slice().At(0)) + "[]"
	default:
		return "any"
	}
}
