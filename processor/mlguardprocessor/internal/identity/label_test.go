package identity

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
)

// TestLongLabelsAreCutAndStayApart: texts, bytes, arrays and maps, on resources, spans,
// exceptions and points, of known series too.
func TestLongLabelsAreCutAndStayApart(t *testing.T) {
	long := map[string]func(v pcommon.Value, last string){
		"text": func(v pcommon.Value, last string) { v.SetStr(strings.Repeat("ü", 50_000) + last) },
		"bytes": func(v pcommon.Value, last string) {
			v.SetEmptyBytes().FromRaw([]byte(strings.Repeat("x", 50_000) + last))
		},
		"array": func(v pcommon.Value, last string) {
			for i := range 1000 {
				v.SetEmptySlice().AppendEmpty().SetStr(strconv.Itoa(i))
			}
			v.Slice().AppendEmpty().SetStr(strings.Repeat("x", 300) + last)
		},
		"map": func(v pcommon.Value, last string) { v.SetEmptyMap().PutStr(strings.Repeat("k", 300), last) },
		"invalid": func(v pcommon.Value, last string) {
			v.SetStr(strings.Repeat("\xff", 90) + strings.Repeat("\xfex", 90) + last)
		},
	}
	for name, set := range long {
		t.Run(name, func(t *testing.T) {
			values := make(map[string]int)
			note := func(v pcommon.Value, ok bool) {
				require.True(t, ok)
				assert.LessOrEqual(t, len(v.AsString()), maxLabelBytes)
				assert.True(t, fits(v))
				values[v.AsString()]++
			}
			for _, b := range []*bed{newBed(t, DefaultConfig()), newBed(t, DefaultConfig())} {
				for range 3 {
					for _, last := range []string{"a", "b"} {
						md := pmetric.NewMetrics()
						rm := md.ResourceMetrics().AppendEmpty()
						set(rm.Resource().Attributes().PutEmpty("service.name"), last)
						point := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
						set(point.Attributes().PutEmpty("user.id"), last)
						b.Metrics(t.Context(), md)
						note(md.ResourceMetrics().At(0).Resource().Attributes().Get("service.name"))
						note(point.Attributes().Get("user.id"))

						td := ptrace.NewTraces()
						rs := td.ResourceSpans().AppendEmpty()
						set(rs.Resource().Attributes().PutEmpty("service.name"), last)
						span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
						set(span.Attributes().PutEmpty(mlattr.Operation), last)
						event := span.Events().AppendEmpty()
						event.SetName(mlattr.ExceptionEvent)
						set(event.Attributes().PutEmpty(mlattr.ExceptionType), last)
						td.MarkReadOnly()
						rs = b.Traces(t.Context(), td).ResourceSpans().At(0)
						span = rs.ScopeSpans().At(0).Spans().At(0)
						note(rs.Resource().Attributes().Get("service.name"))
						note(span.Attributes().Get(mlattr.Operation))
						note(spanfact.ExceptionType(span))
					}
					b.after(time.Minute)
				}
			}
			assert.Len(t, values, 2, "the same two in each collector")
		})
	}
}

func TestLabelsOfUsualLengthStay(t *testing.T) {
	b := newBed(t, DefaultConfig())
	text := strings.Repeat("x", maxLabelBytes)
	assert.Equal(t, map[string]any{"path": text, "n": int64(1)}, b.point(service("s"), "path", text, "n", 1))
	resource, span := b.span([]any{"service.name", "s", "process.command_line", text + text}, mlattr.Operation, text, "prompt", text+text)
	assert.Equal(t, map[string]any{"service.name": "s", "process.command_line": text + text}, resource)
	assert.Equal(t, map[string]any{mlattr.Operation: text, "prompt": text + text}, span)
}

// exposed returns the text of the points' labels in a scrape, and that of target_info.
func exposed(md pmetric.Metrics) string {
	var text strings.Builder
	line := func(m pmetric.Metric, resource, attrs pcommon.Map) {
		fmt.Fprintf(&text, "%s_%s_bucket", m.Name(), m.Unit())
		for key, v := range attrs.All() {
			fmt.Fprintf(&text, ",%s=%q", key, v.AsString())
		}
		for _, key := range []string{"service.namespace", "service.name", "service.instance.id"} {
			if v, ok := resource.Get(key); ok {
				fmt.Fprintf(&text, ",%q", v.AsString())
			}
		}
	}
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		fmt.Fprint(&text, resource.AsRaw())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				text.WriteString(m.Description())
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					for _, point := range m.Histogram().DataPoints().All() {
						for range point.ExplicitBounds().Len() + 3 {
							line(m, resource, point.Attributes())
						}
					}
				case pmetric.MetricTypeSummary:
					for _, point := range m.Summary().DataPoints().All() {
						for range point.QuantileValues().Len() + 2 {
							line(m, resource, point.Attributes())
						}
					}
				case pmetric.MetricTypeGauge:
					for _, point := range m.Gauge().DataPoints().All() {
						line(m, resource, point.Attributes())
					}
				case pmetric.MetricTypeSum:
					for _, point := range m.Sum().DataPoints().All() {
						line(m, resource, point.Attributes())
					}
				case pmetric.MetricTypeExponentialHistogram, pmetric.MetricTypeEmpty:
				}
			}
		}
	}
	return text.String()
}

