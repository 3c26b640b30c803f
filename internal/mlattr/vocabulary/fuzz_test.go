package vocabulary_test

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// FuzzReadText has every reader read any text.
func FuzzReadText(f *testing.F) {
	for _, text := range []string{"", "0", "-1", "1e3", "NaN", "inf", "cuda:1", "{:cuda, 0}", "a b", "\xff", "none"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := pcommon.NewValueStr(text)
		if d, ok, nonFinite := mlattr.ReadDouble(v); ok {
			assert.False(t, nonFinite || math.IsNaN(d) || math.IsInf(d, 0))
		}
		if n, ok := mlattr.ReadInt(v); ok {
			d, finite, _ := mlattr.ReadDouble(v)
			assert.True(t, finite)
			assert.InEpsilon(t, 1+math.Abs(d), 1+math.Abs(float64(n)), 1e-9)
		}
		if n, ok := mlattr.ReadDevice(v); ok {
			assert.True(t, n >= 0 && n < 4096)
		}
		if id, ok := mlattr.ReadID(v); ok {
			assert.Equal(t, text, id)
			assert.True(t, len(id) <= mlattr.MaxID && utf8.ValidString(id))
		}
		if label, ok := mlattr.ReadText(v); ok {
			assert.True(t, label != "" && len(label) <= mlattr.MaxText && utf8.ValidString(label))
		}
	})
}

// FuzzSpan has a span of any name with one attribute of any key and value.
func FuzzSpan(f *testing.F) {
	f.Add("torchtel", "epoch_7", "task.a", "0.5")
	f.Add("tuft", "hf_model.forward", "tuft.lora_id", "run")
	f.Add("snakepit", "snakepit.ml.inference", "device", "{:cuda, 0}")
	f.Add("taskweaver", "Planner.reply", "prompt_size", "7")
	f.Add("", "snakepit.grpc.x", "snakepit.grpc.error", "%Snakepit.Error.E{python_type: \"E\"}")
	f.Add("", "ChatCompletion", "openinference.span.kind", "LLM")
	f.Add("", "chat", "langfuse.observation.usage_details", `{"input": 1, "prompt_tokens_details": {"cached_tokens": "2"}}`)
	f.Add("", "chat", "mlflow.spanType", `"CHAT_MODEL"`)
	f.Add("", "chat", "mlflow.llm.model", "\"\\u0000\\ud800\"")
	f.Add("tgi", "generate", "total_time", "1.2ms")
	f.Add("", "chat", "langfuse.observation.completion_start_time", "2026-01-02T03:04:05Z")
	f.Add("", "chat", "a.output", `{"usage":{"prompt_tokens":7,"total":{"x":-1}},"model":"m"}`)
	f.Add("", "chat", "x.span.type", "LLM")
	f.Add("", "chat", "a.status_message", "500")
	f.Add("", "batch_99999999999999999999", "val.\xff", "NaN")
	f.Fuzz(func(t *testing.T, service, name, key, value string) {
		resource, span := pcommon.NewMap(), ptrace.NewSpan()
		resource.PutStr("service.name", service)
		span.SetName(name)
		if name == "chat" {
			span.Attributes().PutStr(mlattr.GenAIOperationName, name)
		}
		span.Attributes().PutStr(key, value)
		_, facts := vocabulary.Classify(resource, "", span)
		seen := make(map[string]bool)
		for fact := range facts.All() {
			assert.False(t, seen[fact.Key], "%q twice", fact.Key)
			seen[fact.Key] = true
			assert.True(t, utf8.ValidString(fact.Key))
			fact.Put(span.Attributes())
		}
		got, ok := span.Attributes().Get(key)
		assert.True(t, ok && got.Str() == value, "the producer's attribute stays")
		read, enriched := enrichedFacts(t, resource, "", span)
		assert.Equal(t, read, enriched)
	})
}
