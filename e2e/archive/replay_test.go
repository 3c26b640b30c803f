package archive

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// total is a series whose value is a total that spans make.
var total = regexp.MustCompile(`^(ml_(steps|tokens|samples|batches|requests|errors|run_attempts|worker_crashes|breaker_openings|health_alerts)_total` +
	`|ml_(call|step)_duration_seconds_(count|sum)|ml_request_token_throughput_per_second_count|traces_span_metrics_calls_total)$`)

// derived waits until the planted requests, which were sent last, are counted, and returns
// the totals by name and, if the redaction does not change what the labels are made of,
// by labels.
func derived(t *testing.T, collector *harness.Collector) map[string]float64 {
	t.Helper()
	tokens := int64(0)
	for _, request := range plantedRequests {
		tokens += request.input + request.output
	}
	var totals map[string]float64
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		assert.NoError(c, err)
		totals = map[string]float64{}
		for _, sample := range samples {
			name := sample.Labels["__name__"]
			if !total.MatchString(name) {
				continue
			}
			totals[name] += sample.Value
			for _, label := range []string{"job", "ml_run_id", "ml_rank_global", "gen_ai_token_type", "ml_role", "error_type"} {
				totals[name+" of "+label+" "+sample.Labels[label]] += sample.Value
			}
		}
		assert.Equal(c, tokens, int64(totals["ml_tokens_total of job planted"]))
		assert.Equal(c, len(plantedRequests), int(totals["traces_span_metrics_calls_total of job planted"]))
	}, timeout, harness.ArrivalPoll)
	return totals
}

// testReplay plays the archive into another collector: Jaeger has the same spans at the
// same times, the derived series have the same totals, and a second archive has all
// spans.
func testReplay(t *testing.T, a *archived) {
	file := filepath.Join(t.TempDir(), "replay.jsonl")
	var first []string
	ids := map[string]bool{}
	for _, span := range a.first.Spans {
		ids[span.TraceID] = true
	}
	ids[plantedTrace] = true
	// The lines of the second workload have no series to compare with.
	for line := range strings.Lines(run(t, nil, "text", a.folder)) {
		_, id, _ := strings.Cut(line, `"traceId":"`)
		if ids[id[:32]] {
			first = append(first, line)
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(first, "")), 0o600))
	jaeger := harness.StartJaeger(t)
	collector := start(t, harness.CollectorOptions{
		Config: configuration("production.yaml"), Merged: []string{configuration("replay.yaml"), configuration("archive.yaml")}, FeatureGates: []string{nativeCompression},
	}, "ARCHIVE_REPLAY="+file, "JAEGER_ENDPOINT="+jaeger.OTLPEndpoint(), "OTELCOL_ML_ARCHIVE_DIR="+t.TempDir())
	stored := jaeger.AwaitSpans(t, a.first.Spans)
	for _, sent := range a.first.Spans {
		got := stored[sent.TraceID][sent.SpanID]
		require.NotContains(t, got.Attributes, "log.file.name", "the receiver adds nothing")
		// Jaeger makes a span without a duration a nanosecond long.
		end := int64(got.Span.EndTimestamp())
		if sent.EndUnixNano == sent.StartUnixNano {
			end = min(end, sent.EndUnixNano)
		}
		require.Equal(t, []any{sent.ParentSpanID, sent.StartUnixNano, sent.EndUnixNano},
			[]any{got.Span.ParentSpanID().String(), int64(got.Span.StartTimestamp()), end}, "%q %s", sent.Name, sent.SpanID)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		got := derived(t, collector)
		for key, want := range a.series {
			assert.InDelta(c, want, got[key], 1e-6*want, key)
		}
		assert.Len(c, got, len(a.series))
	}, timeout, harness.ArrivalPoll)
	awaitArchived(t, collector, a.firstSpans())
	refused := own(t, t, collector, "otelcol_receiver_refused_spans", nil)
	assert.Zero(t, refused)
	for _, address := range collector.ListenAddresses(t) {
		assert.NotEqual(t, collector.Address(t, "receivers::otlp::protocols::grpc"), address, "the port for OTLP is open")
	}
	assert.Zero(t, collector.Stop(t))
}
