package vocabulary_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// readSpan reads a span that lasts from second 100 to second 103.
func readSpan(t *testing.T, resource, attrs map[string]any, events ...string) (ptrace.Span, *vocabulary.Facts) {
	t.Helper()
	res, span := pcommon.NewMap(), ptrace.NewSpan()
	require.NoError(t, res.FromRaw(resource))
	require.NoError(t, span.Attributes().FromRaw(attrs))
	span.SetStartTimestamp(100e9)
	span.SetEndTimestamp(103e9)
	for i, name := range events {
		event := span.Events().AppendEmpty()
		event.SetName(name)
		event.SetTimestamp(pcommon.Timestamp(100e9 + (i+1)*250e6))
	}
	_, f := vocabulary.Classify(res, "", span)
	return span, f
}

// all returns every fact, read only ones included.
func all(f *vocabulary.Facts) map[string]any {
	m := make(map[string]any)
	for fact := range f.All() {
		switch {
		case fact.NonFinite || fact.Unreadable:
		case fact.Kind == table.KindInt || fact.Kind == table.KindCount || fact.Kind == table.KindInstant:
			m[fact.Key] = fact.Int
		case fact.Kind == table.KindDouble || fact.Kind == table.KindSeconds:
			m[fact.Key] = fact.Double
		case fact.Kind == table.KindBool:
			m[fact.Key] = fact.Bool
		default:
			m[fact.Key] = fact.Text
		}
	}
	return m
}

