package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestRun(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs    map[string]any
		run      string // by Facts.Run
		named    string // by Facts.NamedRun
		inferred bool
	}{
		"nothing":                               {},
		"a run":                                 {attrs: map[string]any{"ml.run.id": "r"}, run: "r", named: "r"},
		"an inferred one":                       {attrs: map[string]any{"ml.run.id": "r", "ml.run.inferred": true}, run: "r", named: "r", inferred: true},
		"inferred, but a job":                   {attrs: map[string]any{"ml.run.id": "r", "ml.run.inferred": true, "ml.job.id": "7"}, run: "r", named: "r", inferred: true},
		"a training run before an inferred one": {attrs: map[string]any{"ml.run.id": "r", "ml.run.inferred": true, "ml.training_run.id": "t"}, run: "t", named: "t"},
		"a training run before a launcher's":    {attrs: map[string]any{"mlflow.run_id": "r", "ml.training_run.id": "t"}, run: "t", named: "t"},
		"a launcher's":                          {attrs: map[string]any{"wandb.run_id": "w", "MLFLOW_RUN_ID": "r"}, run: "r", named: "r"},
		"a run that was decided on":             {attrs: map[string]any{"ml.run.id": "r", "ml.training_run.id": "t"}, run: "r", named: "r"},
		"a job":                                 {attrs: map[string]any{"ml.job.id": 7}, run: "7"},
		"a Kubernetes job":                      {attrs: map[string]any{"k8s.job.uid": "u"}, run: "u"},
		"a job before Kubernetes's":             {attrs: map[string]any{"ml.job.id": "7", "k8s.job.uid": "u"}, run: "7"},
		"a sentinel":                            {attrs: map[string]any{"ml.run.id": "None", "ml.training_run.id": "unknown", "ml.job.id": "7"}, run: "7"},
		"sentinels only":                        {attrs: map[string]any{"ml.run.id": "-", "ml.job.id": "0"}},
		"a client's job 0":                      {attrs: map[string]any{"job_id": 0}},
		"no id":                                 {attrs: map[string]any{"ml.run.id": "two words", "ml.job.id": true}},
	} {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(tt.attrs))
			f := new(vocabulary.Facts)
			vocabulary.Default().Resource(attrs, f)
			id, inferred := f.Run()
			assert.Equal(t, tt.run, id)
			assert.Equal(t, tt.inferred, inferred)
			id, inferred = f.NamedRun()
			assert.Equal(t, tt.named, id)
			assert.Equal(t, tt.inferred, inferred)
		})
	}
}

func TestSentinel(t *testing.T) {
	for _, id := range []string{"", "0", "-", "-1", "none", "None", "NULL", "local", "Unknown"} {
		assert.True(t, mlattr.Sentinel(id), id)
	}
	for _, id := range []string{"1", "00", "nine", "locale", "run-0"} {
		assert.False(t, mlattr.Sentinel(id), id)
	}
}

func TestServesCallers(t *testing.T) {
	assert.True(t, vocabulary.ServesCallers("snakepit.python.bridge"))
	assert.False(t, vocabulary.ServesCallers("snakepit"))
	assert.False(t, vocabulary.ServesCallers(""))
}

func TestRunVariablesAreTheLaunchersOwn(t *testing.T) {
	for _, name := range clients.RunVariables {
		attrs := pcommon.NewMap()
		attrs.PutStr(name, "r")
		f := new(vocabulary.Facts)
		vocabulary.Default().Resource(attrs, f)
		id, _ := f.Run()
		assert.Equal(t, "r", id, name)
	}
}
