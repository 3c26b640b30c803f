package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// TestTorchTel trains a model on two ranks under TorchTel itself.
func TestTorchTel(t *testing.T) {
	did := harness.RunExample(t, harness.Example{Name: "torchtel", Endpoint: overHTTP(t)})
	spans := jaeger.AwaitSpanCounts(t, did.Services, did.Spans)

	t.Run("phases", func(t *testing.T) {
		for name, phase := range map[string]string{
			"train":             "train",
			"Regressor.forward": "forward",
			"autograd.backward": "backward",
			"AdamW.step":        "optimizer",
			"dataloader.next":   "data_load",
		} {
			assert.Equal(t, map[string]int{phase: did.Spans[name]}, values(named(spans, name), "ml.phase"), name)
		}
	})

	t.Run("ranks of one run", func(t *testing.T) {
		ranks := values(spans, "ml.rank.global")
		assert.Len(t, ranks, 2)
		for rank := range did.Steps {
			assert.Equal(t, len(spans)/2, ranks[rank], "spans of rank %s", rank)
		}
		assert.Equal(t, map[string]int{"2": len(spans)}, values(spans, "ml.world_size"))
		// torchrun gave no id, so the run's is inferred, and the same for both.
		runs := values(spans, "ml.run.id")
		assert.Len(t, runs, 1)
		assert.NotContains(t, runs, "")
		assert.NotContains(t, runs, "0", "a job_id of 0 means that there is none")
		assert.Equal(t, map[string]int{"true": len(spans)}, values(spans, "ml.run.inferred"))
	})

	t.Run("the end of a loader is no error", func(t *testing.T) {
		// Two loaders in each of two epochs on each of two ranks.
		ends := 0
		for _, span := range named(spans, "dataloader.next") {
			failed := span.Span.Status().Code().String() == "Error"
			_, marked := span.Attribute("ml.epoch_end")
			assert.Equal(t, failed, marked, "ml.epoch_end of %s", span.Span.SpanID())
			if marked {
				ends++
			}
		}
		assert.Equal(t, 8, ends)
		prometheus.AwaitValues(t, `sum by (error_type) (ml_errors_total{job="torchtel"})`, "error_type",
			map[string]float64{"RuntimeError": 2, "torch.cuda.OutOfMemoryError": 2})
	})

	t.Run("steps", func(t *testing.T) {
		prometheus.AwaitValues(t, `sum by (ml_rank_global) (ml_steps_total{job="torchtel"})`, "ml_rank_global", floats(did.Steps))
		// TorchTel's own counter, with this PyTorch one for each step.
		prometheus.AwaitValues(t, `sum by (ml_rank_global) (train_step_count_total{job="torchtel"})`, "ml_rank_global", floats(did.Steps))
		assert.Equal(t, harness.Distinct(prometheus.AwaitSeries(t, `ml_steps_total{job="torchtel"}`), "ml_run_id"),
			harness.Distinct(prometheus.AwaitSeries(t, `train_step_count_total{job="torchtel"}`), "ml_run_id"),
			"metrics and spans name one run")
	})

	t.Run("time", func(t *testing.T) {
		testTimeOfRuns(t, spans, `{job="torchtel"}`, "ml.rank.global", "ml_rank_global")
		prometheus.AwaitValues(t, `sum by (ml_rank_global) (ml_step_duration_seconds_count{job="torchtel",ml_phase="other"})`,
			"ml_rank_global", floats(did.Steps))
		prometheus.AwaitValues(t, `ml_run_state{job="torchtel"} == 1`, "ml_run_state", map[string]float64{"ended": 1})
		prometheus.AwaitValues(t, `ml_run_attempts_total{job="torchtel"}`, "ml_rank_global", map[string]float64{"0": 1, "1": 1})
	})

	t.Run("failures become programs", func(t *testing.T) {
		types := map[string]int{}
		for _, failure := range did.Errors {
			types[failure.Type]++
			span, artifact := awaitFailure(t, spans, failure)
			assert.Contains(t, span.Attributes, "repro.payload")

			verdict, output := harness.ReproduceWith(t, harness.ExamplePython(t, "torchtel"), artifact.Script(),
				harness.Path("examples", "torchtel"))
			assert.Equal(t, harness.Reproduced, verdict, output)
			assert.Contains(t, output, failure.Message)
		}
		assert.Equal(t, map[string]int{"RuntimeError": 2, "torch.cuda.OutOfMemoryError": 2}, types)
	})

	t.Run("a repaired model does not reproduce", func(t *testing.T) {
		require.NotEmpty(t, did.Errors)
		_, artifact := awaitFailure(t, spans, did.Errors[0])
		repaired := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(repaired, "regressor.py"), []byte(repairedRegressor), 0o600))
		verdict, output := harness.ReproduceWith(t, harness.ExamplePython(t, "torchtel"), artifact.Script(), repaired)
		assert.Equal(t, harness.NotReproduced, verdict, output)
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}

// repairedRegressor is a version of the example's model that does without a
// feature that is missing.
const repairedRegressor = `def project(batch, weight):
    return [len(row) for row in batch]
`