// TestClients has, for each client, what its page says that it sends. None of
// it is a recording; the recorded clients are in reader_test.go and in
// processor/mlenrichprocessor/testdata/recordings.
func TestClients(t *testing.T) {
	tgi := map[string]any{"service.name": "text-generation-inference.router"}
	for name, tt := range map[string]struct {
		resource map[string]any
		attrs    map[string]any
		events   []string
		want     map[string]any
	}{
		"vllm": {
			attrs: map[string]any{
				"gen_ai.latency.e2e": 3.0, "gen_ai.latency.time_to_first_token": 0.5, "gen_ai.latency.time_in_queue": 0.1,
				"gen_ai.latency.time_in_model_prefill": 0.4, "gen_ai.latency.time_in_model_decode": 2.5,
				"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 51, "gen_ai.request.id": "cmpl-1", "gen_ai.request.n": 2,
			},
			want: map[string]any{
				"ml.latency": 3.0, "gen_ai.response.time_to_first_chunk": 0.5, "ml.queue.time": 0.1, "ml.latency.prefill": 0.4,
				"ml.latency.decode": 2.5, "gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.output_tokens": int64(51),
				"ml.request.id": "cmpl-1", "gen_ai.request.choice.count": int64(2),
			},
		},
		"openllmetry": {
			attrs: map[string]any{
				"llm.usage.prompt_tokens": "7", "llm.usage.completion_tokens": 3.0, "llm.usage.total_tokens": 10,
				"gen_ai.usage.cache_read_input_tokens": 5, "gen_ai.usage.cache_creation_input_tokens": 1,
				"gen_ai.usage.reasoning_tokens": 2, "gen_ai.is_streaming": true, "gen_ai.system": "Anthropic",
				"traceloop.association.properties.session_id": "s",
			},
			events: []string{"gen_ai.content.completion.chunk", "gen_ai.content.completion.chunk"},
			want: map[string]any{
				"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3), "ml.tokens.total": int64(10),
				"gen_ai.usage.cache_read.input_tokens": int64(5), "gen_ai.usage.cache_creation.input_tokens": int64(1),
				"gen_ai.usage.reasoning.output_tokens": int64(2), "gen_ai.request.stream": true, "gen_ai.provider.name": "Anthropic",
				"ml.session.id": "s", "gen_ai.response.time_to_first_chunk": 0.25,
			},
		},
		"a total is not split": {
			attrs: map[string]any{"llm.usage.total_tokens": 10}, want: map[string]any{"ml.tokens.total": int64(10)},
		},
		"openinference": {
			attrs: map[string]any{
				"openinference.span.kind": "LLM", "llm.token_count.prompt": 7, "llm.token_count.completion": 3, "llm.token_count.total": 10,
				"llm.token_count.prompt_details.cache_read": 4, "llm.token_count.prompt_details.cache_write": 2,
				"llm.token_count.completion_details.reasoning": 1, "llm.provider": "azure", "llm.system": "openai",
			},
			events: []string{"other", "First Token Stream Event"},
			want: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3),
				"ml.tokens.total": int64(10), "gen_ai.usage.cache_read.input_tokens": int64(4),
				"gen_ai.usage.cache_creation.input_tokens": int64(2), "gen_ai.usage.reasoning.output_tokens": int64(1),
				"gen_ai.provider.name": "azure", "gen_ai.response.time_to_first_chunk": 0.5,
			},
		},
		"vercel 5": {
			attrs: map[string]any{
				"ai.operationId": "ai.streamText.doStream", "ai.model.id": "m", "ai.model.provider": "openai.chat", "ai.response.model": "m-1",
				"ai.usage.inputTokens": 7, "ai.usage.outputTokens": 3, "ai.usage.totalTokens": 10, "ai.usage.reasoningTokens": 1,
				"ai.usage.cachedInputTokens": 4, "ai.response.msToFirstChunk": 125.0, "ai.response.avgOutputTokensPerSecond": 12.5,
				"ai.telemetry.metadata.sessionId": "s", "ai.response.id": "r",
			},
			want: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai.chat", "gen_ai.response.model": "m-1",
				"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3), "ml.tokens.total": int64(10),
				"gen_ai.usage.reasoning.output_tokens": int64(1), "gen_ai.usage.cache_read.input_tokens": int64(4),
				"gen_ai.response.time_to_first_chunk": 0.125, "ml.tokens_per_second": 12.5, "ml.session.id": "s", "ml.request.id": "r",
			},
		},
		"vercel 4's embedding": {
			attrs: map[string]any{"ai.operationId": "ai.embed.doEmbed", "ai.usage.tokens": 9},
			want:  map[string]any{"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": int64(9)},
		},
		"vercel's event": {
			attrs: map[string]any{"ai.usage.promptTokens": 9}, events: []string{"ai.stream.firstChunk"},
			want: map[string]any{"gen_ai.usage.input_tokens": int64(9), "gen_ai.response.time_to_first_chunk": 0.25},
		},
		"mlflow's JSON": {
			attrs: map[string]any{
				"mlflow.chat.tokenUsage": `{"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "cache_read_input_tokens": 4}`,
				"mlflow.spanType":        `"CHAT_MODEL"`, "mlflow.llm.model": `"gpt \"4\""`, "mlflow.llm.provider": "openai",
			},
			want: map[string]any{
				"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3), "ml.tokens.total": int64(10),
				"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.operation.name": "chat", "gen_ai.request.model": `gpt "4"`,
				"gen_ai.provider.name": "openai",
			},
		},
		"mlflow's map": {
			attrs: map[string]any{"mlflow.chat.tokenUsage": map[string]any{"input_tokens": 7, "output_tokens": "3"}},
			want:  map[string]any{"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3)},
		},
		"langfuse's JSON": {
			attrs: map[string]any{
				"langfuse.observation.usage_details": `{"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
					"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": null}`,
				"langfuse.observation.type": "generation", "langfuse.observation.model.name": "m", "langfuse.session.id": "s",
				"langfuse.observation.completion_start_time": `"1970-01-01T00:01:40.500+00:00"`,
			},
			want: map[string]any{
				"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3), "ml.tokens.total": int64(10),
				"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
				"ml.session.id": "s", "ml.first_token.time": int64(100.5e9), "gen_ai.response.time_to_first_chunk": 0.5,
			},
		},
		"langfuse's map": {
			attrs: map[string]any{"langfuse.observation.usage_details": map[string]any{"input": 7, "output": 3,
				"completion_tokens_details": map[string]any{"reasoning_tokens": 2}}},
			want: map[string]any{"gen_ai.usage.input_tokens": int64(7), "gen_ai.usage.output_tokens": int64(3),
				"gen_ai.usage.reasoning.output_tokens": int64(2)},
		},
		"a first token of another clock": {
			attrs: map[string]any{"langfuse.observation.completion_start_time": "1970-01-01T00:01:39Z"},
			want:  map[string]any{"ml.first_token.time": int64(99e9)},
		},
		"a first token after the end": {
			attrs: map[string]any{"langfuse.observation.completion_start_time": "1970-01-01T00:01:44Z"},
			want:  map[string]any{"ml.first_token.time": int64(104e9)},
		},
		"a time to first token by two names": {
			attrs: map[string]any{"ai.response.msToFirstChunk": 125, "gen_ai.latency.time_to_first_token": 0.5},
			want:  map[string]any{"gen_ai.response.time_to_first_chunk": 0.5},
		},
		"a text that says its unit is not converted": {
			attrs: map[string]any{"ai.response.msToFirstChunk": "0.5s"},
			want:  map[string]any{"gen_ai.response.time_to_first_chunk": 0.5},
		},
		"a text that is a number is": {
			attrs: map[string]any{"ai.response.msToFirstChunk": "500"},
			want:  map[string]any{"gen_ai.response.time_to_first_chunk": 0.5},
		},
		"a time that is negative has no other stand in": {
			attrs: map[string]any{"ai.response.msToFirstChunk": 125, "gen_ai.latency.time_to_first_token": -0.5},
			want:  map[string]any{},
		},
		"tgi's rate":                            {resource: tgi, attrs: map[string]any{"time_per_token": "25ms", "inference_time": "1s", "validation_time": "1ms"}, want: map[string]any{"ml.tokens_per_second": 40.0}},
		"tgi's time per token of nothing":       {resource: tgi, attrs: map[string]any{"time_per_token": "0ns"}, want: map[string]any{}},
		"tgi's time per token that is negative": {resource: tgi, attrs: map[string]any{"time_per_token": "-25ms"}, want: map[string]any{}},
		"tgi's time per token that is none":     {resource: tgi, attrs: map[string]any{"time_per_token": "soon"}, want: map[string]any{}},
		"a time per token with no end of rate":  {resource: tgi, attrs: map[string]any{"time_per_token": 5e-324}, want: map[string]any{}},
		"a wait that two clocks make negative": {
			attrs: map[string]any{"gen_ai.latency.time_in_queue": -0.25}, want: map[string]any{"ml.queue.time": 0.0},
		},
		"a wait that is no number": {attrs: map[string]any{"gen_ai.latency.time_in_queue": math.Inf(-1)}, want: map[string]any{}},
		"tgi in seconds":           {resource: tgi, attrs: map[string]any{"total_time": "1.23s", "queue_time": "45.6ms"}, want: map[string]any{"ml.latency": 1.23, "ml.queue.time": 0.0456}},
		"tgi in microseconds":      {resource: tgi, attrs: map[string]any{"total_time": "789µs", "queue_time": "12ns"}, want: map[string]any{"ml.latency": 789e-6, "ml.queue.time": 12e-9}},
		"a stranger's times":       {attrs: map[string]any{"total_time": "1.23s", "queue_time": "45.6ms"}, want: map[string]any{}},
		"a stranger's event":       {attrs: map[string]any{"gen_ai.usage.input_tokens": 1}, events: []string{"First Token Stream Event"}, want: map[string]any{"gen_ai.usage.input_tokens": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			span, f := readSpan(t, tt.resource, tt.attrs, tt.events...)
			got := all(f)
			for key, want := range tt.want {
				if number, ok := want.(float64); ok {
					require.Contains(t, got, key)
					assert.InDelta(t, number, got[key], 1e-12, key)
					got[key] = number
				}
			}
			assert.Equal(t, tt.want, got)
			for key := range written(f) {
				assert.False(t, strings.HasPrefix(key, "ml.latency") || strings.HasPrefix(key, "ml.first") || key == mlattr.TotalTokens, key)
			}
			kept := pcommon.NewMap()
			require.NoError(t, kept.FromRaw(tt.attrs))
			assert.True(t, kept.Equal(span.Attributes()), "the producer's attributes")
		})
	}
}

