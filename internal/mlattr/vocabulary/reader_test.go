package vocabulary_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// classify returns, in canonical terms, what would be written for a root span
// of the given resource, scope, name and attributes.
func classify(t *testing.T, resource map[string]any, scope, name string, attrs map[string]any) (ofResource, ofSpan map[string]any) {
	t.Helper()
	res, span := pcommon.NewMap(), ptrace.NewSpan()
	require.NoError(t, res.FromRaw(resource))
	span.SetName(name)
	require.NoError(t, span.Attributes().FromRaw(attrs))
	r, s := vocabulary.Classify(res, scope, span)
	return written(r), written(s)
}

func written(f *vocabulary.Facts) map[string]any {
	m := pcommon.NewMap()
	for fact := range f.All() {
		fact.Put(m)
	}
	return m.AsRaw()
}

var torchTel = map[string]any{
	"service.name": "torchtel", "job_id": 0, "job_name": "local", "user": "ada", "cluster": "c1",
	"local_rank": 1, "global_rank": 9, "world_size": 16, "host": "n1",
}

func TestSpans(t *testing.T) {
	tests := []struct {
		name     string
		resource map[string]any
		scope    string
		span     string
		attrs    map[string]any
		want     map[string]any
	}{
		{name: "torchtel forward", resource: torchTel, span: "GPT.forward", want: map[string]any{"ml.phase": "forward"}},
		{name: "torchtel backward", resource: torchTel, span: "autograd.backward", want: map[string]any{"ml.phase": "backward"}},
		{name: "torchtel step", resource: torchTel, span: "AdamW.step", want: map[string]any{"ml.phase": "optimizer"}},
		{name: "torchtel loader", resource: torchTel, span: "dataloader.next", want: map[string]any{"ml.phase": "data_load"}},
		{name: "torchtel train", resource: torchTel, span: "train", want: map[string]any{"ml.phase": "train"}},
		{name: "a suffix alone is no name", resource: torchTel, span: ".step", want: map[string]any{}},
		{name: "a stranger's train is no train", resource: map[string]any{"service.name": "railway"}, span: "train", want: map[string]any{}},
		{
			name: "a stranger's everyday keys stay", resource: map[string]any{"service.name": "shop"}, span: "validation",
			attrs: map[string]any{"user": "ada", "session_id": "s", "epoch": 3, "loss": 1.0, "prompt_size": 4, "duration": 3},
			want:  map[string]any{},
		},
		{
			name: "taskweaver reply", resource: map[string]any{"service.name": "taskweaver.otlp.tracer"}, span: "Planner.reply",
			attrs: map[string]any{"prompt_size": 120, "output_size": "30"},
			want: map[string]any{"ml.operation": "reply", "ml.role": "Planner",
				"gen_ai.usage.input_tokens": int64(120), "gen_ai.usage.output_tokens": int64(30)},
		},
		{
			name: "taskweaver root, known by its span's name", span: "Session.send_message",
			attrs: map[string]any{"session_id": "s-1", "round_id": "r-1"},
			want: map[string]any{"ml.operation": "send_message", "ml.role": "Session", "ml.session.id": "s-1",
				"gen_ai.conversation.id": "s-1", "ml.request.id": "r-1"},
		},
		{
			name: "tuft controller", span: "training_controller.run_forward_backward",
			attrs: map[string]any{"tuft.session_id": "s", "tuft.training_run_id": "tr", "tuft.request_id": "rq", "tuft.data_count": 8, "tuft.lora_id": "tr"},
			want: map[string]any{"ml.phase": "forward_backward", "ml.operation": "forward_backward", "ml.session.id": "s",
				"ml.training_run.id": "tr", "ml.request.id": "rq", "ml.batch.size": int64(8)},
		},
		{
			name: "tuft sampling backend's adapter is its session", span: "sampling_backend.sample", attrs: map[string]any{"tuft.lora_id": "ss"},
			want: map[string]any{"ml.phase": "sample", "ml.operation": "sample", "ml.sampling_session.id": "ss"},
		},
		{
			name: "tuft's adapter is nobody's elsewhere", span: "sampling_controller.run_sample", attrs: map[string]any{"tuft.lora_id": "ss"},
			want: map[string]any{"ml.phase": "sample", "ml.operation": "sample"},
		},
		{
			name: "tuft's key wins over the name", span: "future_store.execute_operation", attrs: map[string]any{"tuft.operation_type": "optim_step"},
			want: map[string]any{"ml.operation": "optim_step"},
		},
		{
			name: "snakepit call", span: "snakepit.grpc.execute.train",
			attrs: map[string]any{"snakepit.command": "train", "snakepit.session_id": "s", "snakepit.correlation_id": "c-1"},
			want:  map[string]any{"ml.operation": "train", "ml.session.id": "s", "ml.request.id": "c-1"},
		},
		{
			name: "snakepit's dash is no correlation id", span: "snakepit.grpc.ping", attrs: map[string]any{"snakepit.correlation_id": "-"},
			want: map[string]any{},
		},
		{
			name: "snakepit inference", span: "snakepit.ml.inference",
			attrs: map[string]any{"model": "llama", "batch_size": 4, "tokens_per_second": 81.5, "device": "{:cuda, 2}"},
			want: map[string]any{"ml.operation": "inference", "gen_ai.request.model": "llama", "ml.batch.size": int64(4),
				"ml.tokens_per_second": 81.5, "ml.gpu.index": int64(2)},
		},
		{
			name: "fx epoch from its name", span: "epoch_12", attrs: map[string]any{"train_loss": 0.5, "loss_at_step_3": 0.7},
			want: map[string]any{"ml.phase": "epoch", "ml.operation": "epoch_{n}", "ml.epoch": int64(12), "ml.loss": 0.5, "ml.loss.scope": "epoch"},
		},
		{
			name: "fx epoch by attribute, one-based against the name", span: "epoch_0", attrs: map[string]any{"epoch": 1, "total_epochs": 5},
			want: map[string]any{"ml.phase": "epoch", "ml.operation": "epoch_{n}", "ml.epoch": int64(1), "ml.epoch.total": int64(5)},
		},
		{
			name: "fx batch of a multi-task loop", span: "batch_7", attrs: map[string]any{"step": 107, "loss": 0.25, "task.up": 0.1, "task.down down": 1.0},
			want: map[string]any{"ml.phase": "batch", "ml.operation": "batch_{n}", "ml.batch.index": int64(7), "ml.step": int64(107),
				"ml.loss": 0.25, "ml.loss.scope": "batch", "ml.loss.task.up": 0.1},
		},
		{
			name: "fx validation", span: "validation", attrs: map[string]any{"epoch": 2, "val_loss": 0.4, "val_metric": 0.9, "val.f1": 0.8},
			want: map[string]any{"ml.phase": "validation", "ml.operation": "validation", "ml.epoch": int64(2), "ml.val.loss": 0.4,
				"ml.val.metric": 0.9, "ml.val.f1": 0.8},
		},
		{
			name: "fx validation loss by both of its names", span: "validation", attrs: map[string]any{"val_loss": 0.4, "val.loss": 0.5},
			want: map[string]any{"ml.phase": "validation", "ml.operation": "validation", "ml.val.loss": 0.4},
		},
		{
			name: "a loss that is not finite is not written", span: "training_epoch", attrs: map[string]any{"train_loss": math.NaN(), "val_loss": "inf"},
			want: map[string]any{"ml.phase": "epoch", "ml.operation": "training_epoch", "ml.loss.scope": "epoch"},
		},
		{
			name: "genai aliases, first match wins", span: "chat",
			attrs: map[string]any{"llm.token_count.prompt": 7, "llm.usage.prompt_tokens": 5, "session.id": "s", "llm.model_name": "m"},
			want:  map[string]any{"gen_ai.usage.input_tokens": int64(5), "ml.session.id": "s", "gen_ai.response.model": "m"},
		},
		{
			name: "openinference failed request", span: "ChatCompletion", attrs: map[string]any{"openinference.span.kind": "LLM"},
			want: map[string]any{"gen_ai.operation.name": "chat"},
		},
		{
			name: "openinference agent", span: "run", attrs: map[string]any{"openinference.span.kind": "AGENT"},
			want: map[string]any{"gen_ai.operation.name": "invoke_agent"},
		},
		{
			name: "openinference chain is no operation", span: "run", attrs: map[string]any{"openinference.span.kind": "CHAIN"},
			want: map[string]any{},
		},
		{
			name: "traceloop workflow", span: "run", attrs: map[string]any{"traceloop.span.kind": "workflow"},
			want: map[string]any{"gen_ai.operation.name": "invoke_workflow"},
		},
		{
			name: "older openllmetry", span: "openai.completion",
			attrs: map[string]any{"llm.request.type": "completion", "llm.request.model": "m", "llm.response.model": "m-1"},
			want:  map[string]any{"gen_ai.operation.name": "text_completion", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1"},
		},
		{
			name: "a canonical attribute is never written again", span: "chat",
			attrs: map[string]any{"gen_ai.usage.input_tokens": "9", "llm.usage.prompt_tokens": 5}, want: map[string]any{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := classify(t, tt.resource, tt.scope, tt.span, tt.attrs)
			assert.Equal(t, tt.want, got)
		})
	}
}

// TestNamesBelowOthers shows that an everyday name on a span with a parent is
// a client's only where two of the client's keys say so.
func TestNamesBelowOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		span  string
		attrs map[string]any
		want  string
	}{
		"a batch":                       {"batch_processing", map[string]any{"batch_index": 1, "batch_size": 32}, "batch"},
		"a numbered batch":              {"batch_3", map[string]any{"step": 3, "task.up": 0.5}, "batch"},
		"a validation":                  {"validation", map[string]any{"val_loss": 0.5, "val.f1": 0.5}, "validation"},
		"one key":                       {"batch_processing", map[string]any{"batch_size": 32, "queue": "q"}, ""},
		"one beginning of a key, twice": {"validation", map[string]any{"val.name": 1, "val.age": 2}, ""},
		"no key":                        {"validation", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetName(tt.span)
			span.SetParentSpanID(pcommon.SpanID{1})
			require.NoError(t, span.Attributes().FromRaw(tt.attrs))
			_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
			assert.Equal(t, tt.want, f.Text(mlattr.Phase))
		})
	}
}

