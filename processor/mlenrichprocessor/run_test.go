package mlenrichprocessor

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func factsOf(t *testing.T, attrs map[string]any) *mlattr.Facts {
	t.Helper()
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(attrs))
	f, _ := mlattr.Classify(m, "", ptrace.NewSpan())
	return f
}

func TestRunPrecedence(t *testing.T) {
	all := map[string]any{
		"ml.training_run.id": "tr", "mlflow.run_id": "mlf", "wandb.run_id": "wb", "TORCHELASTIC_RUN_ID": "el",
		"SLURM_JOB_ID": "42", "service.name": "torchtel", "job_id": 7, "k8s.job.uid": "uid",
	}
	for _, step := range []struct{ remove, want string }{
		{"", "tr"}, {"ml.training_run.id", "mlf"}, {"mlflow.run_id", "wb"}, {"wandb.run_id", "el"},
		{"TORCHELASTIC_RUN_ID", "42"}, {"SLURM_JOB_ID", "7"}, {"job_id", "uid"},
	} {
		delete(all, step.remove)
		f := factsOf(t, all)
		assert.Equal(t, run{id: step.want}, runOf(f, process{service: "torchtel"}, process{service: "torchtel"}.key(), f.Systems), "without %q", step.remove)
	}
	delete(all, "k8s.job.uid")
	f := factsOf(t, all)
	got := runOf(f, process{service: "torchtel"}, process{service: "torchtel"}.key(), f.Systems)
	assert.True(t, got.inferred)
	assert.Len(t, got.id, runIDLength)
}

func TestSentinelsAreNoRun(t *testing.T) {
	for _, sentinel := range []any{0, "0", "", "local", "none", "None", "-1", -1, "null"} {
		f := factsOf(t, map[string]any{"service.name": "torchtel", "job_id": sentinel, "TORCHELASTIC_RUN_ID": "none"})
		got := runOf(f, process{service: "torchtel"}, process{service: "torchtel"}.key(), f.Systems)
		assert.True(t, got.inferred, "%v", sentinel)
		assert.Empty(t, f.Text(mlattr.JobID))
	}
}

func TestInferredRun(t *testing.T) {
	none := factsOf(t, nil)
	infer := func(p process, s mlattr.System) run { return runOf(none, p, p.key(), s) }
	rank := process{service: "torchtel", host: "n1", worldSize: 8}

	first, second := rank, rank
	first.pid, first.instance = "1", "a"
	second.pid, second.instance = "2", "b"
	assert.Equal(t, infer(first, mlattr.TorchTel), infer(second, mlattr.TorchTel), "ranks of a job on a host share a run")
	first.worldSize, second.worldSize = 1, 1
	assert.NotEqual(t, infer(first, mlattr.TorchTel), infer(second, mlattr.TorchTel), "two single processes do not")
	other := rank
	other.host = "n2"
	assert.NotEqual(t, infer(rank, mlattr.TorchTel), infer(other, mlattr.TorchTel))
	assert.NotEqual(t, infer(process{service: "ab", host: "c"}, mlattr.FX), infer(process{service: "a", host: "bc"}, mlattr.FX))

	assert.Equal(t, run{}, infer(rank, 0), "a stranger gets none")
	assert.Equal(t, run{}, infer(rank, mlattr.TuFT), "a fine-tuning service is no run")
	assert.Equal(t, run{}, infer(process{service: snakepitBridge}, mlattr.Snakepit))
	assert.Equal(t, run{}, infer(process{}, mlattr.FX), "an empty resource tells nothing apart")
	assert.Equal(t, run{perTrace: true}, infer(process{service: "agent"}, mlattr.TaskWeaver))
	assert.True(t, infer(process{service: "agent", host: "n1"}, mlattr.TaskWeaver).inferred)
}

func TestProcessKeysAreMadeOnceAndBounded(t *testing.T) {
	var keys processKeys
	for i := range 2 * maxProcessKeys {
		p := process{service: "s", instance: strconv.Itoa(i)}
		assert.Equal(t, p.key(), keys.of(&p))
		assert.Equal(t, p.key(), keys.of(&p), "the one that is kept")
	}
	assert.LessOrEqual(t, len(keys), maxProcessKeys)
}
