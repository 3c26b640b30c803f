package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRunsOfLaunchers shows the run, the attempt and the job of resources as
// launchers, schedulers and trackers describe them.
func TestRunsOfLaunchers(t *testing.T) {
	type attrs = map[string]any
	for name, tt := range map[string]struct{ resource, want attrs }{
		"MLflow":                      {attrs{"mlflow.run_id": "a1"}, attrs{"ml.run.id": "a1"}},
		"MLflow's environment":        {attrs{"MLFLOW_RUN_ID": "a1"}, attrs{"ml.run.id": "a1"}},
		"W&B's environment":           {attrs{"WANDB_RUN_ID": "w1"}, attrs{"ml.run.id": "w1"}},
		"torchrun":                    {attrs{"TORCHELASTIC_RUN_ID": "e1", "TORCHELASTIC_RESTART_COUNT": "2"}, attrs{"ml.run.id": "e1", "ml.run.attempt": int64(2)}},
		"torchrun, the first attempt": {attrs{"TORCHELASTIC_RUN_ID": "e1", "TORCHELASTIC_RESTART_COUNT": 0}, attrs{"ml.run.id": "e1", "ml.run.attempt": int64(0)}},
		"torchrun without an id":      {attrs{"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": 1}, attrs{"ml.run.attempt": int64(1)}},
		"torchrun in Slurm": {
			attrs{"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "4711", "TORCHELASTIC_RESTART_COUNT": 1, "SLURM_RESTART_COUNT": 3},
			attrs{"ml.run.id": "4711", "ml.job.id": "4711", "ml.run.attempt": int64(1)},
		},
		"Slurm, queued again":     {attrs{"SLURM_JOB_ID": "4711", "SLURM_RESTART_COUNT": "3"}, attrs{"ml.run.id": "4711", "ml.job.id": "4711", "ml.run.attempt": int64(3)}},
		"Slurm by its attribute":  {attrs{"slurm.job.id": 4711}, attrs{"ml.run.id": "4711", "ml.job.id": "4711"}},
		"a restart count of -1":   {attrs{"SLURM_JOB_ID": "4711", "SLURM_RESTART_COUNT": -1}, attrs{"ml.run.id": "4711", "ml.job.id": "4711"}},
		"MLflow in Slurm":         {attrs{"mlflow.run_id": "a1", "SLURM_JOB_ID": "4711"}, attrs{"ml.run.id": "a1", "ml.job.id": "4711"}},
		"a Kubernetes job":        {attrs{"k8s.job.uid": "u1"}, attrs{"ml.run.id": "u1"}},
		"Slurm in Kubernetes":     {attrs{"k8s.job.uid": "u1", "SLURM_JOB_ID": "4711"}, attrs{"ml.run.id": "4711", "ml.job.id": "4711"}},
		"a run that is no run":    {attrs{"mlflow.run_id": "none", "k8s.job.uid": "u1"}, attrs{"ml.run.id": "u1"}},
		"a run with white space":  {attrs{"mlflow.run_id": "my run", "k8s.job.uid": "u1"}, attrs{"ml.run.id": "u1"}},
		"Slurm's job 0":           {attrs{"SLURM_JOB_ID": "0"}, attrs{}},
		"nobody":                  {attrs{}, attrs{}},
		"somebody's canonical id": {attrs{"ml.run.id": "own", "mlflow.run_id": "a1"}, attrs{"ml.run.id": "own"}},
	} {
		t.Run(name, func(t *testing.T) {
			td := batchOf("x", testSpan{1, 1, 0, "s", nil})
			for key, value := range tt.resource {
				require.NoError(t, td.ResourceSpans().At(0).Resource().Attributes().PutEmpty(key).FromRaw(value))
			}
			out := startDefault(t).sendTraces(t, td).ResourceSpans().At(0).Resource().Attributes().AsRaw()
			got := attrs{}
			for _, key := range []string{"ml.run.id", "ml.run.inferred", "ml.run.attempt", "ml.job.id"} {
				if value, ok := out[key]; ok {
					got[key] = value
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}
