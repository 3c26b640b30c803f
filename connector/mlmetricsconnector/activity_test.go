package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// shown is what a span of a resource shows.
func shown(t *testing.T, service, name string, attrs map[string]any) activity {
	t.Helper()
	resource, span := pcommon.NewMap(), ptrace.NewSpan()
	resource.PutStr("service.name", service)
	span.SetName(name)
	require.NoError(t, span.Attributes().FromRaw(attrs))
	_, facts := mlattr.Classify(resource, "", span)
	v := readValues(facts)
	return activityOf(program{}, &v, facts, mlattr.Default().Event(name), 10, 20)
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
			assert.Equal(t, tt.state != none, a.timed)
			assert.Equal(t, tt.phase, a.span.Phase)
			if a.timed {
				assert.Equal(t, tt.state, a.span.State)
			}
			assert.Equal(t, tt.span == "train", a.endsRun, "only the span of the whole training ends it")
		})
	}
}

// Only what numbers the steps of a run tells which of them are done again.
func TestStepNumbers(t *testing.T) {
	assert.Equal(t, int64(7), shown(t, "trainer", "step", map[string]any{"ml.phase": "optimizer", "ml.step": 7}).step)
	assert.Zero(t, shown(t, "fx", "batch_7", map[string]any{"step": 7, "loss": 0.5}).step, "each epoch begins with 1")
}

func TestProgram(t *testing.T) {
	const born = "2026-01-02T03:04:05.5Z"
	at := time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC).UnixNano()
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  program
	}{
		"anybody":                {map[string]any{"service.name": "trainer"}, program{}},
		"with a start":           {map[string]any{"service.name": "trainer", "process.creation.time": born}, program{born: at}},
		"with no time as start":  {map[string]any{"service.name": "trainer", "process.creation.time": "soon"}, program{}},
		"with an ancient start":  {map[string]any{"service.name": "trainer", "process.creation.time": "0001-01-01T00:00:00Z"}, program{}},
		"with a number as start": {map[string]any{"service.name": "trainer", "process.creation.time": 5}, program{}},
		"TorchTel":               {map[string]any{"service.name": "torchtel"}, program{noStartup: true}},
		"TorchTel with a start":  {map[string]any{"service.name": "torchtel", "process.creation.time": born}, program{born: at}},
		"TuFT serves many runs":  {map[string]any{"service.name": "tuft", "process.creation.time": born}, program{idles: true, onDemand: true, noStartup: true}},
		"one of several ranks":   {map[string]any{"service.name": "trainer", "ml.world_size": 8}, program{world: 8}},
		"an impossible world":    {map[string]any{"service.name": "trainer", "ml.world_size": 1 << 40}, program{}},
		"a launcher that counts": {map[string]any{"service.name": "trainer", "TORCHELASTIC_RESTART_COUNT": "2"}, program{restarts: 2, numbered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(tt.attrs))
			var facts mlattr.Facts
			mlattr.Default().Resource(attrs, &facts)
			assert.Equal(t, tt.want, programOf(&facts, attrs))
		})
	}
}
