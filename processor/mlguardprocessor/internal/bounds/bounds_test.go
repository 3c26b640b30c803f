package bounds_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
)

// small has limits that a test can exceed by hand.
func small() *bounds.Config {
	return &bounds.Config{
		MaxDepth: 2, MaxValueBytes: 64, MaxNameBytes: 64, MaxItemBytes: 1 << 20, MaxAttributes: 3,
		MaxElements: 4, MaxEvents: 2, MaxLinks: 2, MaxItems: 1000,
	}
}

func filter(t testing.TB, c *bounds.Config) *bounds.Filter {
	t.Helper()
	require.NoError(t, c.Validate())
	f := bounds.New(c)
	return f
}

// oneRecord returns logs with a record, and the record.
func oneRecord() (plog.Logs, plog.LogRecord) {
	logs := plog.NewLogs()
	return logs, logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
}

// only is a count of one limit.
func only(limit bounds.Limit, n int64) (c bounds.Counts) {
	c[limit] = n
	return c
}

func TestValuesAreCut(t *testing.T) {
	long := strings.Repeat("é", 50)
	list := func(n int) func(pcommon.Value) {
		return func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for i := range n {
				s.AppendEmpty().SetInt(int64(i))
			}
		}
	}
	for name, test := range map[string]struct {
		set    func(pcommon.Value)
		change func(*bounds.Config)
		want   any
		counts bounds.Counts
	}{
		"text within the limit": {set: func(v pcommon.Value) { v.SetStr(long[:64]) }, want: long[:64]},
		"text": {
			set:  func(v pcommon.Value) { v.SetStr(long) },
			want: long[:46] + " [cut: 100 bytes]", counts: only(bounds.ValueBytes, 1),
		},
		"text that is not UTF-8": {
			set:  func(v pcommon.Value) { v.SetStr(strings.Repeat("\x80", 100)) },
			want: strings.Repeat("\x80", 43) + " [cut: 100 bytes]", counts: only(bounds.ValueBytes, 1),
		},
		"bytes": {
			set:  func(v pcommon.Value) { v.SetEmptyBytes().FromRaw(make([]byte, 65)) },
			want: "[cut: 65 bytes]", counts: only(bounds.ValueBytes, 1),
		},
		"two levels": {set: func(v pcommon.Value) { otlpnest.Value(v, 2) }, want: []any{map[string]any{"k": "x"}}},
		"three levels": {
			set:  func(v pcommon.Value) { otlpnest.Value(v, 3) },
			want: []any{map[string]any{"k": "[cut: nested deeper than 2 levels]"}}, counts: only(bounds.Depth, 1),
		},
		"four elements": {set: list(4), want: []any{int64(0), int64(1), int64(2), int64(3)}},
		"ten elements": {
			set: list(10), want: []any{int64(0), int64(1), int64(2), "[cut: 7 more elements]"},
			counts: only(bounds.Elements, 7),
		},
		"six entries": {
			set: func(v pcommon.Value) {
				m := v.SetEmptyMap()
				for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
					m.PutBool(key, true)
				}
			},
			want:   map[string]any{"a": true, "b": true, "c": true, "[cut]": "3 more entries"},
			counts: only(bounds.Elements, 3),
		},
		"an entry with a long key": {
			set:  func(v pcommon.Value) { v.SetEmptyMap().PutBool(long, true) },
			want: map[string]any{"[cut]": "1 more entries"}, counts: only(bounds.NameBytes, 1),
		},
		"elements beyond the item": {
			set: list(4), change: func(c *bounds.Config) { c.MaxItemBytes = 64; c.MaxElements = 100 },
			want: []any{int64(0), int64(1), int64(2), int64(3)},
		},
		"more elements than the item has room for": {
			set: list(20), change: func(c *bounds.Config) { c.MaxItemBytes = 64; c.MaxElements = 100 },
			want:   []any{int64(0), int64(1), int64(2), int64(3), int64(4), int64(5), int64(6), int64(7), "[cut: 12 more elements]"},
			counts: only(bounds.ItemBytes, 12),
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := small()
			if test.change != nil {
				test.change(config)
			}
			logs, record := oneRecord()
			test.set(record.Body())
			assert.Equal(t, test.counts, filter(t, config).Logs(logs))
			assert.Equal(t, test.want, record.Body().AsRaw())
			if test.counts[bounds.ItemBytes] == 0 {
				assert.Zero(t, filter(t, config).Logs(logs), "what was cut is within the limits")
			}
		})
	}
}

