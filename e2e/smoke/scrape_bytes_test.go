package smoke

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// scrapeText returns the text of a scrape, at most 64 MiB of it.
func (a *agentCollector) scrapeText(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Address(t, "exporters::prometheus")+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	require.NoError(t, err)
	return string(text)
}

// awaitSeries waits until a series is in a scrape, and returns its text.
func (a *agentCollector) awaitSeries(t *testing.T, series string) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text = a.scrapeText(t)
		return strings.Contains(text, series)
	}, arrival, poll, series)
	return text
}

// TestBytesOfAScrapeAreBounded: a request of 141 KB with a long label and many buckets
// was a scrape of 592 MiB. Neither one such request nor many make a scrape large, in any
// of the places that become labels.
func TestBytesOfAScrapeAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 75_000)
	const buckets = 8_190
	histogram := func(name, service, label string) pmetric.Metrics {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", service)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := h.DataPoints().AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.Attributes().PutStr("label", label)
		for i := range buckets {
			point.ExplicitBounds().Append(float64(i))
			point.BucketCounts().Append(0)
		}
		point.BucketCounts().Append(0)
		return md
	}
	a := startAgent(t, map[string]any{"processors::ml_guard/identities::identities::scrape_bytes": 4 << 20})
	old, _ := gaugeOf("old", 1, 0)
	a.send(t, old)
	a.awaitSeries(t, "old{")

	a.send(t, histogram("one", "s", long))
	after, _ := gaugeOf("after", 1, 0)
	a.send(t, after)
	text := a.awaitSeries(t, "after{")
	assert.Less(t, len(text), 8<<20)

	for i := range 10 {
		a.send(t, histogram(fmt.Sprint("m", i), strconv.Itoa(i)+long, strconv.Itoa(i)+long))
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", strconv.Itoa(i)+long)
		rs.Resource().Attributes().PutStr("more", long)
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{1})
		span.Attributes().PutStr("ml.operation", strconv.Itoa(i)+long)
		span.Attributes().PutStr("http.route", strconv.Itoa(i)+long)
		require.NoError(t, a.sender.Traces(t.Context(), td))
	}
	text = a.awaitSeries(t, "traces_span_metrics_calls_total{")
	a.awaitSeries(t, "old{")
	assert.Less(t, len(text), 8<<20)
	for line := range strings.Lines(text) {
		if len(line) > 8_000 {
			assert.Fail(t, "a long line", "%d bytes: %.100s", len(line), line)
			break
		}
	}
}