func TestTorchTelResource(t *testing.T) {
	got, _ := classify(t, torchTel, "", "train", nil)
	assert.Equal(t, map[string]any{
		"ml.job.name": "local", "ml.cluster": "c1", "ml.rank.local": int64(1), "ml.rank.global": int64(9),
		"ml.world_size": int64(16), "host.name": "n1",
	}, got, "no job id from the sentinel 0, no user's name")
}

func TestResourceIsRecognisedBySignature(t *testing.T) {
	renamed := map[string]any{"service.name": "my-job", "job_id": 4711, "local_rank": 0, "global_rank": 0, "world_size": 1}
	res, span := classify(t, renamed, "", "SGD.step", nil)
	assert.Equal(t, "4711", res["ml.job.id"])
	assert.Equal(t, "optimizer", span["ml.phase"])
}

func TestOwnTokensReadAsText(t *testing.T) {
	span := ptrace.NewSpan()
	span.Attributes().PutStr("gen_ai.usage.input_tokens", "12")
	_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
	n, ok := f.IntAt(vocabulary.SlotGenAIInputTokens)
	assert.True(t, ok)
	assert.Equal(t, int64(12), n)
}

func TestNonFiniteIsAFactWithoutAValue(t *testing.T) {
	span := ptrace.NewSpan()
	span.SetName("epoch_1")
	span.Attributes().PutDouble("train_loss", math.Inf(1))
	_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
	require.NotNil(t, f.Find(mlattr.Loss))
	assert.True(t, f.Find(mlattr.Loss).NonFinite)
	_, ok := f.DoubleAt(vocabulary.SlotLoss)
	assert.False(t, ok)
}

