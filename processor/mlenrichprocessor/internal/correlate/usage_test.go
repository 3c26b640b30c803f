package correlate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWraps(t *testing.T) {
	for _, tt := range []struct {
		name, operation string
		want            bool
	}{
		{"planner", "invoke_agent", true},
		{"crew", "invoke_workflow", true},
		{"invoke_agent", "", true},
		{"invoke_agent planner", "", true},
		{"agent_step", "", true},
		{"ai.streamText", "", true},
		{"ai.generateText", "", true},
		{"ai.generateObject", "", true},
		{"ai.streamObject", "", true},
		{"ai.embed", "", true},
		{"ai.embedMany", "", true},
		{"ai.embedMany my-function", "", true},
		{"ai.generateText.doGenerate", "", false},
		{"ai.streamText.doStream", "", false},
		{"ai.generateObject.doGenerate", "", false},
		{"ai.streamObject.doStream", "", false},
		{"ai.embed.doEmbed", "", false},
		{"ai.embedMany.doEmbed", "", false},
		{"ai.toolCall", "", false},
		{"agent_steps", "", false},
		{"chat gpt-4o", "chat", false},
		{"", "", false},
	} {
		assert.Equal(t, tt.want, wraps(tt.name, tt.operation), "%+v", tt)
	}
}
