package identity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// typed returns a metric with one point of each type, which a change is applied to.
func typed(change func(point)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func(name string) pmetric.Metric {
		m := metrics.AppendEmpty()
		m.SetName(name)
		return m
	}
	change(add("gauge").SetEmptyGauge().DataPoints().AppendEmpty())
	sum := add("sum").SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	change(sum.DataPoints().AppendEmpty())
	histogram := add("histogram").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	change(histogram.DataPoints().AppendEmpty())
	exponential := add("exponential").SetEmptyExponentialHistogram()
	exponential.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	change(exponential.DataPoints().AppendEmpty())
	change(add("summary").SetEmptySummary().DataPoints().AppendEmpty())
	return md
}

// pointsByType returns the points that remain, by the name of their metric.
func pointsByType(md pmetric.Metrics) map[string]point {
	all := make(map[string]point)
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				all[m.Name()] = m.Gauge().DataPoints().At(0)
			case pmetric.MetricTypeSum:
				all[m.Name()] = m.Sum().DataPoints().At(0)
			case pmetric.MetricTypeHistogram:
				all[m.Name()] = m.Histogram().DataPoints().At(0)
			case pmetric.MetricTypeExponentialHistogram:
				all[m.Name()] = m.ExponentialHistogram().DataPoints().At(0)
			case pmetric.MetricTypeSummary:
				all[m.Name()] = m.Summary().DataPoints().At(0)
			case pmetric.MetricTypeEmpty:
			}
		}
	}
	return all
}

func TestTimesOfPoints(t *testing.T) {
	b := newBed(t, DefaultConfig())
	now := pcommon.NewTimestampFromTime(b.clock)
	started := pcommon.NewTimestampFromTime(b.clock.Add(-time.Hour))
	for name, tt := range map[string]struct {
		at    pcommon.Timestamp
		right bool
	}{
		"now":           {now, true},
		"a bit ahead":   {pcommon.NewTimestampFromTime(b.clock.Add(time.Minute)), true},
		"ahead":         {pcommon.NewTimestampFromTime(b.clock.Add(time.Minute + 1)), false},
		"a bit behind":  {pcommon.NewTimestampFromTime(b.clock.Add(-10 * time.Minute)), true},
		"behind":        {pcommon.NewTimestampFromTime(b.clock.Add(-10*time.Minute - 1)), false},
		"none":          {0, false},
		"the year 2554": {1<<64 - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			md := typed(func(p point) {
				p.SetTimestamp(tt.at)
				p.SetStartTimestamp(started)
			})
			b.Metrics(t.Context(), md)
			found := pointsByType(md)
			assert.Len(t, found, 5)
			for of, p := range found {
				want, wantStart := now, started
				if tt.right {
					want = tt.at
				} else if of == "sum" || of == "exponential" {
					wantStart = now // the time of a delta
				}
				// Those that are repaired differ by a nanosecond each.
				assert.InDelta(t, 0, int64(p.Timestamp()-want), 5, of)
				assert.InDelta(t, 0, int64(p.(interface{ StartTimestamp() pcommon.Timestamp }).StartTimestamp()-wantStart), 5, of)
			}
		})
	}
}

// delta_to_cumulative drops a delta that is not after the one before.
func TestRepairedDeltasStayInOrder(t *testing.T) {
	b := newBed(t, DefaultConfig())
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("steps")
	sum := m.SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for i := range 5 {
		sum.DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(b.clock.Add(time.Duration(i)*time.Second - time.Hour)))
	}
	b.Metrics(t.Context(), md)
	for i := 1; i < 5; i++ {
		assert.Greater(t, sum.DataPoints().At(i).Timestamp(), sum.DataPoints().At(i-1).Timestamp())
	}
}

// Bytes are valid whatever they are, and say nothing about the same text.
func TestTextIsRepairedAfterTheSameBytes(t *testing.T) {
	b := newBed(t, DefaultConfig())
	point := func(put func(pcommon.Map)) string {
		md := typed(func(p point) { put(p.Attributes()) })
		b.Metrics(t.Context(), md)
		v, _ := pointsByType(md)["gauge"].Attributes().Get("ml.operation")
		return v.AsString()
	}
	span := func(put func(pcommon.Map)) string {
		td := ptrace.NewTraces()
		put(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes())
		v, _ := b.Traces(t.Context(), td).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("ml.operation")
		return v.AsString()
	}
	for _, send := range []func(func(pcommon.Map)) string{point, span} {
		assert.Equal(t, "bG//", send(func(to pcommon.Map) { to.PutEmptyBytes("ml.operation").FromRaw([]byte("lo\xff")) }))
		assert.Equal(t, "lo\ufffd", send(func(to pcommon.Map) { to.PutStr("ml.operation", "lo\xff") }))
	}
}

func TestPointsWithoutAValueAreDropped(t *testing.T) {
	b := newBed(t, DefaultConfig())
	type flagged interface{ SetFlags(pmetric.DataPointFlags) }
	md := typed(func(p point) { p.(flagged).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) })
	b.Metrics(t.Context(), md)
	assert.Empty(t, pointsByType(md))
	assert.Empty(t, b.log.All(), "they are not beyond a limit")
}

// The text is repaired each time, also when the series is known.
func TestTextOfPointsIsUTF8(t *testing.T) {
	b := newBed(t, DefaultConfig())
	for range 3 {
		assert.Equal(t, map[string]any{"stage": "lo\ufffdad", "n": int64(1), "größe": "größe"},
			b.point(service("s\xff"), "stage", "lo\xffad", "n", 1, "größe", "größe"))
		b.after(time.Minute)
	}
	admitted, _ := b.tables[kindStream].size()
	assert.Equal(t, int64(1), admitted)
}

func TestTextOfLabelsIsUTF8(t *testing.T) {
	b := newBed(t, DefaultConfig())
	for range 3 {
		resource, span := b.span([]any{"service.name", "s\xff", "other", "\xfe"}, "ml.operation", "ask\xff", "otel.metric.overflow", "x\xff", "prompt", "\xff")
		assert.Equal(t, map[string]any{"service.name": "s\ufffd", "other": "\ufffd"}, resource)
		assert.Equal(t, map[string]any{"ml.operation": "ask\ufffd", "otel.metric.overflow": "x\ufffd", "prompt": "\xff"}, span, "what is no label stays")
		b.after(time.Minute)
	}
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "E\xff")
	td.MarkReadOnly()
	got := b.Traces(t.Context(), td).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	v, _ := got.Events().At(0).Attributes().Get("exception.type")
	assert.Equal(t, "E\ufffd", v.Str())
}