func TestInheritedPhaseIsTheAncestors(t *testing.T) {
	span := ptrace.NewSpan()
	span.Attributes().PutStr("ml.phase", "optimizer")
	_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
	assert.Equal(t, "optimizer", f.Text(mlattr.Phase))
	span.Attributes().PutStr("ml.correlation.source", "session=trace,phase=parent")
	_, f = vocabulary.Classify(pcommon.NewMap(), "", span)
	assert.Empty(t, f.Text(mlattr.Phase))
	assert.True(t, f.Find(mlattr.Phase).Own && f.Find(mlattr.Phase).Inherited)
	for source, inherited := range map[string]bool{
		"phase=parent":               true,
		"session=trace,phase=parent": true,
		"session=trace,run=request":  false,
		"":                           false,
	} {
		span.Attributes().PutStr("ml.correlation.source", source)
		_, f = vocabulary.Classify(pcommon.NewMap(), "", span)
		assert.Equal(t, inherited, f.Find(mlattr.Phase).Inherited, source)
		assert.Equal(t, inherited, f.Text(mlattr.Phase) == "", source)
	}
}

func TestFactsAreReadAgain(t *testing.T) {
	r := vocabulary.Default()
	first, second := ptrace.NewSpan(), ptrace.NewSpan()
	first.Attributes().PutStr("tuft.session_id", "s")
	first.Attributes().PutInt("tuft.data_count", 8)
	second.Attributes().PutStr("tuft.request_id", "r")
	var f vocabulary.Facts
	r.Span(0, first, &f)
	assert.Equal(t, "s", f.TextAt(vocabulary.SlotOf(mlattr.SessionID)))
	assert.Same(t, f.Find(mlattr.SessionID), f.At(vocabulary.SlotOf(mlattr.SessionID)))
	n, ok := f.IntAt(vocabulary.SlotOf(mlattr.BatchSize))
	assert.True(t, ok)
	assert.EqualValues(t, 8, n)
	r.Span(0, second, &f)
	assert.Equal(t, 1, f.Len())
	assert.Nil(t, f.Find(mlattr.SessionID))
	assert.Nil(t, f.At(vocabulary.SlotOf(mlattr.SessionID)))
	assert.Equal(t, "r", f.Text(mlattr.RequestID))
	f.Reset()
	assert.Zero(t, f.Len())
	assert.Nil(t, f.At(vocabulary.SlotOf(mlattr.RequestID)))
}

