package smoke

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Memory that ran out on a GPU: the artifact tells who had it, through the
// shipped configuration's three pipelines and with the GPUs of a recording.
func TestMemoryOfAGPURanOut(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "reproductions")
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + directory,
		},
		Overrides: map[string]any{"processors::repro_gen::sibling_wait": "1s", "processors::repro_gen::min_free_bytes": 0},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("ml.run.id", "run-1")
	rs.Resource().Attributes().PutInt("ml.rank.global", 1)
	rs.Resource().Attributes().PutInt("ml.rank.local", 1)
	rs.Resource().Attributes().PutInt("ml.world_size", 2)
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	rs.Resource().Attributes().PutStr("host.name", "gpu-node-1")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{1})
	span.SetName("forward")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	// The run has GPUs, by the rule of ml_enrich, before it fails.
	require.NoError(t, sender.Traces(t.Context(), td))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		assert.Len(c, harness.Select(samples, "nvidia_gpu_workload_memory_usage_bytes",
			harness.Labels{"ml_rank_global": "1", "ml_run_id": "run-1", "ml_gpu_join": "rank"}), 1)
	}, arrival, poll)

	span.SetTraceID(pcommon.TraceID{2})
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	span.Status().SetCode(ptrace.StatusCodeError)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "torch.OutOfMemoryError")
	event.Attributes().PutStr("exception.message", "CUDA out of memory. Tried to allocate 24.00 GiB. GPU 0 has a total capacity of 79.65 GiB of which 19.20 GiB is free.")
	require.NoError(t, sender.Traces(t.Context(), td))

	var artifacts []harness.Artifact
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		artifacts, err = harness.Artifacts(directory)
		require.NoError(c, err)
		assert.Len(c, artifacts, 1)
	}, arrival, poll)
	report, err := os.ReadFile(filepath.Join(artifacts[0].Dir, "report.md"))
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^GPU 1 of gpu-node-1 \(GPU-b84d27e9-[0-9a-f-]+\), from a recording, the process's own by its rank: [0-9.]+ GiB of 79\.6 GiB used`, string(report))
	assert.Regexp(t, `rank 1.* has 54\.5 GiB`, string(report))
	assert.Regexp(t, `service snakepit.* has [0-9.]+ GiB`, string(report), "the one beside it")
	assert.NotRegexp(t, `(?m)^GPU 0 of gpu-node-1`, string(report), "another's")
	verdict, output := harness.Reproduce(t, artifacts[0].Script(), "")
	assert.Equal(t, harness.CannotRun, verdict, "nothing can be replayed")
	assert.Contains(t, output, "the process's own by its rank")
	stopDropIn(t, collector)
}
