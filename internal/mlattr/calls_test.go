package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestPartsOfCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		system mlattr.System
		part   mlattr.CallPart
		of     string
		queued bool
	}{
		"CodeExecutor.execute_code":              {part: mlattr.WholeCall, of: "execute_code"},
		"load_plugin":                            {system: mlattr.TaskWeaver, part: mlattr.WholeCall, of: "load_plugin"},
		"run_code":                               {system: mlattr.TaskWeaver, part: mlattr.FunctionPart, of: "execute_code"},
		"start":                                  {system: mlattr.TaskWeaver, part: mlattr.QueuePart, of: "execute_code"},
		"BridgeService/ExecuteTool":              {system: mlattr.Snakepit, part: mlattr.FunctionPart},
		"BridgeService/Ping":                     {system: mlattr.Snakepit},
		"snakepit.grpc.execute_tool":             {part: mlattr.SharedCall},
		"snakepit.call.stop":                     {part: mlattr.SharedCall},
		"snakepit.pool.checkout":                 {},
		"future_store.execute_operation":         {part: mlattr.WholeCall, queued: true},
		"training_controller.save_checkpoint":    {queued: true},
		"training_controller.run_forward":        {queued: true},
		"training_controller.run_something_else": {system: mlattr.TuFT, queued: true},
		"training_controller.create_model":       {part: mlattr.WholeCall},
		"oai.proxy_inference":                    {system: mlattr.TuFT, part: mlattr.WholeCall},
		"training_backend.forward":               {},
		"":                                       {},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetName(name)
			f := new(mlattr.Facts)
			for range 2 { // the second time what was read before must be gone
				mlattr.Default().Span(tt.system, span, f)
				part, of := f.Call()
				assert.Equal(t, tt.part, part)
				assert.Equal(t, tt.of, of)
				assert.Equal(t, tt.queued, f.Queued())
				mlattr.Default().Enriched(tt.system, span, mlattr.SlotsOf(), f)
				part, of = f.Call()
				assert.Equal(t, tt.part, part)
				assert.Equal(t, tt.of, of)
				assert.Equal(t, tt.queued, f.Queued())
			}
		})
	}
}

// A program that is no known client may have spans of the same names.
func TestNobodysSpanIsNoCall(t *testing.T) {
	f := new(mlattr.Facts)
	for _, name := range []string{"run_code", "start", "BridgeService/ExecuteTool", "training_controller.run_job", "oai.proxy_inference"} {
		span := ptrace.NewSpan()
		span.SetName(name)
		mlattr.Default().Span(mlattr.GenAI, span, f)
		part, _ := f.Call()
		assert.Equal(t, mlattr.NoCall, part, name)
		assert.False(t, f.Queued(), name)
	}
}

func TestKeysOfCalls(t *testing.T) {
	keys := mlattr.Calls()
	assert.Equal(t, []string{"snakepit.payload"}, keys.Payload)
	assert.Equal(t, []string{"args", "snakepit.args"}, keys.Args)
	assert.Equal(t, []string{"code"}, keys.Code)
	assert.Equal(t, []string{"snakepit.grpc.error"}, keys.ErrorMessage)
	keys.Args[0] = "changed"
	assert.Equal(t, "args", mlattr.Calls().Args[0], "the caller's copy")

	for _, key := range keys.Correlation {
		assert.True(t, mlattr.IsCorrelation(key))
	}
	for _, key := range []string{"", "snakepit.correlation_ix", "correlation", "http.route"} {
		assert.False(t, mlattr.IsCorrelation(key), key)
	}
	assert.True(t, mlattr.RunsCode("CodeExecutor.execute_code"))
	assert.False(t, mlattr.RunsCode("Planner.reply"))
}
