package spans

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// shown is what a span of a resource shows.
func shown(t *testing.T, service, name string, attrs map[string]any) runs.Span {
	t.Helper()
	resource, span := pcommon.NewMap(), ptrace.NewSpan()
	resource.PutStr("service.name", service)
	span.SetName(name)
	require.NoError(t, span.Attributes().FromRaw(attrs))
	_, facts := vocabulary.Classify(resource, "", span)
	v := readValues(facts)
	span.SetStartTimestamp(10)
	span.SetEndTimestamp(20)
	r, s := Reader{now: 20, spanFacts: spanFacts{ofSpan: facts}}, runs.Span{}
	r.readActivity(&s, &v, vocabulary.Default().Event(name), span)
	return s
}

func TestActivity(t *testing.T) {
	const none = wallclock.State(255)
	for name, tt := range map[string]struct {
		service, span string
		attrs         map[string]any
		state         wallclock.State
		phase         wallclock.Phase
	}{
		"a forward pass":                    {"torchtel", "GPT.forward", nil, wallclock.Productive, wallclock.Forward},
		"TuFT's work":                       {"tuft", "training_backend.forward_backward", nil, wallclock.Productive, wallclock.ForwardBackward},
		"its wait for the run":              {"tuft", "training_controller.run_forward_backward", nil, wallclock.Queueing, wallclock.ForwardBackward},
		"its future":                        {"tuft", "future_store.execute_operation", nil, wallclock.Queueing, wallclock.NoPhase},
		"a model that is made":              {"tuft", "training_controller.create_model", nil, none, wallclock.NoPhase},
		"weights that are saved":            {"tuft", "training_backend.save_state", nil, wallclock.Checkpointing, wallclock.Checkpoint},
		"weights that are loaded":           {"tuft", "training_backend.load_state", nil, wallclock.Restoring, wallclock.Checkpoint},
		"the same behind Ray":               {"tuft", "hf_model.load_state", nil, wallclock.Restoring, wallclock.Checkpoint},
		"a checkpoint that somebody reads":  {"trainer", "load", map[string]any{"ml.phase": "checkpoint", "ml.operation": "load_checkpoint"}, wallclock.Restoring, wallclock.Checkpoint},
		"a stranger with a name of TuFT's":  {"trainer", "training_controller.run_x", nil, none, wallclock.NoPhase},
		"a sample":                          {"tuft", "sampling_backend.sample", nil, none, wallclock.NoPhase},
		"a training that is over":           {"torchtel", "train", nil, none, wallclock.NoPhase},
		"a training step of Snakepit":       {"snakepit", "snakepit.ml.train_step", nil, none, wallclock.NoPhase},
		"an epoch, which spans other spans": {"fx", "epoch_3", nil, none, wallclock.NoPhase},
	} {
		t.Run(name, func(t *testing.T) {
			a := shown(t, tt.service, tt.span, tt.attrs)
			assert.Equal(t, tt.state != none, a.Timed)
			assert.Equal(t, tt.phase, a.Time.Phase)
			if a.Timed {
				assert.Equal(t, tt.state, a.Time.State)
			}
			assert.Equal(t, tt.span == "train", a.EndsRun, "only the span of the whole training ends it")
		})
	}
}

// Only what numbers the steps of a run tells which of them are done again.
func TestStepNumbers(t *testing.T) {
	assert.Equal(t, int64(7), shown(t, "trainer", "step", map[string]any{"ml.phase": "optimizer", "ml.step": 7}).Step)
	assert.Zero(t, shown(t, "fx", "batch_7", map[string]any{"step": 7, "loss": 0.5}).Step, "each epoch begins with 1")
}

func readValues(facts *vocabulary.Facts) (v spanfact.Fact) {
	v.Read(facts)
	return v
}
