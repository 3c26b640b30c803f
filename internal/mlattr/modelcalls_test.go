package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestModelRequests(t *testing.T) {
	for _, operation := range []string{"chat", "text_completion", "LLM", "completion", "embedding", "embeddings", "rerank", "RERANKER"} {
		assert.True(t, mlattr.IsModelRequest(operation), operation)
	}
	for _, operation := range []string{"", "execute_tool", "AGENT", "CHAIN", "workflow"} {
		assert.False(t, mlattr.IsModelRequest(operation), operation)
	}
	assert.Equal(t, mlattr.GenAIOperationName, mlattr.OperationKeys()[0])
	assert.Contains(t, mlattr.AddressKeys(), "gen_ai.openai.api_base")
	assert.NotEmpty(t, mlattr.ListedRequests())
}

func TestSumsUsage(t *testing.T) {
	for _, name := range []string{"invoke_agent", "invoke_agent planner", "ai.generateText", "ai.streamText chat", "agent_step"} {
		assert.True(t, mlattr.SumsUsage(name), name)
	}
	for _, name := range []string{"", "ai.generateText.doGenerate", "invoke_agents", "chat", "ai.toolCall"} {
		assert.False(t, mlattr.SumsUsage(name), name)
	}
}

func TestRunners(t *testing.T) {
	assert.True(t, mlattr.IsRunner("mlflow"))
	assert.False(t, mlattr.IsRunner("train"))
	assert.Subset(t, mlattr.Packages(), []string{"mlflow", "vllm"})
}
