package run

import (
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var torchTel = Process{Service: "torchtel"}

func factsOf(t *testing.T, attrs map[string]any) *vocabulary.Facts {
	t.Helper()
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(attrs))
	f, _ := vocabulary.Classify(m, "", ptrace.NewSpan())
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
		assert.Equal(t, Run{ID: step.want}, Of(f, &torchTel, torchTel.Key(), f.Systems), "without %q", step.remove)
	}
	delete(all, "k8s.job.uid")
	f := factsOf(t, all)
	got := Of(f, &torchTel, torchTel.Key(), f.Systems)
	assert.True(t, got.Inferred)
	assert.Len(t, got.ID, idLength)
}

func TestSentinelsAreNoRun(t *testing.T) {
	for _, sentinel := range []any{0, "0", "", "local", "none", "None", "-1", -1, "null"} {
		f := factsOf(t, map[string]any{"service.name": "torchtel", "job_id": sentinel, "TORCHELASTIC_RUN_ID": "none"})
		got := Of(f, &torchTel, torchTel.Key(), f.Systems)
		assert.True(t, got.Inferred, "%v", sentinel)
		assert.Empty(t, f.Text(mlattr.JobID))
	}
}

func TestInferredRun(t *testing.T) {
	none := factsOf(t, nil)
	infer := func(p Process, s vocabulary.System) Run { return Of(none, &p, p.Key(), s) }
	rank := Process{Service: "torchtel", Host: "n1", WorldSize: 8}

	first, second := rank, rank
	first.PID, first.Instance = "1", "a"
	second.PID, second.Instance = "2", "b"
	assert.Equal(t, infer(first, systemTorchTel), infer(second, systemTorchTel), "ranks of a job on a host share a run")
	first.WorldSize, second.WorldSize = 1, 1
	assert.NotEqual(t, infer(first, systemTorchTel), infer(second, systemTorchTel), "two single processes do not")
	other := rank
	other.Host = "n2"
	assert.NotEqual(t, infer(rank, systemTorchTel), infer(other, systemTorchTel))
	assert.NotEqual(t, infer(Process{Service: "ab", Host: "c"}, systemFX), infer(Process{Service: "a", Host: "bc"}, systemFX))

	assert.Equal(t, Run{}, infer(rank, 0), "a stranger gets none")
	assert.Equal(t, Run{}, infer(rank, systemTuFT), "a fine-tuning service is no run")
	assert.Equal(t, Run{}, infer(Process{Service: "snakepit.python.bridge"}, systemSnakepit))
	assert.Equal(t, Run{}, infer(Process{}, systemFX), "an empty resource tells nothing apart")
	assert.Equal(t, Run{PerTrace: true}, infer(Process{Service: "agent"}, systemTaskWeaver))
	assert.True(t, infer(Process{Service: "agent", Host: "n1"}, systemTaskWeaver).Inferred)
}

// Trainings that nobody named are distinguished by what their resources say, and the
// processes of one training are one run.
func TestUnnamedTrainings(t *testing.T) {
	process := func(attrs map[string]any) map[string]any {
		all := map[string]any{"service.name": "torchtel", "job_id": 0, "job_name": "local", "TORCHELASTIC_RUN_ID": "none", "host.name": "n1"}
		maps.Copy(all, attrs)
		return all
	}
	rank := func(rank, pid, parent int, attrs map[string]any) map[string]any {
		all := process(map[string]any{
			"global_rank": rank, "local_rank": rank % 2, "world_size": 2, "process.pid": pid, "process.parent_pid": parent,
			"service.instance.id": strconv.Itoa(pid), "process.creation.time": "2026-11-23T08:00:0" + strconv.Itoa(rank) + "Z",
		})
		maps.Copy(all, attrs)
		return all
	}
	for name, tt := range map[string]struct {
		first, second map[string]any
		same          bool
	}{
		"one after the other, by pid":      {first: process(map[string]any{"process.pid": 1}), second: process(map[string]any{"process.pid": 2})},
		"one after the other, by instance": {first: process(map[string]any{"service.instance.id": "a"}), second: process(map[string]any{"service.instance.id": "b"})},
		"one after the other, one pid": {
			first:  process(map[string]any{"process.pid": 1, "process.creation.time": "2026-11-23T08:00:00Z"}),
			second: process(map[string]any{"process.pid": 1, "process.creation.time": "2026-11-23T09:00:00Z"}),
		},
		"two hosts":                       {first: process(nil), second: process(map[string]any{"host.name": "n2"})},
		"two names of jobs":               {first: process(nil), second: process(map[string]any{"job_name": "sft"})},
		"two torchruns at once":           {first: rank(0, 10, 5, nil), second: rank(0, 20, 6, nil)},
		"two torchruns, of two ranks":     {first: rank(0, 10, 5, nil), second: rank(1, 21, 6, nil)},
		"two torchruns on two hosts":      {first: rank(0, 10, 5, nil), second: rank(0, 10, 5, map[string]any{"host.name": "n2"})},
		"the ranks of one torchrun":       {first: rank(0, 10, 5, nil), second: rank(1, 11, 5, nil), same: true},
		"ranks that torchrun has renewed": {first: rank(0, 10, 5, nil), second: rank(0, 30, 5, map[string]any{"TORCHELASTIC_RESTART_COUNT": 1}), same: true},
		"ranks without a launcher":        {first: rank(0, 10, 1, nil), second: rank(1, 11, 0, nil), same: true},
		"ranks with an unreadable one": {
			first: rank(0, 10, 1, map[string]any{"process.parent_pid": "two words"}), second: rank(1, 11, 1, map[string]any{"process.parent_pid": []any{5}}), same: true},
		"nothing tells them apart": {first: process(nil), second: process(nil), same: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(attrs map[string]any) Run {
				m := pcommon.NewMap()
				require.NoError(t, m.FromRaw(attrs))
				f := factsOf(t, attrs)
				p := Read(m, f)
				run := Of(f, &p, p.Key(), f.Systems)
				assert.True(t, run.Inferred)
				assert.Len(t, run.ID, idLength)
				return run
			}
			assert.Equal(t, tt.same, of(tt.first) == of(tt.second))
		})
	}
}