// TestBytesOfAScrapeAreBounded: whatever is long or many, what is shown is at most
// scrape_bytes and what resources have, and what was there before stays.
func TestBytesOfAScrapeAreBounded(t *testing.T) {
	const requests = 20
	long := strings.Repeat("l", 100_000)
	for name, fill := range map[string]func(rm pmetric.ResourceMetrics, i int){
		"a long service": func(rm pmetric.ResourceMetrics, i int) {
			rm.Resource().Attributes().PutStr("service.name", long)
			m := rm.ScopeMetrics().AppendEmpty().Metrics()
			for j := range 1000 {
				one := m.AppendEmpty()
				one.SetName(fmt.Sprint("m", i, j))
				one.SetEmptyGauge().DataPoints().AppendEmpty()
			}
		},
		"attributes": func(rm pmetric.ResourceMetrics, i int) {
			points := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
			for j := range 20 {
				attrs := points.AppendEmpty().Attributes()
				attrs.PutInt("n", int64(20*i+j))
				for k := range 100 {
					attrs.PutStr(strconv.Itoa(k)+long[:1000], "v")
				}
			}
		},
		"buckets": func(rm pmetric.ResourceMetrics, i int) {
			point := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
			point.Attributes().PutStr("user.id", long)
			for j := range 400 * i {
				point.ExplicitBounds().Append(float64(j))
			}
		},
		"quantiles": func(rm pmetric.ResourceMetrics, i int) {
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(strconv.Itoa(i) + long[:1000])
			point := m.SetEmptySummary().DataPoints().AppendEmpty()
			for range 500 {
				point.QuantileValues().AppendEmpty()
			}
		},
		"descriptions": func(rm pmetric.ResourceMetrics, i int) {
			for j := range 20 {
				m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
				m.SetName(fmt.Sprint("m", i, j))
				m.SetDescription(long)
				m.SetEmptyGauge().DataPoints().AppendEmpty()
			}
		},
		"resource": func(rm pmetric.ResourceMetrics, i int) {
			rm.Resource().Attributes().PutStr("service.instance.id", strconv.Itoa(i))
			for j := range 20 {
				rm.Resource().Attributes().PutStr(strconv.Itoa(j)+long[:1000], long)
			}
			rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.ScrapeBytes = 1 << 20
			b := newBed(t, cfg)
			require.NotNil(t, b.point(service("old"), "queue", 1))
			shown := pmetric.NewMetrics()
			for again := range 5 { // as often as persists
				for i := range requests {
					md := pmetric.NewMetrics()
					fill(md.ResourceMetrics().AppendEmpty(), i)
					b.Metrics(t.Context(), md)
					if again == 4 {
						md.ResourceMetrics().MoveAndAppendTo(shown.ResourceMetrics())
					}
				}
				b.after(10 * time.Second)
			}
			assert.Less(t, len(exposed(shown)), 1<<20+requests*2*maxResourceBytes)
			assert.NotZero(t, shown.DataPointCount(), "some are shown")
			assert.NotNil(t, b.point(service("old"), "queue", 1))
			b.assertBounded(t)
		})
	}
}

// The series of a span's labels are many lines with these labels.
func TestLongLabelsOfSpansAreFewCombinations(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ScrapeBytes = 1 << 20
	b := newBed(t, cfg)
	long := strings.Repeat("l", maxLabelBytes-4)
	sent, shown := 0, 0
	for range 5 {
		for i := range 1000 {
			_, span := b.span(service(long), mlattr.Operation, strconv.Itoa(i%30)+long, mlattr.Role, strconv.Itoa(i/30)+long, "http.route", long, "rpc.method", long)
			sent++
			if span[mlattr.Operation] != mlattr.Other {
				shown += linesOfCombination * 5 * len(long) / 5
			}
		}
		b.after(10 * time.Second)
	}
	assert.Less(t, shown, 1<<20)
	assert.Positive(t, shown)
	b.assertBounded(t)
}
