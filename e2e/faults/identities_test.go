package faults

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// identitiesShort and identitiesLong are how many identities of every kind the
	// flood has, with -short and without.
	identitiesShort = 20_000
	identitiesLong  = 200_000
	// identitiesOfRequest is how many new ones a request has; every fifth span has
	// some.
	identitiesOfRequest = 100
	spansOfIdentity     = 5
	floodSenders        = 2

	// oldPrograms were there before the flood.
	oldPrograms = 10
	// soonEnough is how long a new run that persists may be without labels.
	soonEnough = time.Minute

	maxResident = 512 << 20
	maxScrape   = 10 * time.Second
)

var identities = flag.Int("identities", 0, "how many identities of every kind TestFloodOfIdentities sends")

// TestFloodOfIdentities sends as many new services, instances, runs, ranks,
// sessions, models, operations, users and processes as it has identities. What
// was there before must be counted exactly, and a new run that persists must get
// labels of its own meanwhile.
func TestFloodOfIdentities(t *testing.T) {
	total := *identities
	switch {
	case total > 0:
	case testing.Short():
		total = identitiesShort
	default:
		total = identitiesLong
	}
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{
			"exporters::nop": nil,
			"service::pipelines::traces/out::exporters": []string{"nop"},
			"connectors::ml_metrics::flush_interval":    "1s",
		},
	})
	s := newScene(t, collector)
	for range 3 {
		s.sendOld(t)
	}
	s.awaitOld(t)

	flooded := s.flood(t, total)
	var labelled time.Duration
	sent, begun, most := 0, time.Now(), int64(0)
	for over := false; !over || labelled == 0; {
		select {
		case <-flooded:
			over = true
		case <-time.After(time.Second):
		}
		s.sendOld(t)
		s.sendNewRun(t, sent)
		sent++
		if labelled == 0 && len(s.scrape(t).of("ml_steps_total", harness.Labels{"ml_run_id": "new-run"})) > 0 {
			labelled = time.Since(begun)
		}
		most = max(most, resident(t, collector))
		require.False(t, labelled == 0 && time.Since(begun) > soonEnough, "the new run has no labels")
	}
	took := time.Since(begun)
	s.awaitOld(t)

	shown := s.scrape(t)
	assert.NotEmpty(t, shown.of("traces_span_metrics_calls_total", harness.Labels{"otel_metric_overflow": "true"}), "the rest is marked")
	assert.NotEmpty(t, shown.of("traces_span_metrics_calls_total", harness.Labels{"job": "_OTHER"}))
	assert.Less(t, shown.took, maxScrape)
	assert.Less(t, most, int64(maxResident))
	// A warning for each kind that is refused, and another after 10 minutes.
	for _, kind := range []string{"service", "model", "operation", "user", "session", "process"} {
		warnings := strings.Count(collector.Output(), `"kind": "`+kind+`"`)
		assert.Positive(t, warnings, kind)
		assert.LessOrEqual(t, warnings, 1+int(took/(10*time.Minute)), kind)
	}
	t.Logf("%d identities of each kind in %v: %d lines and %d bytes in a scrape of %v, resident at most %d MiB, labels of the new run after %v",
		total, took.Round(time.Second), shown.lines, shown.bytes, shown.took.Round(time.Millisecond), most>>20, labelled.Round(time.Second))
}

// scene is what sends, and what has been sent.
type scene struct {
	collector *harness.Collector
	sender    *harness.GRPCSender
	// old is how often each of the old programs has sent.
	old int
	// at is the clock of the old programs.
	at time.Time
}

func newScene(t *testing.T, collector *harness.Collector) *scene {
	t.Helper()
	s := &scene{collector: collector, sender: newSender(t, collector), at: time.Now()}
	return s
}

func newSender(t *testing.T, collector *harness.Collector) *harness.GRPCSender {
	t.Helper()
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = sender.Close() })
	return sender
}

// sendOld sends a step and a request of each of the programs that were there
// before, and the value of their counter.
func (s *scene) sendOld(t *testing.T) {
	t.Helper()
	s.old++
	td, md := ptrace.NewTraces(), pmetric.NewMetrics()
	for i := range oldPrograms {
		rs := td.ResourceSpans().AppendEmpty()
		program(rs.Resource().Attributes(), "old-"+strconv.Itoa(i))
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		step(spans.AppendEmpty(), uint64(1e15)+uint64(s.old*oldPrograms+i))
		request(spans.AppendEmpty(), uint64(2e15)+uint64(s.old*oldPrograms+i), "old-model")
		rm := md.ResourceMetrics().AppendEmpty()
		program(rm.Resource().Attributes(), "old-"+strconv.Itoa(i))
		counter(rm.ScopeMetrics().AppendEmpty().Metrics(), int64(s.old)).Attributes().PutStr("user.id", "old-user")
	}
	require.NoError(t, s.sender.Traces(t.Context(), td))
	require.NoError(t, s.sender.Metrics(t.Context(), md))
}

// sendNewRun sends a step of a run that was not there before.
func (s *scene) sendNewRun(t *testing.T, n int) {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	program(rs.Resource().Attributes(), "new")
	step(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty(), uint64(3e15)+uint64(n))
	require.NoError(t, s.sender.Traces(t.Context(), td))
}

