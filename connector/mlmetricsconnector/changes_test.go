package mlmetricsconnector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// recorded is a run whose records a sink gets.
func recorded(t *testing.T) (*run, *consumertest.LogsSink) {
	t.Helper()
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	return r, logs
}

// asks sends a request of a service to a model, with attributes of its resource and
// its span.
func (r *run) asks(t *testing.T, resource, span map[string]any) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	one := addSpan(td, "", 3, r.spans)
	require.NoError(t, one.Attributes().FromRaw(span))
	one.Attributes().PutStr("gen_ai.operation.name", "chat")
	to := td.ResourceSpans().At(0).Resource().Attributes()
	require.NoError(t, to.FromRaw(resource))
	to.PutStr("service.name", "agent")
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

// phrases emits and returns the bodies of the records of changes.
func (r *run) phrases(t *testing.T, logs *consumertest.LogsSink) []string {
	t.Helper()
	r.after(t, 2*time.Minute)
	bodies := []string{}
	for _, record := range recordsOf(logs, "ml.change") {
		bodies = append(bodies, record.Body().Str())
	}
	return bodies
}

// What a resource or a request to a model shows becomes a record when it is another
// than before.
func TestRecordsOfChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		resource, span   map[string]any
		resource2, span2 map[string]any
		want             []string
	}{
		"a version": {
			resource: map[string]any{"service.version": "1.8.1"}, resource2: map[string]any{"service.version": "1.8.2"},
			want: []string{"version 1.8.2 (was 1.8.1)"},
		},
		"a commit of a build system": {
			resource: map[string]any{"GITHUB_SHA": "aaa"}, resource2: map[string]any{"vcs.ref.head.revision": "bbb"},
			want: []string{"commit bbb (was aaa)"},
		},
		"an image": {
			resource:  map[string]any{"container.image.name": "agent", "container.image.tags": []any{"1"}, "container.image.id": "sha256:" + strings.Repeat("a", 64)},
			resource2: map[string]any{"container.image.name": "agent", "container.image.tags": []any{"2"}, "container.image.id": "sha256:" + strings.Repeat("b", 64)},
			want:      []string{"image agent:2@sha256:bbbbbbbbbbbb (was agent:1@sha256:aaaaaaaaaaaa)"},
		},
		"frameworks": {
			resource:  map[string]any{"process.runtime.name": "CPython", "process.runtime.version": "3.11", "torch.version": "2.8"},
			resource2: map[string]any{"process.runtime.name": "CPython", "process.runtime.version": "3.12", "torch.version": "2.9"},
			want:      []string{"CPython 3.12 (was CPython 3.11)", "torch 2.9 (was torch 2.8)"},
		},
		"models": {
			span:  map[string]any{"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"},
			span2: map[string]any{"gen_ai.request.model": "m", "gen_ai.response.model": "m-2"},
			want:  []string{"model m-2 answers for m (was m-1)"},
		},
		"another model": {
			span: map[string]any{"gen_ai.request.model": "m"}, span2: map[string]any{"gen_ai.request.model": "n"},
			want: []string{"model n (was m)"},
		},
		"nothing":              {resource: map[string]any{"service.version": "1"}, resource2: map[string]any{"service.version": "1"}, want: []string{}},
		"what is not admitted": {resource: map[string]any{"service.version": "_OTHER"}, resource2: map[string]any{"service.version": "1"}, want: []string{}},
		"no text":              {resource: map[string]any{"service.version": "1"}, resource2: map[string]any{"service.version": []any{"2"}}, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, logs := recorded(t)
			r.asks(t, tt.resource, tt.span)
			assert.Empty(t, r.phrases(t, logs), "the first value is no change")
			r.asks(t, tt.resource2, tt.span2)
			assert.ElementsMatch(t, tt.want, r.phrases(t, logs))
		})
	}
}

