package run

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var torchTel = Process{Service: "torchtel"}

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
		assert.Equal(t, Run{ID: step.want}, Of(f, &torchTel, torchTel.key(), f.Systems), "without %q", step.remove)
	}
	delete(all, "k8s.job.uid")
	f := factsOf(t, all)
	got := Of(f, &torchTel, torchTel.key(), f.Systems)
	assert.True(t, got.Inferred)
	assert.Len(t, got.ID, idLength)
}

func TestSentinelsAreNoRun(t *testing.T) {
	for _, sentinel := range []any{0, "0", "", "local", "none", "None", "-1", -1, "null"} {
		f := factsOf(t, map[string]any{"service.name": "torchtel", "job_id": sentinel, "TORCHELASTIC_RUN_ID": "none"})
		got := Of(f, &torchTel, torchTel.key(), f.Systems)
		assert.True(t, got.Inferred, "%v", sentinel)
		assert.Empty(t, f.Text(mlattr.JobID))
	}
}

func TestInferredRun(t *testing.T) {
	none := factsOf(t, nil)
	infer := func(p Process, s mlattr.System) Run { return Of(none, &p, p.key(), s) }
	rank := Process{Service: "torchtel", Host: "n1", WorldSize: 8}

	first, second := rank, rank
	first.PID, first.Instance = "1", "a"
	second.PID, second.Instance = "2", "b"
	assert.Equal(t, infer(first, mlattr.TorchTel), infer(second, mlattr.TorchTel), "ranks of a job on a host share a run")
	first.WorldSize, second.WorldSize = 1, 1
	assert.NotEqual(t, infer(first, mlattr.TorchTel), infer(second, mlattr.TorchTel), "two single processes do not")
	other := rank
	other.Host = "n2"
	assert.NotEqual(t, infer(rank, mlattr.TorchTel), infer(other, mlattr.TorchTel))
	assert.NotEqual(t, infer(Process{Service: "ab", Host: "c"}, mlattr.FX), infer(Process{Service: "a", Host: "bc"}, mlattr.FX))

	assert.Equal(t, Run{}, infer(rank, 0), "a stranger gets none")
	assert.Equal(t, Run{}, infer(rank, mlattr.TuFT), "a fine-tuning service is no run")
	assert.Equal(t, Run{}, infer(Process{Service: "snakepit.python.bridge"}, mlattr.Snakepit))
	assert.Equal(t, Run{}, infer(Process{}, mlattr.FX), "an empty resource tells nothing apart")
	assert.Equal(t, Run{PerTrace: true}, infer(Process{Service: "agent"}, mlattr.TaskWeaver))
	assert.True(t, infer(Process{Service: "agent", Host: "n1"}, mlattr.TaskWeaver).Inferred)
}

func TestKeysAreMadeOnceAndBounded(t *testing.T) {
	var keys Keys
	for i := range 2 * maxKeys {
		p := Process{Service: "s", Instance: strconv.Itoa(i)}
		assert.Equal(t, p.key(), keys.Of(&p))
		assert.Equal(t, p.key(), keys.Of(&p), "the one that is kept")
	}
	assert.LessOrEqual(t, len(keys), maxKeys)
}