// TestTrainersResources has what training software says of its process, under older
// and newer names.
func TestTrainersResources(t *testing.T) {
	for name, tt := range map[string]struct {
		resource, want map[string]any
	}{
		"Lens": {
			resource: map[string]any{
				"service.name": "megatron-lm", "nemo.run.id": "4711", "dl.rank": 7, "dl.local_rank": 3, "dl.world_size": 8,
				"dl.batch_size": 64, "dl.sequence_length": 2048, "dl.gpu.uuid": "GPU-1",
				"slurm.job.id": "4711", "slurm.job.name": "llama", "slurm.restart_count": "2", "slurm.cluster.name": "eos",
			},
			want: map[string]any{
				"service.name": "megatron-lm", "ml.run.id": "4711", "ml.rank.global": int64(7), "ml.rank.local": int64(3),
				"ml.world_size": int64(8), "ml.job.batch_size": int64(64), "ml.sequence_length": int64(2048),
				"ml.gpu.uuid": "GPU-1", "ml.job.id": "4711", "ml.job.name": "llama",
				"ml.run.attempt": int64(2), "ml.cluster": "eos",
			},
		},
		"Lens, newer": {
			resource: map[string]any{
				"nv.dl.job.uuid": "job", "nv.dl.run.uuid": "attempt", "nv.dl.rank": 7, "nv.dl.local_rank": 3, "nv.dl.world_size": 8,
				"nv.dl.training.config.global_batch_size": 64, "nv.dl.training.config.sequence_length": 2048, "nv.gpu.uuid": "GPU-1",
			},
			want: map[string]any{
				"ml.run.id": "job", "ml.rank.global": int64(7), "ml.rank.local": int64(3), "ml.world_size": int64(8),
				"ml.job.batch_size": int64(64), "ml.sequence_length": int64(2048), "ml.gpu.uuid": "GPU-1",
			},
		},
		"a restart that NVRx counts": {
			resource: map[string]any{"nemo.run.id": "r", "nvrx.cycle": "3", "slurm.restart_count": "0"},
			want:     map[string]any{"ml.run.id": "r", "ml.run.attempt": int64(3)},
		},
		"torchtitan's engine": {
			resource: map[string]any{"generator_name": "g", "engine_index": 0, "tp_rank": 0, "rank": 1, "world_size": 4, "hostname": "n1"},
			want:     map[string]any{"ml.rank.global": int64(1), "ml.world_size": int64(4), "host.name": "n1"},
		},
		"a stranger's rank": {resource: map[string]any{"rank": 1, "tp_rank": 0}, want: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			resource, f := pcommon.NewMap(), new(vocabulary.Facts)
			require.NoError(t, resource.FromRaw(tt.resource))
			vocabulary.Default().Resource(resource, f)
			assert.Equal(t, tt.want, all(f))
		})
	}
}

