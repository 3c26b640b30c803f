package scenario

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestTaskWeaverVocabulary(t *testing.T) {
	out := send(t, "taskweaver", 60)
	assert.Equal(t, []string{
		"CodeExecutor.execute_code",
		"CodeGenerator.reply", "CodeGeneratorCLIOnly.reply", "CodeGeneratorPluginOnly.reply",
		"CodeInterpreter.reply", "CodeInterpreter.verify_code", "CodeInterpreterCLIOnly.reply", "CodeInterpreterPluginOnly.reply",
		"ExperienceGenerator.summarize_experience", "Planner.reply", "RoundCompressor._summarize", "RoundCompressor.compress_rounds",
		"Session._send_text_message", "Session.send_message", "Session.stop", "_send_message", "load_plugin", "run_code", "start",
	}, names(out.spans))
	assert.Equal(t, []string{"prompt_size sum 1"}, metricNames(out.metrics))
	for _, span := range out.spans {
		assert.Equal(t, sentlog.Attributes{"service.name": "taskweaver.otlp.tracer", "ml.simulated": true}, span.Resource)
	}
	for _, span := range out.named("Planner.reply") {
		assert.IsType(t, int64(0), span.Attributes["prompt_size"])
		assert.IsType(t, int64(0), span.Attributes["output_size"])
	}
}

// TestTaskWeaverRootIsLast shows that only the root names the session, and that
// it is sent after everything else of its trace, often in a later request.
func TestTaskWeaverRootIsLast(t *testing.T) {
	request := map[string]int{}
	split := 0
	for i, b := range perform(t, "taskweaver", testSettings(), 60) {
		for _, e := range b.Entries() {
			span := e.Span
			if span == nil {
				continue
			}
			switch span.Name {
			case "ExperienceGenerator.summarize_experience", "Session.stop":
				assert.Empty(t, span.ParentSpanID)
				assert.NotContains(t, span.Attributes, "session_id")
				continue
			}
			if span.Name != "Session.send_message" {
				assert.NotContains(t, span.Attributes, "session_id")
				assert.NotEmpty(t, span.ParentSpanID)
				last, seen := request[span.TraceID]
				assert.False(t, seen && last < 0, "%s was sent after its root", span.Name)
				request[span.TraceID] = i
				continue
			}
			assert.Empty(t, span.ParentSpanID)
			assert.NotEmpty(t, span.Attributes["session_id"])
			if request[span.TraceID] != i {
				split++
			}
			request[span.TraceID] = -1
		}
	}
	assert.NotZero(t, split)
}

// TestTaskWeaverTokens compares the counter with the spans.
func TestTaskWeaverTokens(t *testing.T) {
	out := send(t, "taskweaver", 60)
	bySpans := map[string]int64{}
	for _, span := range out.spans {
		if n, ok := span.Attributes["prompt_size"].(int64); ok {
			bySpans["input"] += n
		}
		if n, ok := span.Attributes["output_size"].(int64); ok {
			bySpans["output"] += n
		}
	}
	byCounter, byTruth := map[string]int64{}, map[string]int64{}
	for _, point := range out.last("prompt_size") {
		byCounter[point.Attributes["direction"].(string)] += int64(point.Value)
	}
	for _, directions := range out.truth.Tokens {
		for direction, n := range directions {
			byTruth[direction] += n
		}
	}
	assert.Equal(t, bySpans, byCounter)
	assert.Equal(t, bySpans, byTruth)
	for _, role := range []string{"Planner", "CodeGenerator", "CodeGeneratorCLIOnly", "CodeGeneratorPluginOnly", "RoundCompressor", "ExperienceGenerator"} {
		assert.NotZero(t, out.truth.Tokens[role]["input"], role)
	}
}

// TestTaskWeaverCompression shows that each reply of the planner asks for a
// compression, and most of them need none.
func TestTaskWeaverCompression(t *testing.T) {
	out := send(t, "taskweaver", 60)
	compressions := map[string]*sentlog.Span{}
	for _, span := range out.named("RoundCompressor.compress_rounds") {
		compressions[span.SpanID] = span
	}
	assert.Len(t, compressions, len(out.named("Planner.reply")))
	summaries := out.named("RoundCompressor._summarize")
	require.NotEmpty(t, summaries)
	assert.Less(t, len(summaries), len(compressions))
	for _, span := range summaries {
		require.Contains(t, compressions, span.ParentSpanID)
		assert.Equal(t, span.Attributes["summary"], compressions[span.ParentSpanID].Attributes["chat_summary"])
	}
}

func TestTaskWeaverFailures(t *testing.T) {
	out := send(t, "taskweaver", 120)
	byID := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		byID[span.SpanID] = span
	}
	codes, rounds := 0, 0
	for _, failure := range out.truth.Failures {
		span := byID[failure.SpanID]
		require.NotNil(t, span)
		assert.Equal(t, "error", span.Status.Code)
		switch failure.Name {
		case "CodeExecutor.execute_code":
			codes++
			assert.Equal(t, "Code execution failed.", span.Status.Message)
			assert.Empty(t, span.Events, "no event tells what failed")
			assert.Contains(t, span.Attributes["result"], failure.ExceptionMessage)
		case "Session._send_text_message":
			rounds++
			require.Len(t, span.Events, 1)
			assert.Equal(t, "Exception", span.Events[0].Attributes["exception.type"])
			root := byID[span.ParentSpanID]
			assert.Equal(t, "Chat round is not finished successfully.", root.Status.Message)
			assert.NotContains(t, root.Attributes, "reply_to_user")
		}
	}
	assert.NotZero(t, codes)
	assert.NotZero(t, rounds)
}

// TestGeneratedCodeFails asks a real Python whether the code with a mistake in
// it raises what the spans say.
func TestGeneratedCodeFails(t *testing.T) {
	python, err := exec.LookPath("python3")
	require.NoError(t, err, "this test runs the code in a real Python")
	const program = `
import sys, traceback
try:
    exec(sys.argv[1], {})
except Exception as e:
    print("%s: %s in line %d" % (type(e).__name__, e, traceback.extract_tb(e.__traceback__)[1].lineno))
`
	for _, task := range weaverTasks {
		said, err := exec.CommandContext(t.Context(), python, "-I", "-c", program, task.bug.code).CombinedOutput()
		require.NoError(t, err, string(said))
		assert.Equal(t, fmt.Sprintf("%s: %s in line %d\n", task.bug.kind, task.bug.message, task.bug.line), string(said))
		assert.Contains(t, task.bug.printed(), "\n    "+strings.Split(task.bug.code, "\n")[task.bug.line-1]+"\n")
	}
}