func TestRejected(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  int
	}{
		"an id with white space":      {map[string]any{"snakepit.session_id": "a b"}, 1},
		"a device that is none":       {map[string]any{"device": "{:cuda, x}"}, 1},
		"an unnumbered device":        {map[string]any{"device": "cpu"}, 0},
		"an unnumbered device's atom": {map[string]any{"device": ":mps"}, 0},
		"a kind without an operation": {map[string]any{"openinference.span.kind": "CHAIN", "traceloop.span.kind": 7}, 0},
		"no correlation id":           {map[string]any{"snakepit.correlation_id": "-"}, 0},
	} {
		span := ptrace.NewSpan()
		span.SetName("snakepit.call.stop")
		require.NoError(t, span.Attributes().FromRaw(tt.attrs))
		_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
		assert.Equal(t, tt.want, f.Rejected, name)
	}
}

func TestErrorTypeOfElixirsPrint(t *testing.T) {
	for text, want := range map[string]string{
		`%Snakepit.Error.ValueError{message: "no", python_type: "ValueError", python_traceback: "…"}`:     "ValueError",
		`%Snakepit.Error.PythonException{message: "no", python_type: "json.decoder.JSONDecodeError"}`:     "json.decoder.JSONDecodeError",
		`%Snakepit.Error.ValueError{message: "it said python_type: \"Fake\"", python_type: "ValueError"}`: "ValueError",
		`%Snakepit.Error.ValueError{message: "python_type: \"Fake\""}`:                                    "",
		`%Snakepit.Error.PythonException{python_type: "` + strings.Repeat("x", mlattr.MaxText) + `"}`:     strings.Repeat("x", mlattr.MaxText),
		`%Snakepit.Error.PythonException{python_type: "` + strings.Repeat("x", mlattr.MaxText+1) + `"}`:   "",
		`%Snakepit.Error.PythonException{python_type: "not a name"}`:                                      "",
		`%Snakepit.Error.PythonException{python_type: ""}`:                                                "",
		`%Snakepit.Error.PythonException{python_type: nil}`:                                               "",
		`{:error, :timeout}`:                "",
		`python_type: "ValueError"`:         "",
		"%Snakepit.Error.X{python_type: \"": "",
		"":                                  "",
	} {
		_, got := classify(t, nil, "", "snakepit.grpc.execute.x", map[string]any{"snakepit.grpc.error": text})
		if want == "" {
			assert.NotContains(t, got, "error.type", text)
		} else {
			assert.Equal(t, want, got["error.type"], text)
		}
	}
	_, got := classify(t, nil, "", "snakepit.grpc.x", map[string]any{
		"snakepit.grpc.error":      `%Snakepit.Error.ValueError{python_type: "ValueError"}`,
		"snakepit.grpc.error_kind": "worker_crash",
	})
	assert.Equal(t, "worker_crash", got["error.type"], "the client's own word for it")
}

