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

// item begins an item, whose attributes have their own size limit.
func (c *cutter) item() { c.bytes = c.MaxItemBytes }

// Traces changes td in place.
func (f *Filter) Traces(td ptrace.Traces) Counts {
	c := f.cutter()
	admit(&c, td.ResourceSpans(), ptrace.NewResourceSpansSlice, c.MaxItems, Items)
	for _, rs := range td.ResourceSpans().All() {
		cutName(&c, rs.SchemaUrl(), rs.SetSchemaUrl)
		c.resource(rs.Resource())
		admit(&c, rs.ScopeSpans(), ptrace.NewScopeSpansSlice, c.MaxItems, Items)
		for _, ss := range rs.ScopeSpans().All() {
			cutName(&c, ss.SchemaUrl(), ss.SetSchemaUrl)
			c.scope(ss.Scope())
			admit(&c, ss.Spans(), ptrace.NewSpanSlice, c.MaxItems, Items)
			for _, span := range ss.Spans().All() {
				c.span(span)
			}
		}
	}
	return c.counts
}

func (c *cutter) span(span ptrace.Span) {
	c.item()
	cutName(c, span.Name(), span.SetName)
	c.traceState(span.TraceState())
	if message := span.Status().Message(); len(message) > c.MaxValueBytes {
		span.Status().SetMessage(c.shorten(message, c.MaxValueBytes, ValueBytes))
	}
	cutAttributes(c, span)
	if n := admit(c, span.Events(), ptrace.NewSpanEventSlice, c.MaxEvents, Events); n > 0 {
		span.SetDroppedEventsCount(span.DroppedEventsCount() + n)
	}
	for _, event := range span.Events().All() {
		c.item()
		cutName(c, event.Name(), event.SetName)
		cutAttributes(c, event)
	}
	if n := admit(c, span.Links(), ptrace.NewSpanLinkSlice, c.MaxLinks, Links); n > 0 {
		span.SetDroppedLinksCount(span.DroppedLinksCount() + n)
	}
	for _, link := range span.Links().All() {
		c.item()
		c.traceState(link.TraceState())
		cutAttributes(c, link)
	}
}

// Logs changes ld in place.
func (f *Filter) Logs(ld plog.Logs) Counts {
	c := f.cutter()
	admit(&c, ld.ResourceLogs(), plog.NewResourceLogsSlice, c.MaxItems, Items)
	for _, rl := range ld.ResourceLogs().All() {
		cutName(&c, rl.SchemaUrl(), rl.SetSchemaUrl)
		c.resource(rl.Resource())
		admit(&c, rl.ScopeLogs(), plog.NewScopeLogsSlice, c.MaxItems, Items)
		for _, sl := range rl.ScopeLogs().All() {
			cutName(&c, sl.SchemaUrl(), sl.SetSchemaUrl)
			c.scope(sl.Scope())
			admit(&c, sl.LogRecords(), plog.NewLogRecordSlice, c.MaxItems, Items)
			for _, record := range sl.LogRecords().All() {
				c.item()
				cutName(&c, record.SeverityText(), record.SetSeverityText)
				cutName(&c, record.EventName(), record.SetEventName)
				c.value(record.Body(), 0)
				cutAttributes(&c, record)
			}
		}
	}
	return c.counts
}

// Metrics changes md in place.
func (f *Filter) Metrics(md pmetric.Metrics) Counts {
	c := f.cutter()
	admit(&c, md.ResourceMetrics(), pmetric.NewResourceMetricsSlice, c.MaxItems, Items)
	for _, rm := range md.ResourceMetrics().All() {
		cutName(&c, rm.SchemaUrl(), rm.SetSchemaUrl)
		c.resource(rm.Resource())
		admit(&c, rm.ScopeMetrics(), pmetric.NewScopeMetricsSlice, c.MaxItems, Items)
		for _, sm := range rm.ScopeMetrics().All() {
			cutName(&c, sm.SchemaUrl(), sm.SetSchemaUrl)
			c.scope(sm.Scope())
			admit(&c, sm.Metrics(), pmetric.NewMetricSlice, c.MaxItems, Items)
			for _, metric := range sm.Metrics().All() {
				c.metric(metric)
			}
		}
	}
	return c.counts
}

func (c *cutter) resource(resource pcommon.Resource) {
	c.item()
	cutAttributes(c, resource)
}

func (c *cutter) scope(scope pcommon.InstrumentationScope) {
	c.item()
	cutName(c, scope.Name(), scope.SetName)
	cutName(c, scope.Version(), scope.SetVersion)
	cutAttributes(c, scope)
}
