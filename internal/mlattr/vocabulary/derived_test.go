package vocabulary_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What clients state as cost, in each one's own names.
func TestStatedCosts(t *testing.T) {
	request := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3}
	for name, tt := range map[string]struct {
		attrs                map[string]any
		total, input, output any
	}{
		"Pydantic AI":     {attrs: map[string]any{"operation.cost": 0.5}, total: 0.5},
		"OpenLIT":         {attrs: map[string]any{"gen_ai.usage.cost": 0.5}, total: 0.5},
		"OpenRouter":      {attrs: map[string]any{"gen_ai.usage.total_cost": 0.5}, total: 0.5},
		"LiteLLM":         {attrs: map[string]any{"gen_ai.cost.total_cost": 0.5, "gen_ai.cost.input_cost": 0.1, "gen_ai.cost.output_cost": "0.4"}, total: 0.5, input: 0.1, output: 0.4},
		"LiteLLM 2":       {attrs: map[string]any{"litellm.cost.total": 0.5, "litellm.cost.input": 0.1, "litellm.cost.output": 0.4}, total: 0.5, input: 0.1, output: 0.4},
		"OpenInference":   {attrs: map[string]any{"llm.cost.total": 0.5, "llm.cost.prompt": 0.1, "llm.cost.completion": 0.4}, total: 0.5, input: 0.1, output: 0.4},
		"MLflow":          {attrs: map[string]any{"mlflow.llm.cost": `{"input_cost": 0.1, "output_cost": 0.4, "total_cost": 0.5}`}, total: 0.5, input: 0.1, output: 0.4},
		"Langfuse":        {attrs: map[string]any{"langfuse.observation.cost_details": `{"input": 0.1, "output": 0.4, "total": 0.5}`}, total: 0.5, input: 0.1, output: 0.4},
		"Dify":            {attrs: map[string]any{"dify.node.total_price": 0.5}, total: 0.5},
		"Dify in dollars": {attrs: map[string]any{"dify.node.total_price": "0.5", "dify.node.currency": "usd"}, total: 0.5},
		"Dify in yuan":    {attrs: map[string]any{"dify.node.total_price": 0.5, "dify.node.currency": "RMB"}},
		"no number":       {attrs: map[string]any{"gen_ai.usage.cost": "free"}},
	} {
		t.Run(name, func(t *testing.T) {
			maps.Copy(tt.attrs, request)
			scope := ""
			if name == "Pydantic AI" {
				scope = "pydantic-ai"
			}
			_, got := classify(t, nil, scope, "chat", tt.attrs)
			assert.Equal(t, tt.total, got["ml.usage.cost"])
			assert.Equal(t, tt.input, got["ml.usage.input_cost"])
			assert.Equal(t, tt.output, got["ml.usage.output_cost"])
			assert.NotContains(t, got, "ml.usage.currency")
		})
	}
}
