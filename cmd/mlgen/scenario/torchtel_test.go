package scenario

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestTorchTelVocabulary(t *testing.T) {
	out := send(t, "torchtel", 45)
	assert.Equal(t, []string{"Adam.step", "AdamW.step", "GPT.forward", "autograd.backward", "dataloader.next", "train"}, names(out.spans))
	assert.Empty(t, keys(out.spans), "spans have no attributes")
	assert.Equal(t, []string{"gpu.memory.bytes gauge By", "model.parameters gauge", "train.step.count sum 1"}, metricNames(out.metrics))
	assert.Equal(t, "torchtel.instrument", out.spans[0].Scope.Name)
	assert.Equal(t, sentlog.Attributes{
		"service.name": "torchtel", "job_id": int64(0), "job_name": "local", "user": "mlgen", "cluster": "local-node",
		"local_rank": int64(0), "global_rank": int64(0), "world_size": int64(2), "host": "gpu-node-1",
		"ml.simulated": true,
	}, out.spans[0].Resource)
}

func TestTorchTelJob(t *testing.T) {
	settings := testSettings()
	settings.JobID, settings.JobName, settings.Ranks = 4711, "nightly", 3
	out := flatten(perform(t, "torchtel", settings, 1))
	ranks := map[any]bool{}
	for _, span := range out.spans {
		assert.Equal(t, int64(4711), span.Resource["job_id"])
		assert.Equal(t, "nightly", span.Resource["job_name"])
		assert.Equal(t, int64(3), span.Resource["world_size"])
		ranks[span.Resource["global_rank"]] = true
	}
	assert.Len(t, ranks, 3)
}

// TestTorchTelOneTraceAProcess shows the long trace whose root is open until the
// process ends cleanly.
func TestTorchTelOneTraceAProcess(t *testing.T) {
	s, err := New("torchtel", testSettings())
	require.NoError(t, err)
	var before []Batch
	at := testStart
	for range 45 {
		at = at.Add(testSettings().interval())
		before = append(before, s.Step(at)...)
	}
	running := flatten(before)
	traces := map[any]map[string]bool{}
	for _, span := range running.spans {
		assert.NotEqual(t, "train", span.Name, "train must not leave before the end")
		assert.NotEmpty(t, span.ParentSpanID, "no root before the end")
		rank := span.Resource["global_rank"]
		if traces[rank] == nil {
			traces[rank] = map[string]bool{}
		}
		traces[rank][span.TraceID] = true
	}
	require.Len(t, traces, 2)
	for rank, ids := range traces {
		assert.Len(t, ids, 1, "rank %v", rank)
	}

	final := flatten(s.Finish(at))
	roots := final.named("train")
	require.Len(t, roots, 2)
	for _, root := range roots {
		assert.Empty(t, root.ParentSpanID)
		assert.True(t, traces[root.Resource["global_rank"]][root.TraceID])
	}
}

func TestTorchTelNestedOptimizer(t *testing.T) {
	out := send(t, "torchtel", 45)
	inner, outer := out.named("Adam.step"), out.named("AdamW.step")
	require.Len(t, inner, 90)
	require.Len(t, outer, 90)
	for i := range inner {
		assert.Equal(t, outer[i].SpanID, inner[i].ParentSpanID, "children are sent before their parents")
	}
	assert.Equal(t, map[string]int64{"0": 45, "1": 45}, out.truth.Steps)
	for _, point := range out.last("train.step.count") {
		assert.InDelta(t, 90, point.Value, 0, "the client counts each step twice")
		assert.True(t, point.Int)
		assert.True(t, point.Monotonic)
	}
}

func TestTorchTelEpochEnd(t *testing.T) {
	out := send(t, "torchtel", 45)
	failed := out.matching(func(s *sentlog.Span) bool { return s.Status.Code == "error" })
	// Two ranks, two epochs, a training loader and a validation loader each.
	require.Len(t, failed, 8)
	for _, span := range failed {
		assert.Equal(t, "dataloader.next", span.Name)
		require.Len(t, span.Events, 1)
		assert.Equal(t, "exception", span.Events[0].Name)
		assert.Equal(t, "StopIteration", span.Events[0].Attributes["exception.type"])
		assert.Equal(t, "StopIteration: ", span.Status.Message)
	}
	assert.Zero(t, out.truth.FailureCount, "the loader's end is no failure")
	// Validation passes have the names of training passes.
	assert.Len(t, out.named("GPT.forward"), 2*(45+2*torchtelValidation))
	assert.Len(t, out.named("autograd.backward"), 90)
}

// TestTorchTelOrder shows that one process does one thing after the other.
func TestTorchTelOrder(t *testing.T) {
	last := map[string]int64{}
	for _, span := range send(t, "torchtel", 45).spans {
		if span.Name == "Adam.step" || span.Name == "train" {
			continue
		}
		rank := strconv.FormatInt(span.Resource["global_rank"].(int64), 10)
		assert.GreaterOrEqual(t, span.StartUnixNano, last[rank], span.Name)
		last[rank] = span.EndUnixNano
	}
}