// A value of a million levels is cut like one of three.
func TestNestingHasNoCost(t *testing.T) {
	logs, record := oneRecord()
	otlpnest.Value(record.Body(), 1_000_000)
	otlpnest.Value(logs.ResourceLogs().At(0).Resource().Attributes().PutEmpty("service.name"), 1_000_000)
	d := bounds.Default()
	assert.Equal(t, only(bounds.Depth, 2), filter(t, &d).Logs(logs))
	assert.Contains(t, record.Body().AsString(), "[cut: nested deeper than 64 levels]")
}

func TestAttributesBeyondTheLimitAreDropped(t *testing.T) {
	long := strings.Repeat("k", 65)
	logs, record := oneRecord()
	record.SetDroppedAttributesCount(7)
	for _, key := range []string{"a", long, "b", "c", "d"} {
		record.Attributes().PutStr(key, key)
	}
	counts := filter(t, small()).Logs(logs)
	assert.Equal(t, map[string]any{"a": "a", "b": "b"}, record.Attributes().AsRaw())
	assert.EqualValues(t, 10, record.DroppedAttributesCount())
	assert.EqualValues(t, 2, counts[bounds.Attributes])
	assert.EqualValues(t, 1, counts[bounds.NameBytes])
}

// Each position of a span can be too much.
func TestTraces(t *testing.T) {
	long := strings.Repeat("n", 100)
	cut := strings.Repeat("n", 47) + " [cut: 100 bytes]"
	tooMany := func(m pcommon.Map) {
		for _, key := range []string{"a", "b", "c", "d"} {
			m.PutInt(key, 1)
		}
	}
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl(long)
	tooMany(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl(long)
	ss.Scope().SetName(long)
	ss.Scope().SetVersion(long)
	tooMany(ss.Scope().Attributes())
	span := ss.Spans().AppendEmpty()
	span.SetName(long)
	span.TraceState().FromRaw("a=1,b=" + long)
	span.Status().SetMessage(long)
	tooMany(span.Attributes())
	for range 3 {
		event := span.Events().AppendEmpty()
		event.SetName(long)
		tooMany(event.Attributes())
		link := span.Links().AppendEmpty()
		link.TraceState().FromRaw(long)
		tooMany(link.Attributes())
	}

	counts := filter(t, small()).Traces(td)
	assert.Equal(t, bounds.Counts{
		bounds.Attributes: 7, bounds.Events: 1, bounds.Links: 1, bounds.NameBytes: 10, bounds.ValueBytes: 1,
	}, counts)
	for _, text := range []string{rs.SchemaUrl(), ss.SchemaUrl(), ss.Scope().Name(), ss.Scope().Version(), span.Name(),
		span.Status().Message(), span.Events().At(1).Name()} {
		assert.Equal(t, cut, text)
	}
	assert.Equal(t, "a=1", span.TraceState().AsRaw())
	assert.Empty(t, span.Links().At(0).TraceState().AsRaw())
	for _, dropped := range []uint32{rs.Resource().DroppedAttributesCount(), ss.Scope().DroppedAttributesCount(), span.DroppedAttributesCount(),
		span.DroppedEventsCount(), span.DroppedLinksCount(), span.Events().At(0).DroppedAttributesCount(), span.Links().At(1).DroppedAttributesCount()} {
		assert.EqualValues(t, 1, dropped)
	}
}

// Each position of a metric of each type can be too much.
func TestMetrics(t *testing.T) {
	long := strings.Repeat("n", 100)
	cut := strings.Repeat("n", 47) + " [cut: 100 bytes]"
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func() pmetric.Metric {
		m := metrics.AppendEmpty()
		m.SetName(long)
		m.SetUnit(long)
		m.SetDescription(long)
		m.Metadata().PutStr("k", long)
		return m
	}
	five := []uint64{1, 2, 3, 4, 5}
	gauge := add().SetEmptyGauge().DataPoints().AppendEmpty()
	sum := add().SetEmptySum().DataPoints().AppendEmpty()
	histogram := add().SetEmptyHistogram().DataPoints().AppendEmpty()
	histogram.SetCount(15)
	histogram.BucketCounts().FromRaw(five)
	histogram.ExplicitBounds().FromRaw([]float64{1, 2, 3, 4})
	exponential := add().SetEmptyExponentialHistogram()
	kept := exponential.DataPoints().AppendEmpty()
	exponential.DataPoints().AppendEmpty().Negative().BucketCounts().FromRaw(five)
	summary := add().SetEmptySummary().DataPoints().AppendEmpty()
	for range 5 {
		summary.QuantileValues().AppendEmpty()
	}
	for _, attrs := range []pcommon.Map{gauge.Attributes(), sum.Attributes(), histogram.Attributes(), kept.Attributes(), summary.Attributes()} {
		attrs.PutStr("k", long)
	}
	for _, exemplars := range []pmetric.ExemplarSlice{gauge.Exemplars(), sum.Exemplars(), histogram.Exemplars(), kept.Exemplars()} {
		for range 5 {
			exemplars.AppendEmpty().FilteredAttributes().PutStr("k", long)
		}
	}

	counts := filter(t, small()).Metrics(md)
	// Five points and metadata, five descriptions, four times four exemplars; four
	// exemplars, a histogram, an exponential one, a summary; five names and units.
	assert.Equal(t, bounds.Counts{bounds.ValueBytes: 15 + 16, bounds.Elements: 4 + 3, bounds.NameBytes: 10}, counts)
	for _, m := range metrics.All() {
		assert.Equal(t, []string{cut, cut, cut}, []string{m.Name(), m.Unit(), m.Description()})
		v, _ := m.Metadata().Get("k")
		assert.Equal(t, cut, v.Str())
	}
	assert.Zero(t, histogram.BucketCounts().Len()+histogram.ExplicitBounds().Len())
	assert.EqualValues(t, 15, histogram.Count())
	assert.Equal(t, 1, exponential.DataPoints().Len())
	assert.Equal(t, 4, summary.QuantileValues().Len())
	for _, exemplars := range []pmetric.ExemplarSlice{gauge.Exemplars(), sum.Exemplars(), histogram.Exemplars(), kept.Exemplars()} {
		require.Equal(t, 4, exemplars.Len())
		v, _ := exemplars.At(3).FilteredAttributes().Get("k")
		assert.Equal(t, cut, v.Str())
	}
}

// What a request has of items is bounded whatever they are.
func TestItemsOfARequestAreBounded(t *testing.T) {
	config := small()
	config.MaxItems = 10
	td := ptrace.NewTraces()
	for range 3 {
		ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		for range 4 {
			ss.Spans().AppendEmpty()
		}
	}
	counts := filter(t, config).Traces(td)
	// Three resources, a scope and four spans, a scope and a span.
	assert.Equal(t, 5, td.SpanCount())
	assert.EqualValues(t, 3+1, counts[bounds.Items], "what was dropped with a scope is not counted again")

	logs := plog.NewLogs()
	for range 20 {
		logs.ResourceLogs().AppendEmpty()
	}
	assert.Equal(t, only(bounds.Items, 10), filter(t, config).Logs(logs))
	assert.Equal(t, 10, logs.ResourceLogs().Len())
}

func TestMistakesAreNamed(t *testing.T) {
	err := (&bounds.Config{MaxDepth: 1001, MaxLinks: -1}).Validate()
	require.ErrorContains(t, err, `"max_depth" is 1001; it must be between 1 and 1000`)
	require.ErrorContains(t, err, `"max_value_bytes" is 0; it must be between 64 and 1073741824`)
	require.ErrorContains(t, err, `"max_links" is -1; it must be between 1 and 1073741824`)
	d := bounds.Default()
	assert.NoError(t, d.Validate())
}
