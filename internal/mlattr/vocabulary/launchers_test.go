package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestLaunchers shows what each key of a launcher, scheduler or tracker means,
// alone and without a word for none.
func TestLaunchers(t *testing.T) {
	tests := map[string]struct {
		value any
		key   string
		want  string
	}{
		"mlflow.run_id":              {"a1", mlattr.RunID, "a1"},
		"mlflow.run.id":              {"a1", mlattr.RunID, "a1"},
		"MLFLOW_RUN_ID":              {"a1", mlattr.RunID, "a1"},
		"wandb.run_id":               {"w1", mlattr.RunID, "w1"},
		"wandb.run.id":               {"w1", mlattr.RunID, "w1"},
		"WANDB_RUN_ID":               {"w1", mlattr.RunID, "w1"},
		"TORCHELASTIC_RUN_ID":        {"e1", mlattr.RunID, "e1"},
		"slurm.job.id":               {"4711", mlattr.JobID, "4711"},
		"SLURM_JOB_ID":               {4711, mlattr.JobID, "4711"},
		"k8s.job.uid":                {"u1", mlattr.KubernetesJob, "u1"},
		"TORCHELASTIC_RESTART_COUNT": {"2", mlattr.RunAttempt, ""},
		"SLURM_RESTART_COUNT":        {2, mlattr.RunAttempt, ""},
	}
	read := func(attrs map[string]any) *vocabulary.Facts {
		res := pcommon.NewMap()
		require.NoError(t, res.FromRaw(attrs))
		f := new(vocabulary.Facts)
		vocabulary.Default().Resource(res, f)
		return f
	}
	client := vocabulary.Tables()[0]
	require.Equal(t, "launchers", client.Name)
	require.Len(t, tests, len(client.Resource), "each has a test")
	for _, alias := range client.Resource {
		tt, ok := tests[alias.Source]
		require.True(t, ok, alias.Source)
		f := read(map[string]any{alias.Source: tt.value})
		require.NotNil(t, f.Find(tt.key), alias.Source)
		if tt.want == "" {
			n, _ := f.IntAt(vocabulary.SlotOf(tt.key))
			assert.EqualValues(t, 2, n, alias.Source)
			assert.Nil(t, read(map[string]any{alias.Source: -1}).Find(tt.key), alias.Source)
			continue
		}
		assert.Equal(t, tt.want, f.Text(tt.key), alias.Source)
		if tt.key != mlattr.KubernetesJob {
			for _, none := range []string{"none", "0", "-1", "null", "local", "unknown"} {
				f := read(map[string]any{alias.Source: none})
				assert.Nil(t, f.Find(tt.key), "%s is %s", alias.Source, none)
				assert.Zero(t, f.Rejected, "%s is %s", alias.Source, none)
			}
		}
	}
	f := read(map[string]any{"MLFLOW_RUN_ID": "none", "WANDB_RUN_ID": "w1"})
	assert.Equal(t, "w1", f.Text(mlattr.RunID), "who has no run leaves it to the next")
	f = read(map[string]any{"TORCHELASTIC_RESTART_COUNT": 1, "SLURM_RESTART_COUNT": 2})
	attempt, _ := f.IntAt(vocabulary.SlotRunAttempt)
	assert.EqualValues(t, 1, attempt, "torchelastic starts again within the job")
}