func TestErlangServiceName(t *testing.T) {
	res, _ := classify(t, map[string]any{"service_name": "snakepit"}, "", "x", nil)
	assert.Equal(t, map[string]any{"service.name": "snakepit"}, res)
	attrs := pcommon.NewMap()
	require.NoError(t, attrs.FromRaw(map[string]any{"service.name": "unknown_service:erl", "service_name": "snakepit"}))
	f, _ := vocabulary.Classify(attrs, "", ptrace.NewSpan())
	assert.Equal(t, systemSnakepit, f.Systems)
	assert.Equal(t, "unknown_service:erl", f.Text(mlattr.ServiceName), "the producer's stays")
}

func TestUserAliases(t *testing.T) {
	r := vocabulary.NewReader(vocabulary.Options{Systems: vocabulary.AllSystems, Aliases: map[string]string{
		"my.session": mlattr.SessionID, "who": mlattr.User}})
	span := ptrace.NewSpan()
	span.Attributes().PutStr("my.session", "mine")
	span.Attributes().PutStr("tuft.session_id", "theirs")
	span.Attributes().PutStr("who", "ada")
	var f vocabulary.Facts
	r.Span(0, span, &f)
	assert.Equal(t, "mine", f.Text(mlattr.SessionID))
	assert.True(t, f.Find(mlattr.User).ReadOnly, "a user's name is never copied")
}

func TestSelectedVocabularies(t *testing.T) {
	r := vocabulary.NewReader(vocabulary.Options{Systems: systemTorchTel})
	span := ptrace.NewSpan()
	span.SetName("epoch_3")
	span.Attributes().PutStr("tuft.session_id", "s")
	var f vocabulary.Facts
	r.Span(systemTaskWeaver, span, &f)
	assert.Zero(t, f.Len())
}

