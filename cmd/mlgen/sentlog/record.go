package sentlog

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// SpanEntries turns a request into entries, in the order of the request.
func SpanEntries(scenario string, td ptrace.Traces) []Entry {
	out := make([]Entry, 0, td.SpanCount())
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				out = append(out, Entry{Type: TypeSpan, Span: &Span{
					Scenario:          scenario,
					Signal:            SignalTraces,
					TraceID:           span.TraceID().String(),
					SpanID:            span.SpanID().String(),
					ParentSpanID:      span.ParentSpanID().String(),
					Name:              span.Name(),
					Kind:              strings.ToLower(span.Kind().String()),
					Scope:             Scope{Name: ss.Scope().Name(), Version: ss.Scope().Version()},
					Resource:          FromMap(rs.Resource().Attributes()),
					Attributes:        FromMap(span.Attributes()),
					DroppedAttributes: span.DroppedAttributesCount(),
					Status:            Status{Code: strings.ToLower(span.Status().Code().String()), Message: span.Status().Message()},
					StartUnixNano:     nanos(span.StartTimestamp()),
					EndUnixNano:       nanos(span.EndTimestamp()),
					Events:            events(span),
				}})
			}
		}
	}
	return out
}

func events(span ptrace.Span) []Event {
	var out []Event
	for _, event := range span.Events().All() {
		out = append(out, Event{
			Name:         event.Name(),
			TimeUnixNano: nanos(event.Timestamp()),
			Attributes:   FromMap(event.Attributes()),
		})
	}
	return out
}

// MetricEntries turns a request into one entry a data point.
func MetricEntries(scenario string, md pmetric.Metrics) []Entry {
	out := make([]Entry, 0, md.DataPointCount())
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				base := Metric{
					Scenario: scenario,
					Signal:   SignalMetrics,
					Name:     metric.Name(),
					Unit:     metric.Unit(),
					Kind:     strings.ToLower(metric.Type().String()),
					Scope:    Scope{Name: sm.Scope().Name(), Version: sm.Scope().Version()},
					Resource: FromMap(rm.Resource().Attributes()),
				}
				out = append(out, pointEntries(base, metric)...)
			}
		}
	}
	return out
}

func pointEntries(base Metric, metric pmetric.Metric) []Entry {
	var out []Entry
	number := func(points pmetric.NumberDataPointSlice) {
		for _, point := range points.All() {
			m := base
			m.Attributes = FromMap(point.Attributes())
			m.StartUnixNano, m.TimeUnixNano = nanos(point.StartTimestamp()), nanos(point.Timestamp())
			if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
				m.Int, m.Value = true, float64(point.IntValue())
			} else {
				m.Value = point.DoubleValue()
			}
			out = append(out, Entry{Type: TypeMetric, Metric: &m})
		}
	}
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		number(metric.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		base.Monotonic = metric.Sum().IsMonotonic()
		number(metric.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, point := range metric.Histogram().DataPoints().All() {
			m := base
			m.Attributes = FromMap(point.Attributes())
			m.StartUnixNano, m.TimeUnixNano = nanos(point.StartTimestamp()), nanos(point.Timestamp())
			m.Count, m.Sum = point.Count(), point.Sum()
			m.Bounds = point.ExplicitBounds().AsRaw()
			m.Buckets = point.BucketCounts().AsRaw()
			out = append(out, Entry{Type: TypeMetric, Metric: &m})
		}
	}
	return out
}

// LogEntries turns a request into one entry a log record.
func LogEntries(scenario string, ld plog.Logs) []Entry {
	out := make([]Entry, 0, ld.LogRecordCount())
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				out = append(out, Entry{Type: TypeLog, Log: &LogEntry{
					Scenario:       scenario,
					Signal:         SignalLogs,
					TraceID:        record.TraceID().String(),
					SpanID:         record.SpanID().String(),
					Body:           record.Body().AsString(),
					Severity:       record.SeverityText(),
					SeverityNumber: int32(record.SeverityNumber()),
					Scope:          Scope{Name: sl.Scope().Name(), Version: sl.Scope().Version()},
					Resource:       FromMap(rl.Resource().Attributes()),
					Attributes:     FromMap(record.Attributes()),
					TimeUnixNano:   nanos(record.Timestamp()),
				}})
			}
		}
	}
	return out
}

// nanos keeps a timestamp in the range that a signed integer has: the year 2262.
func nanos(t pcommon.Timestamp) int64 {
	if t > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t)
}