// TestKeysOfClientsStandAlone shows that the keys of LLM clients, which are in
// name spaces, are read without anything else that shows whose they are.
func TestKeysOfClientsStandAlone(t *testing.T) {
	llm := systemGenAI | systemVLLM | systemOpenLLMetry | systemOpenInference | systemVercel | systemMLflow | systemLangfuse
	for _, client := range vocabulary.Tables() {
		if client.System&llm == 0 {
			continue
		}
		for _, alias := range client.Span {
			ofItsOwn := func(prefix string) bool { return strings.HasPrefix(alias.Source, prefix) }
			if !slices.ContainsFunc(client.KeyPrefixes, ofItsOwn) {
				continue // the conventions', which it uses too
			}
			var value any = 7
			switch {
			case alias.Words != nil:
				for value = range alias.Words {
					break
				}
			case alias.Canonical == mlattr.GenAIStream:
				value = true
			case alias.Canonical == mlattr.FirstTokenAt:
				value = "1970-01-01T00:01:41Z"
			case alias.Reads != "":
				value = "7"
			}
			_, f := readSpan(t, nil, map[string]any{alias.Source: value})
			assert.NotNil(t, f.Find(alias.Canonical), alias.Source)
			assert.NotZero(t, f.Systems&client.System, alias.Source)
		}
	}
}

// TestDroppedChunks shows that the first of many events is not the first token
// where earlier ones were dropped.
// TestServersWithKeysInCommon shows that inference servers that send the same keys
// are distinguished by their scopes.
func TestServersWithKeysInCommon(t *testing.T) {
	for scope, want := range map[string]string{
		"vllm.llm_engine": "genai,vllm", "sglang server": "genai,sglang", "trt.llm": "genai,tensorrt_llm", "server": "genai",
	} {
		span := ptrace.NewSpan()
		span.SetName("llm_request")
		require.NoError(t, span.Attributes().FromRaw(map[string]any{
			"gen_ai.latency.e2e": 3.0, "gen_ai.latency.time_to_first_token": 0.5, "gen_ai.usage.num_sequences": 1, "gen_ai.request.n": 1}))
		_, f := vocabulary.Classify(pcommon.NewMap(), scope, span)
		assert.Equal(t, want, namesOf(f.Systems), scope)
	}
}