func TestReadID(t *testing.T) {
	for text, want := range map[string]bool{
		"run-1": true, strings.Repeat("x", 128): true, "日本": true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a\n": false, "\u00a0": false, "\x00": false, "\xff": false,
	} {
		_, ok := mlattr.ReadID(pcommon.NewValueStr(text))
		assert.Equal(t, want, ok, "%q", text)
	}
	id, ok := mlattr.ReadID(pcommon.NewValueInt(42))
	assert.True(t, ok)
	assert.Equal(t, "42", id)
	_, ok = mlattr.ReadID(pcommon.NewValueDouble(1))
	assert.False(t, ok)
}

func TestReadNumbers(t *testing.T) {
	for text, want := range map[string]any{
		"12": int64(12), "-3": int64(-3), "4.0": int64(4), "1e3": int64(1000),
		"4.5": nil, "": nil, "x": nil, "NaN": nil, "1e300": nil, strings.Repeat("1", 41): nil,
	} {
		n, ok := mlattr.ReadInt(pcommon.NewValueStr(text))
		assert.Equal(t, want != nil, ok, "%q", text)
		if ok {
			assert.Equal(t, want, n, "%q", text)
		}
	}
	_, ok := mlattr.ReadInt(pcommon.NewValueDouble(1 << 60))
	assert.False(t, ok, "a double beyond 2^53 is not exact")
	d, ok, nonFinite := mlattr.ReadDouble(pcommon.NewValueStr("0.5"))
	assert.True(t, ok && !nonFinite)
	assert.InDelta(t, 0.5, d, 0)
	_, ok, nonFinite = mlattr.ReadDouble(pcommon.NewValueStr("1e999"))
	assert.True(t, !ok && nonFinite)
}

func TestReadDevice(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "cuda:3": 3, "{:cuda, 1}": 1, "{:cuda,12}": 12,
		"cuda": -1, "cpu": -1, "": -1, "{:cuda, -1}": -1, "-1": -1, "99999": -1,
	} {
		n, ok := mlattr.ReadDevice(pcommon.NewValueStr(text))
		assert.Equal(t, want >= 0, ok, "%q", text)
		if ok {
			assert.Equal(t, want, n, "%q", text)
		}
	}
}

func TestReadTextCutsBetweenCharacters(t *testing.T) {
	got, ok := mlattr.ReadText(pcommon.NewValueStr(strings.Repeat("x", 127) + "é"))
	assert.True(t, ok)
	assert.Equal(t, strings.Repeat("x", 127), got)
}

func TestSystemNames(t *testing.T) {
	for system, name := range map[vocabulary.System]string{
		systemTorchTel: "torchtel", systemTuFT: "tuft", systemSnakepit: "snakepit", systemFX: "fx",
		systemTaskWeaver: "taskweaver", systemGenAI: "genai", systemVLLM: "vllm", systemOpenLLMetry: "openllmetry",
		systemOpenInference: "openinference", systemVercel: "vercel", systemMLflow: "mlflow", systemLangfuse: "langfuse",
		systemTGI: "tgi", systemSGLang: "sglang", systemTransformers: "transformers", systemTorchTitan: "torchtitan",
		systemMegatron: "megatron",
	} {
		assert.Equal(t, name, namesOf(system))
	}
	assert.Equal(t, "tuft,fx", namesOf(systemFX|systemTuFT))
	assert.Equal(t, strings.Join(vocabulary.SystemNames(), ","), namesOf(vocabulary.AllSystems))
	assert.LessOrEqual(t, len(vocabulary.SystemNames()), 64, "a System has 64 bits")
	seen := make(map[string]bool)
	for _, name := range vocabulary.SystemNames() {
		assert.False(t, seen[name], name)
		seen[name] = true
		s, ok := vocabulary.ParseSystem(name)
		assert.True(t, ok)
		assert.Equal(t, name, namesOf(s))
	}
	_, ok := vocabulary.ParseSystem("launchers")
	assert.False(t, ok)
	assert.Equal(t, "torchtel,fx", namesOf(systemTorchTel|systemFX))
}
