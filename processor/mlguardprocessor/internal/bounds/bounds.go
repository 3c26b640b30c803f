// Package bounds cuts values that exceed a limit of nesting, size or number.
//
// It walks a request once, changes it in place, and allocates only where it
// cuts. Config.MaxDepth limits the recursion over a value.
package bounds

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Limit identifies a limit.
type Limit int

// The limits, in the order of their names.
const (
	Attributes Limit = iota
	Depth
	Elements
	Events
	ItemBytes
	Items
	Links
	NameBytes
	ValueBytes
	Limits // the number of limits
)

// String returns the limit's key in the configuration without "max_".
func (l Limit) String() string {
	return [Limits]string{"attributes", "depth", "elements", "events", "item_bytes", "items", "links", "name_bytes", "value_bytes"}[l]
}

// Counts is the number of cuts of one call, by Limit.
type Counts [Limits]int64

// Filter applies one Config. It is safe for concurrent use.
type Filter struct{ limits Config }

// New returns a Filter.
func New(c *Config) *Filter { return &Filter{limits: *c} }

// cutter is the state of one call.
type cutter struct {
	*Config
	counts Counts
	// items is the number of further items that the request may have, bytes the
	// remaining size of the current item's attributes.
	items, bytes int
}

func (f *Filter) cutter() cutter { return cutter{Config: &f.limits, items: f.limits.MaxItems} }

// Traces changes td in place.
func (f *Filter) Traces(td ptrace.Traces) Counts {
	c := f.cutter()
	for _, rs := range items(&c, td.ResourceSpans()).All() {
		cutItem(&c, rs.Resource())
		cutName(&c, rs.SchemaUrl(), rs.SetSchemaUrl)
		for _, ss := range items(&c, rs.ScopeSpans()).All() {
			c.scope(ss.Scope())
			cutName(&c, ss.SchemaUrl(), ss.SetSchemaUrl)
			for _, span := range items(&c, ss.Spans()).All() {
				c.span(span)
			}
		}
	}
	return c.counts
}

func (c *cutter) span(span ptrace.Span) {
	cutItem(c, span)
	cutName(c, span.Name(), span.SetName)
	c.traceState(span.TraceState())
	if message := span.Status().Message(); len(message) > c.MaxValueBytes {
		span.Status().SetMessage(c.shorten(message, c.MaxValueBytes, ValueBytes))
	}
	if n := admit(c, span.Events(), c.MaxEvents, Events); n > 0 {
		span.SetDroppedEventsCount(span.DroppedEventsCount() + n)
	}
	for _, event := range span.Events().All() {
		cutItem(c, event)
		cutName(c, event.Name(), event.SetName)
	}
	if n := admit(c, span.Links(), c.MaxLinks, Links); n > 0 {
		span.SetDroppedLinksCount(span.DroppedLinksCount() + n)
	}
	for _, link := range span.Links().All() {
		cutItem(c, link)
		c.traceState(link.TraceState())
	}
}

// Logs changes ld in place.
func (f *Filter) Logs(ld plog.Logs) Counts {
	c := f.cutter()
	for _, rl := range items(&c, ld.ResourceLogs()).All() {
		cutItem(&c, rl.Resource())
		cutName(&c, rl.SchemaUrl(), rl.SetSchemaUrl)
		for _, sl := range items(&c, rl.ScopeLogs()).All() {
			c.scope(sl.Scope())
			cutName(&c, sl.SchemaUrl(), sl.SetSchemaUrl)
			for _, record := range items(&c, sl.LogRecords()).All() {
				c.bytes = c.MaxItemBytes // of the body and the attributes together
				c.value(record.Body(), 0)
				if n := c.entries(record.Attributes(), c.MaxAttributes, Attributes, 0); n > 0 {
					record.SetDroppedAttributesCount(record.DroppedAttributesCount() + n)
				}
				cutName(&c, record.SeverityText(), record.SetSeverityText)
				cutName(&c, record.EventName(), record.SetEventName)
			}
		}
	}
	return c.counts
}

// Metrics changes md in place.
func (f *Filter) Metrics(md pmetric.Metrics) Counts {
	c := f.cutter()
	for _, rm := range items(&c, md.ResourceMetrics()).All() {
		cutItem(&c, rm.Resource())
		cutName(&c, rm.SchemaUrl(), rm.SetSchemaUrl)
		for _, sm := range items(&c, rm.ScopeMetrics()).All() {
			c.scope(sm.Scope())
			cutName(&c, sm.SchemaUrl(), sm.SetSchemaUrl)
			for _, metric := range items(&c, sm.Metrics()).All() {
				c.metric(metric)
			}
		}
	}
	return c.counts
}

func (c *cutter) metric(metric pmetric.Metric) {
	c.attributes(metric.Metadata())
	cutName(c, metric.Name(), metric.SetName)
	cutName(c, metric.Unit(), metric.SetUnit)
	if text := metric.Description(); len(text) > c.MaxValueBytes {
		metric.SetDescription(c.shorten(text, c.MaxValueBytes, ValueBytes))
	}
	switch metric.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		items(c, mlattr.NumberPoints(metric))
	case pmetric.MetricTypeHistogram:
		for _, point := range items(c, metric.Histogram().DataPoints()).All() {
			// Fewer buckets would not add up to the count.
			if max(point.BucketCounts().Len(), point.ExplicitBounds().Len()) > c.MaxElements {
				c.counts[Elements]++
				point.BucketCounts().FromRaw(nil)
				point.ExplicitBounds().FromRaw(nil)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		items(c, metric.ExponentialHistogram().DataPoints()).RemoveIf(func(point pmetric.ExponentialHistogramDataPoint) bool {
			// Without buckets, it would state that all its values are zero.
			many := max(point.Positive().BucketCounts().Len(), point.Negative().BucketCounts().Len()) > c.MaxElements
			if many {
				c.counts[Elements]++
			}
			return many
		})
	case pmetric.MetricTypeSummary:
		for _, point := range items(c, metric.Summary().DataPoints()).All() {
			if quantiles := point.QuantileValues(); quantiles.Len() > c.MaxElements {
				c.counts[Elements]++
				keepFirst(quantiles, c.MaxElements)
			}
		}
	}
	for point := range mlattr.Points(metric) {
		c.attributes(point.Attributes)
		admit(c, point.Exemplars, c.MaxElements, Elements)
		for _, exemplar := range point.Exemplars.All() {
			c.attributes(exemplar.FilteredAttributes())
		}
	}
}

func (c *cutter) scope(scope pcommon.InstrumentationScope) {
	cutItem(c, scope)
	cutName(c, scope.Name(), scope.SetName)
	cutName(c, scope.Version(), scope.SetVersion)
}