func TestDroppedChunks(t *testing.T) {
	span, _ := readSpan(t, nil, map[string]any{"gen_ai.is_streaming": true}, "gen_ai.content.completion.chunk")
	span.SetDroppedEventsCount(1)
	_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
	assert.Nil(t, f.Find(mlattr.GenAITimeToFirstChunk))
}

func TestHostileMaps(t *testing.T) {
	for name, value := range map[string]any{
		"no JSON":        `{"input": 1`,
		"a list":         `[1]`,
		"a number":       7,
		"text":           `"input"`,
		"deep":           strings.Repeat("[", mlattr.MaxText*10),
		"long":           `{"input": 1` + strings.Repeat(" ", 4096) + `}`,
		"beyond doubles": `{"input": 1e999}`,
		"a long map":     longMap(),
	} {
		_, f := readSpan(t, nil, map[string]any{"langfuse.observation.usage_details": value})
		assert.Equal(t, 1, f.Rejected, name)
		assert.Zero(t, f.Len(), name)
	}
	for name, value := range map[string]string{
		"negative": `{"input": -1}`, "fraction": `{"input": 1.5}`, "text": `{"input": "x"}`,
	} {
		_, f := readSpan(t, nil, map[string]any{"langfuse.observation.usage_details": value})
		assert.Equal(t, 1, f.Rejected, name)
		assert.Zero(t, f.Len(), name)
	}
	for name, value := range map[string]string{
		"null": `null`, "a null": `{"input": null}`, "a map": `{"input": {"input": 1}}`, "a list": `{"input": [1]}`, "empty": `{}`, "a map of others": `{"prompt_tokens_details": {}, "input_cache": {"x": 1}}`,
	} {
		_, f := readSpan(t, nil, map[string]any{"langfuse.observation.usage_details": value})
		assert.Zero(t, f.Rejected+f.Len(), name)
	}
}

func longMap() map[string]any {
	long := map[string]any{"input": 1}
	for i := range 64 {
		long[strings.Repeat("x", i+1)] = 1
	}
	return long
}

func TestReadSeconds(t *testing.T) {
	for text, want := range map[string]float64{
		"1.23s": 1.23, "45.6ms": 0.0456, "789µs": 789e-6, "789us": 789e-6, "12ns": 12e-9, "0ns": 0, "3": 3, "0.5": 0.5,
		"1m2.3s": 62.3, "123456.789012345s": 123456.789012345,
	} {
		d, ok, _ := mlattr.ReadSeconds(pcommon.NewValueStr(text))
		assert.True(t, ok, text)
		assert.InDelta(t, want, d, 1e-12, text)
	}
	for _, text := range []string{"", "s", "1.2.3s", "1 s", "1h", "x", "1e3s", strings.Repeat("1", 40) + "s", "NaNs"} {
		_, ok, _ := mlattr.ReadSeconds(pcommon.NewValueStr(text))
		assert.False(t, ok, text)
	}
}

// TestNothingIsAllocatedForOrdinaryAttributes shows that a vocabulary with JSON
// in it costs nothing where there is none.
func TestNothingIsAllocatedForOrdinaryAttributes(t *testing.T) {
	span, _ := readSpan(t, nil, map[string]any{
		"gen_ai.usage.prompt_tokens": 1, "gen_ai.latency.e2e": "1.5s", "llm.request.type": "chat", "http.request.method": "GET",
	}, "First Token Stream Event")
	var f vocabulary.Facts
	r := vocabulary.Default()
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Span(0, span, &f) }))
}

// TestSessionsOfTheirOwnVocabulary shows that a client's session is read where
// its vocabulary is the only one.
func TestSessionsOfTheirOwnVocabulary(t *testing.T) {
	for name, attrs := range map[string]map[string]any{
		"openinference": {"openinference.span.kind": "LLM", "session.id": "s"},
		"langfuse":      {"langfuse.observation.type": "generation", "session.id": "s"},
		"mlflow":        {"mlflow.spanType": `"LLM"`, "mlflow.trace.session": `"s"`},
	} {
		system, _ := vocabulary.ParseSystem(name)
		r := vocabulary.NewReader(vocabulary.Options{Systems: system})
		span := ptrace.NewSpan()
		require.NoError(t, span.Attributes().FromRaw(attrs))
		var f vocabulary.Facts
		r.Span(0, span, &f)
		assert.Equal(t, "s", f.Text(mlattr.SessionID), name)
	}
}
