package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestModelRequests(t *testing.T) {
	for _, operation := range []string{"chat", "text_completion", "LLM", "completion", "embedding", "embeddings", "rerank", "RERANKER"} {
		assert.True(t, vocabulary.IsModelRequest(operation), operation)
	}
	for _, operation := range []string{"", "execute_tool", "AGENT", "CHAIN", "workflow"} {
		assert.False(t, vocabulary.IsModelRequest(operation), operation)
	}
	assert.Equal(t, mlattr.GenAIOperationName, vocabulary.OperationKeys()[0])
	assert.Contains(t, vocabulary.AddressKeys(), "gen_ai.openai.api_base")
	assert.NotEmpty(t, vocabulary.ListedRequests())
}

func TestSumsUsage(t *testing.T) {
	for _, name := range []string{"invoke_agent", "invoke_agent planner", "ai.generateText", "ai.streamText chat", "agent_step"} {
		assert.True(t, vocabulary.SumsUsage(name), name)
	}
	for _, name := range []string{"", "ai.generateText.doGenerate", "invoke_agents", "chat", "ai.toolCall"} {
		assert.False(t, vocabulary.SumsUsage(name), name)
	}
}

func TestRunners(t *testing.T) {
	assert.True(t, vocabulary.IsRunner("mlflow"))
	assert.False(t, vocabulary.IsRunner("train"))
	assert.Subset(t, vocabulary.Packages(), []string{"mlflow", "vllm"})
}
