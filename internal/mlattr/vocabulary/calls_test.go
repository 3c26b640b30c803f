package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestPartsOfCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		system vocabulary.System
		part   table.CallPart
		of     string
		queued bool
	}{
		"CodeExecutor.execute_code":              {part: table.WholeCall, of: "execute_code"},
		"load_plugin":                            {system: systemTaskWeaver, part: table.WholeCall, of: "load_plugin"},
		"run_code":                               {system: systemTaskWeaver, part: table.FunctionPart, of: "execute_code"},
		"start":                                  {system: systemTaskWeaver, part: table.QueuePart, of: "execute_code"},
		"BridgeService/ExecuteTool":              {system: systemSnakepit, part: table.FunctionPart},
		"BridgeService/Ping":                     {system: systemSnakepit},
		"snakepit.grpc.execute_tool":             {part: table.SharedCall},
		"snakepit.call.stop":                     {part: table.SharedCall},
		"snakepit.pool.checkout":                 {},
		"future_store.execute_operation":         {part: table.WholeCall, queued: true},
		"training_controller.save_checkpoint":    {queued: true},
		"training_controller.run_forward":        {queued: true},
		"training_controller.run_something_else": {system: systemTuFT, queued: true},
		"training_controller.create_model":       {part: table.WholeCall},
		"oai.proxy_inference":                    {system: systemTuFT, part: table.WholeCall},
		"training_backend.forward":               {},
		"":                                       {},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetName(name)
			f := new(vocabulary.Facts)
			for range 2 { // the second time what was read before must be gone
				vocabulary.Default().Span(tt.system, span, f)
				part, of := f.Call()
				assert.Equal(t, tt.part, part)
				assert.Equal(t, tt.of, of)
				assert.Equal(t, tt.queued, f.Queued())
				f := enriched(t, tt.system, span)
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
	f := new(vocabulary.Facts)
	for _, name := range []string{"run_code", "start", "BridgeService/ExecuteTool", "training_controller.run_job", "oai.proxy_inference"} {
		span := ptrace.NewSpan()
		span.SetName(name)
		vocabulary.Default().Span(systemGenAI, span, f)
		part, _ := f.Call()
		assert.Equal(t, table.NoCall, part, name)
		assert.False(t, f.Queued(), name)
	}
}

func TestKeysOfCalls(t *testing.T) {
	keys := vocabulary.Calls()
	assert.Equal(t, []string{"snakepit.payload"}, keys.Payload)
	assert.Equal(t, []string{"args", "snakepit.args"}, keys.Args)
	assert.Equal(t, []string{"code"}, keys.Code)
	assert.Equal(t, []string{"snakepit.grpc.error"}, keys.ErrorMessage)
	keys.Args[0] = "changed"
	assert.Equal(t, "args", vocabulary.Calls().Args[0], "the caller's copy")

	for _, key := range keys.Correlation {
		assert.True(t, vocabulary.IsCorrelation(key))
	}
	for _, key := range []string{"", "snakepit.correlation_ix", "correlation", "http.route"} {
		assert.False(t, vocabulary.IsCorrelation(key), key)
	}
	assert.True(t, vocabulary.RunsCode("CodeExecutor.execute_code"))
	assert.False(t, vocabulary.RunsCode("Planner.reply"))
}

func TestModelRequests(t *testing.T) {
	for _, operation := range []string{"chat", "text_completion", "LLM", "completion", "embedding", "embeddings", "rerank", "RERANKER"} {
		assert.True(t, vocabulary.IsModelRequest(operation), operation)
	}
	for _, operation := range []string{"", "execute_tool", "AGENT", "CHAIN", "workflow"} {
		assert.False(t, vocabulary.IsModelRequest(operation), operation)
	}
	assert.Equal(t, mlattr.GenAIOperationName, vocabulary.OperationKeys()[0])
	assert.Contains(t, vocabulary.AddressKeys(), "gen_ai.openai.api_base")
}

func TestSumsUsage(t *testing.T) {
	for _, name := range []string{"invoke_agent", "invoke_agent planner", "ai.generateText", "ai.streamText chat", "agent_step"} {
		assert.True(t, vocabulary.SumsUsage(name), name)
	}
	for _, name := range []string{"", "ai.generateText.doGenerate", "invoke_agents", "chat", "ai.toolCall"} {
		assert.False(t, vocabulary.SumsUsage(name), name)
	}
}