// awaitOld waits until what the old programs have sent is shown exactly.
func (s *scene) awaitOld(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		shown := s.scrape(t)
		for i := range oldPrograms {
			name := "old-" + strconv.Itoa(i)
			own := harness.Labels{"job": name, "instance": name + "-0"}
			ofJob := harness.Labels{"job": name}
			assert.Equal(c, 2*s.old, sum(shown.of("traces_span_metrics_calls_total", ofJob)), "%s calls", name)
			assert.Equal(c, 2*s.old, sum(shown.of("traces_span_metrics_duration_milliseconds_count", ofJob)), "%s durations", name)
			own["user_id"] = "old-user"
			assert.Equal(c, s.old, sum(shown.of("requests_done_total", own)), "%s sent", name)
			run := harness.Labels{"job": name, "ml_run_id": name + "-run"}
			assert.Equal(c, s.old, sum(shown.of("ml_steps_total", run)), "%s steps", name)
			run["gen_ai_request_model"] = "old-model"
			assert.Equal(c, 7*s.old, sum(shown.of("ml_tokens_total", run)), "%s tokens", name)
		}
	}, 2*time.Minute, time.Second)
}

// flood sends new identities until there were total of each kind, and closes the
// channel then.
func (s *scene) flood(t *testing.T, total int) <-chan struct{} {
	t.Helper()
	var next sync.Mutex
	at := 0
	var senders sync.WaitGroup
	for range floodSenders {
		sender := newSender(t, s.collector)
		senders.Go(func() {
			for {
				next.Lock()
				first := at
				at += identitiesOfRequest
				next.Unlock()
				if first >= total || t.Context().Err() != nil {
					return
				}
				td, md := newIdentities(first)
				assert.NoError(t, sender.Traces(t.Context(), td))
				assert.NoError(t, sender.Metrics(t.Context(), md))
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		senders.Wait()
	}()
	return over
}

// newIdentities returns spans and points of which every one has another of each
// kind.
func newIdentities(first int) (ptrace.Traces, pmetric.Metrics) {
	td, md := ptrace.NewTraces(), pmetric.NewMetrics()
	for n := first; n < first+identitiesOfRequest; n++ {
		id := strconv.Itoa(n)
		rs := td.ResourceSpans().AppendEmpty()
		program(rs.Resource().Attributes(), "flood-"+id)
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for k := range spansOfIdentity {
			request(spans.AppendEmpty(), uint64(n*spansOfIdentity+k+1), "model-"+id)
			attributes := spans.At(k).Attributes()
			attributes.PutStr("ml.operation", "operation-"+id)
			attributes.PutStr("session.id", "session-"+id)
			attributes.PutStr("user.id", "user-"+id)
		}
		step(spans.AppendEmpty(), uint64(4e15)+uint64(n))
		// Of a program of their own, and of one that was there before.
		for _, name := range []string{"flood-" + id, "old-0"} {
			rm := md.ResourceMetrics().AppendEmpty()
			program(rm.Resource().Attributes(), name)
			attributes := counter(rm.ScopeMetrics().AppendEmpty().Metrics(), 1).Attributes()
			attributes.PutStr("gpu", "0")
			for _, key := range []string{"user.id", "session.id", "gen_ai.request.model", "ml.operation"} {
				attributes.PutStr(key, key+id)
			}
			attributes.PutInt("process.pid", int64(n))
		}
	}
	return td, md
}

func program(to pcommon.Map, name string) {
	to.PutStr("service.name", name)
	to.PutStr("service.instance.id", name+"-0")
	to.PutStr("ml.run.id", name+"-run")
	to.PutInt("ml.rank.global", 0)
	to.PutStr("host.name", "host-of-"+name)
}

func step(span ptrace.Span, id uint64) {
	named(span, id, "AdamW.step")
	span.Attributes().PutStr("ml.phase", "optimizer")
}

func request(span ptrace.Span, id uint64, model string) {
	named(span, id, "chat")
	span.SetKind(ptrace.SpanKindClient)
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.request.model", model)
	span.Attributes().PutInt("gen_ai.usage.input_tokens", 4)
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 3)
}

func named(span ptrace.Span, id uint64, name string) {
	var trace [16]byte
	var self [8]byte
	binary.BigEndian.PutUint64(trace[8:], id)
	binary.BigEndian.PutUint64(self[:], id)
	span.SetTraceID(trace)
	span.SetSpanID(self)
	span.SetName(name)
	now := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-10 * time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
}

func counter(to pmetric.MetricSlice, value int64) pmetric.NumberDataPoint {
	m := to.AppendEmpty()
	m.SetName("requests.done")
	m.SetEmptySum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := m.Sum().DataPoints().AppendEmpty()
	point.SetIntValue(value)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return point
}

// shown is a scrape.
type shown struct {
	samples      []harness.Sample
	took         time.Duration
	bytes, lines int
}

func (s *shown) of(name string, labels harness.Labels) []harness.Sample {
	return harness.Select(s.samples, name, labels)
}

// sum adds up counts.
func sum(samples []harness.Sample) (total int) {
	for _, sample := range samples {
		total += int(sample.Value)
	}
	return total
}

func (s *scene) scrape(t *testing.T) *shown {
	t.Helper()
	address := s.collector.Address(t, "exporters::prometheus")
	var got shown
	begun := time.Now()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	got.took = time.Since(begun)
	got.bytes, got.lines = len(body), strings.Count(string(body), "\n")
	got.samples, err = harness.Scrape(context.WithoutCancel(t.Context()), address)
	require.NoError(t, err)
	return &got
}

// resident is the memory of a process, in bytes.
func resident(t *testing.T, collector *harness.Collector) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", collector.PID()))
	require.NoError(t, err)
	fields := strings.Fields(string(text))
	require.Greater(t, len(fields), 1)
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
