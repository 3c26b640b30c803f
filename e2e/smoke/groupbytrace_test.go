package smoke

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The session of a TaskWeaver round is on the root, which arrives last. With
// groupbytrace in front of ml_enrich the spans before it have the session too;
// without it they do not. With it the trace is complete, too, and has a critical path.
func TestGroupByTraceWaitsForTheRoot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		processors []string
		waits      bool
	}{
		"with groupbytrace":    {[]string{"memory_limiter", "groupbytrace", "ml_enrich"}, true},
		"without groupbytrace": {[]string{"memory_limiter", "ml_enrich"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := harness.StartSink(t)
			collector := harness.StartCollector(t, harness.CollectorOptions{
				Config: harness.Path("examples", "groupbytrace", "collector.yaml"),
				Env:    []string{"JAEGER_ENDPOINT=" + sink.Endpoint},
				Overrides: map[string]any{
					"processors::groupbytrace::wait_duration": "5s",
					"service::pipelines::traces::processors":  test.processors,
				},
			})
			sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, sender.Close()) })

			spans := spansOfFirstRound(t)
			for _, span := range spans {
				require.NoError(t, sender.Traces(t.Context(), span))
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Len(c, sink.Spans(), len(spans))
			}, arrival, poll)
			sessions := map[string]int{}
			for _, span := range sink.Spans() {
				if session, ok := span.Attributes().Get("ml.session.id"); ok {
					sessions[session.AsString()]++
				}
			}
			require.Len(t, sessions, 1, "a round is of one session")
			for _, with := range sessions {
				if test.waits {
					assert.Equal(t, len(spans), with)
				} else {
					assert.Equal(t, 1, with, "the root alone knows it, and it came last")
				}
			}
		})
	}
}

// spansOfFirstRound is the first trace that was recorded of TaskWeaver, each
// span a request of its own, in the order in which they were sent.
func spansOfFirstRound(t *testing.T) []ptrace.Traces {
	t.Helper()
	var spans []ptrace.Traces
	var round *ptrace.Span
	recording, err := os.ReadFile(harness.Path("examples", "taskweaver", "recording", "traces.json"))
	require.NoError(t, err)
	for request := range bytes.SplitSeq(bytes.TrimSpace(recording), []byte("\n")) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
		require.NoError(t, err)
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if round == nil {
						round = &span
					}
					if span.TraceID() != round.TraceID() {
						continue
					}
					one := ptrace.NewTraces()
					to := one.ResourceSpans().AppendEmpty()
					rs.Resource().CopyTo(to.Resource())
					scope := to.ScopeSpans().AppendEmpty()
					ss.Scope().CopyTo(scope.Scope())
					span.CopyTo(scope.Spans().AppendEmpty())
					spans = append(spans, one)
				}
			}
		}
	}
	require.Greater(t, len(spans), 5)
	last := spans[len(spans)-1].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	require.True(t, last.ParentSpanID().IsEmpty(), "the recording's root does not come last")
	return spans
}