// Of prompts, tools and settings only a hash is known.
func TestChangesHaveNoContent(t *testing.T) {
	for key, values := range map[string][2]any{
		"gen_ai.system_instructions":       {"be kind", "be rude"},
		"gen_ai.tool.definitions":          {[]any{map[string]any{"name": "search"}}, []any{map[string]any{"name": "rm"}}},
		"gen_ai.request.temperature":       {0.7, 0.8},
		"gen_ai.request.max_tokens":        {int64(100), int64(200)},
		"llm.invocation_parameters":        {"{}", "{1}"},
		"langfuse.observation.prompt.name": {"kind", "rude"},
	} {
		r, logs := recorded(t)
		r.asks(t, nil, map[string]any{key: values[0]})
		r.after(t, 2*time.Minute)
		assert.Empty(t, recordsOf(logs, "ml.change"))
		r.asks(t, nil, map[string]any{key: values[1]})
		r.after(t, time.Minute)
		changes := recordsOf(logs, "ml.change")
		require.Len(t, changes, 1, key)
		for _, end := range []string{"ml.change.from", "ml.change.to"} {
			assert.Regexp(t, "^[0-9a-f]{12}$", textOf(t, changes[0], end))
		}
		assert.NotEqual(t, textOf(t, changes[0], "ml.change.from"), textOf(t, changes[0], "ml.change.to"))
		r.asks(t, nil, map[string]any{key: values[0]})
		assert.Empty(t, r.phrases(t, logs), "it is known")
		if key == "gen_ai.request.temperature" {
			assert.Equal(t, "temperature", textOf(t, changes[0], "ml.change.setting"))
		}
	}
}

// A restart of a run on another host is one change, of which a problem says that it
// came before.
func TestAChangeBeforeAProblem(t *testing.T) {
	r, logs := recorded(t)
	r.gpu = true
	r.at("n1", 0)
	r.steps(t, 100, time.Second)
	r.after(t, 0)
	r.at("n2", 1)
	r.steps(t, 60, 2*time.Second)
	restarted := r.clock
	r.after(t, 0)
	changes := recordsOf(logs, "ml.change")
	require.Len(t, changes, 1)
	assert.Equal(t, "attempt 2: new host n2", changes[0].Body().Str())
	for key, want := range map[string]string{
		"service.name": "trainer", "ml.run.id": "run-a", "ml.change.kind": "attempt", "ml.change.from": "1", "ml.change.to": "2",
	} {
		assert.Equal(t, want, textOf(t, changes[0], key), key)
	}
	r.after(t, 20*time.Minute)
	problems := recordsOf(logs, "ml.problem")
	last := problems[len(problems)-1]
	assert.Equal(t, "looks_hung", textOf(t, last, "ml.problem"))
	before, ok := last.Attributes().Get("ml.problem.before")
	require.True(t, ok)
	assert.Equal(t, []any{restarted.UTC().Format(time.RFC3339) + " attempt 2: new host n2"}, before.Slice().AsRaw())
}

// The world size and the settings of a run, and the driver of a host.
func TestChangesOfRunsAndHosts(t *testing.T) {
	r, logs := recorded(t)
	r.resource = map[string]any{"ml.world_size": 8, "megatron.micro_batch_size": 1}
	r.work(t, "optimizer", time.Second)
	w := &watcher{now: func() time.Time { return r.clock }}
	w.Shared = r.connector.Shared
	driver := func(version string, gpu ...string) {
		md := pmetric.NewMetrics()
		attrs := md.ResourceMetrics().AppendEmpty().Resource().Attributes()
		attrs.PutStr("host.name", "n1")
		attrs.PutStr("hw.driver_version", version)
		for _, id := range gpu {
			attrs.PutStr("hw.id", id)
		}
		require.NoError(t, w.ConsumeMetrics(t.Context(), md))
	}
	driver("570")
	driver("560", "GPU-1")
	assert.Empty(t, r.phrases(t, logs), "a GPU is not its host")
	r.resource = map[string]any{"ml.world_size": 16, "megatron.micro_batch_size": 2}
	r.work(t, "optimizer", time.Second)
	driver("580")
	phrases := r.phrases(t, logs)
	require.Len(t, phrases, 3)
	assert.Contains(t, phrases, "world size 16 (was 8)")
	assert.Contains(t, phrases, "driver 580 (was 570)")
	assert.Regexp(t, "^setting micro_batch_size [0-9a-f]{12} ", phrases[0])
}

// Without a pipeline of logs nothing is compared.
func TestNoChangesWithoutAPipeline(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.asks(t, map[string]any{"service.version": "1"}, nil)
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	r.asks(t, map[string]any{"service.version": "2"}, nil)
	assert.Empty(t, r.phrases(t, logs))
}

// A storage must be one.
func TestStorageMustBeAStorageExtension(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	id := component.MustNewID("memory")
	cfg.Storage = &id
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, c.Start(t.Context(), componenttest.NewNopHost()), `"storage" is "memory", which is not among the extensions of the service`)
	require.NoError(t, c.Shutdown(t.Context()))
}
