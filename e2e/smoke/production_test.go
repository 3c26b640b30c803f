package smoke

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// production is a collector with the shipped production configuration, and the
// back end of its traces and logs.
type production struct {
	collector *harness.Collector
	sender    *harness.GRPCSender
	sink      *harness.Sink
	dir       string
}

func startProduction(t *testing.T) *production {
	t.Helper()
	sink := harness.StartSink(t)
	dir := t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "production.yaml"),
		Dir:    dir,
		Env: []string{
			"JAEGER_ENDPOINT=" + sink.Endpoint,
			"LOGS_EXPORTER=otlp_grpc/logs",
			"LOGS_ENDPOINT=" + sink.Endpoint,
			"OTELCOL_ML_HASH_KEY=a key of at least thirty-two bytes",
			"OTELCOL_ML_TRUSTED_SENDERS=[]",
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s",
			"connectors::ml_metrics::initial_zero":   "1s",
			// Metrics by OTLP as well: they may leave in either way.
			"exporters::otlp_grpc/metrics":                   map[string]any{"endpoint": sink.Endpoint, "tls": map[string]any{"insecure": true}},
			"service::pipelines::metrics::exporters":         []string{"prometheus", "otlp_grpc/metrics"},
			"service::pipelines::metrics/derived::exporters": []string{"prometheus", "otlp_grpc/metrics"},
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return &production{collector: collector, sender: sender, sink: sink, dir: dir}
}

// await waits until the back end has as many spans and records as were sent.
func (p *production) await(t *testing.T, spans, records int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Len(c, p.sink.Spans(), spans)
		assert.Len(c, p.sink.LogRecords(), records)
	}, arrival, poll)
}

// exposition is what Prometheus scrapes.
func (p *production) exposition(t *testing.T) []harness.Sample {
	t.Helper()
	samples, err := harness.Scrape(t.Context(), p.collector.Address(t, "exporters::prometheus"))
	require.NoError(t, err)
	return samples
}

// left returns all that reached a back end, as it was sent, and what the page shows.
func (p *production) left(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	add := func(data []byte, err error) {
		require.NoError(t, err)
		all.Write(data)
	}
	for _, td := range p.sink.Traces() {
		add((&ptrace.ProtoMarshaler{}).MarshalTraces(td))
	}
	for _, md := range p.sink.MetricRequests() {
		add((&pmetric.ProtoMarshaler{}).MarshalMetrics(md))
	}
	for _, ld := range p.sink.Logs() {
		add((&plog.ProtoMarshaler{}).MarshalLogs(ld))
	}
	exposition, err := harness.Get(t.Context(), "http://"+p.collector.Address(t, "exporters::prometheus")+"/metrics")
	require.NoError(t, err)
	all.WriteString(exposition)
	page, err := harness.Get(t.Context(), "http://"+p.collector.Address(t, "exporters::ml_view")+"/api/v1/state")
	require.NoError(t, err)
	all.WriteString(page)
	return all.String()
}

// contentKeys are attributes of the clients that have what people wrote, what
// models answered or what repeats it. One that ends in * is all that begin so.
var contentKeys = []string{
	"prompt", "message", "query", "user_query", "code", "code_output", "result", "functions", "files", "summary", "chat_summary",
	"reply_to_user", "verification_error", "verification_errors", "in.message", "in.attachments", "out.message", "out.attachments",
	"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt*", "gen_ai.completion*",
	"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.definitions", "gen_ai.retrieval.query*", "gen_ai.event.content",
	"gen_ai.task.input", "gen_ai.task.output", "traceloop.entity.input", "traceloop.entity.output", "traceloop.prompt.*", "llm.prompts*",
	"llm.completions*", "llm.request.functions*", "llm.input_messages*", "llm.output_messages*", "llm.prompt_template*", "llm.function_call",
	"llm.invocation_parameters", "llm.tools*", "llm.openai.messages", "llm.openai.choices", "input.value", "output.value", "tool.parameters",
	"tool_call.function.arguments", "embedding.text", "retrieval.documents*", "reranker.query", "metadata", "events",
	"ai.prompt*", "ai.response.text", "ai.response.object", "ai.response.reasoning", "ai.response.toolCalls", "ai.response.headers*",
	"ai.result.text", "ai.toolCall.args", "ai.toolCall.result", "ai.value", "ai.values", "ai.request.body", "ai.request.headers*",
	"mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.messages", "mlflow.chat.tools", "langfuse.trace.input", "langfuse.trace.output",
	"langfuse.observation.input", "langfuse.observation.output", "langfuse.observation.status_message", "pydantic_ai.all_messages",
	"final_result", "system_prompt", "tool_arguments", "tool_response", "crew_tasks", "crew_agents", "content",
	"exception.message", "exception.stacktrace", "error.message", "error.stack", "code.stacktrace", "snakepit.grpc.error",
	"repro.payload", "repro.payload.uri", "args", "kwargs", "snakepit.args", "snakepit.kwargs",
	"user", "user_id", "username", "user.email", "enduser.id", "process.owner",
	"password", "secret", "api_key", "private_key", "access_token", "authorization", "http.request.header.cookie",
	"db.query.text", "db.statement", "url.full", "url.query", "http.url", "http.target", "client.address", "process.command_line",
}

// userKeys are the attributes that ml.user is made of.
func userKeys(t *testing.T) (keys []string) {
	t.Helper()
	for _, alias := range aliases(t) {
		if alias.canonical == "ml.user" {
			keys = append(keys, alias.source)
		}
	}
	require.Greater(t, len(keys), 12, "docs/vocabulary.md has no lists of clients")
	return keys
}

// isContent reports whether a list has a key.
func isContent(keys []string, key string) bool {
	for _, name := range keys {
		if prefix, all := strings.CutSuffix(name, "*"); key == name || all && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// production.yaml is agent.yaml, but for the processors that are put behind.
func TestProductionIsTheDefaultOtherwise(t *testing.T) {
	read := func(name string) map[string]any {
		text, err := os.ReadFile(harness.Path("distribution", "config", name))
		require.NoError(t, err)
		var config map[string]any
		require.NoError(t, yaml.Unmarshal(text, &config))
		return config
	}
	agent, production := read("agent.yaml"), read("production.yaml")
	added := regexp.MustCompile(`^ml_guard/content$`)
	for name := range production["processors"].(map[string]any) {
		if added.MatchString(name) {
			delete(production["processors"].(map[string]any), name)
		}
	}
	for _, pipeline := range production["service"].(map[string]any)["pipelines"].(map[string]any) {
		kept := []any{}
		for _, processor := range pipeline.(map[string]any)["processors"].([]any) {
			if !added.MatchString(processor.(string)) {
				kept = append(kept, processor)
			}
		}
		pipeline.(map[string]any)["processors"] = kept
		if len(kept) == 0 {
			delete(pipeline.(map[string]any), "processors")
		}
	}
	// The page of production.yaml shows what ml_guard/content lets out.
	exporters := func(config map[string]any, pipeline string) []any {
		fields := config["service"].(map[string]any)["pipelines"].(map[string]any)[pipeline].(map[string]any)
		defer delete(fields, "exporters")
		return fields["exporters"].([]any)
	}
	assert.Equal(t, exporters(agent, "traces/in"), append(exporters(production, "traces/in"), "ml_view"))
	// It is not behind ml_guard/out, without which no back end gets anything.
	assert.Equal(t, []any{"forward/jaeger", "ml_view"}, exporters(production, "traces/out"))
	pipelines := production["service"].(map[string]any)["pipelines"].(map[string]any)
	last := pipelines["traces/jaeger"].(map[string]any)
	assert.Equal(t, exporters(agent, "traces/out"), last["exporters"])
	pipelines["traces/out"].(map[string]any)["processors"] = last["processors"]
	delete(pipelines, "traces/jaeger")
	delete(production["connectors"].(map[string]any), "forward/jaeger")
	// It does not name the users of workloads.
	reader := production["receivers"].(map[string]any)["gpu"].(map[string]any)
	assert.Equal(t, false, reader["user_names"])
	delete(reader, "user_names")
	// What is on another machine gets gzip, which all take.
	jaeger := production["exporters"].(map[string]any)["otlp_grpc/jaeger"].(map[string]any)
	assert.Equal(t, "${env:JAEGER_COMPRESSION:-gzip}", jaeger["compression"])
	jaeger["compression"] = "${env:JAEGER_COMPRESSION:-none}"
	assert.Equal(t, agent, production)
}

// The samplers that production.yaml has as comments load where it says.
func TestProductionsSamplersLoad(t *testing.T) {
	text, err := os.ReadFile(harness.Path("distribution", "config", "production.yaml"))
	require.NoError(t, err)
	_, ours, found := strings.Cut(string(text), "  # ml_sample:")
	require.True(t, found, "production.yaml has no example of ml_sample")
	ours, _, _ = strings.Cut("  # ml_sample:"+ours, "  # tail_sampling waits")
	_, commented, found := strings.Cut(string(text), "  # probabilistic_sampler:")
	require.True(t, found, "production.yaml has no example of sampling")
	commented, _, _ = strings.Cut("  # probabilistic_sampler:"+commented, "\nconnectors:")
	for _, pipelines := range []string{
		"{traces/out: {processors: [ml_guard/content, probabilistic_sampler]}}",
		"{traces/out: {processors: [ml_guard/content, tail_sampling]}}",
		"{traces/out: {processors: [ml_sample, ml_guard/content]}, logs/derived: {processors: [ml_sample, ml_guard/content]}, metrics/derived: {processors: [ml_sample, ml_guard/content]}}",
	} {
		example := "processors:\n" + strings.ReplaceAll(ours+commented, "  # ", "  ") + "\nservice: {pipelines: " + pipelines + "}\n"
		file := filepath.Join(t.TempDir(), "sampling.yaml")
		require.NoError(t, os.WriteFile(file, []byte(example), 0o600))
		code, output := harness.Validate(t, nil, harness.Path("distribution", "config", "production.yaml"), file)
		assert.Zero(t, code, "%s\n%s", output, example)
	}
}

// Content under the keys of every client known, and users' names, are sent on a
// span, an event and a record, and credentials under keys that stay. None leaves.
func TestProductionSendsNothingPlanted(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	const planted = "planted-content"
	credentials := map[string]string{
		"aws":       "AKIA" + strings.Repeat("Q", 16),
		"hugging":   "hf_" + strings.Repeat("abcd", 6),
		"openai":    "sk-" + strings.Repeat("proj4", 6),
		"github":    "ghp_" + strings.Repeat("x1y2", 9),
		"jwt":       "eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
		"nvidia":    "nvapi-" + strings.Repeat("a1B2c3D4", 8),
		"replicate": "r8_" + strings.Repeat("a1B2c3D4", 5),
	}
	keys := append(userKeys(t), contentKeys...)
	plant := func(attributes pcommon.Map) {
		for _, name := range keys {
			if prefix, all := strings.CutSuffix(name, "*"); all {
				name = strings.ReplaceAll(prefix+".0", "..", ".")
			}
			attributes.PutStr(name, planted+"-of-"+name)
		}
		at := 0
		for _, secret := range credentials {
			attributes.PutStr([]string{"server.address", "tool.name", "ml.role", "gen_ai.tool.name", "pair", "rpc.method", "peer.service"}[at], "is:"+secret)
			at++
		}
		attributes.PutEmptySlice("process.command_args").AppendEmpty().SetStr("--api-key=" + credentials["openai"])
		attributes.PutInt("prompt_size", 17)
	}

	traces := oneSpan("anyone", "chat", plant)
	traces.ResourceSpans().At(0).Resource().Attributes().PutStr("user", planted)
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(planted)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	plant(event.Attributes())
	event.Attributes().PutStr("exception.type", "ValueError")
	require.NoError(t, p.sender.Traces(t.Context(), traces))

	logs := oneLog("anyone", planted)
	logs.ResourceLogs().At(0).Resource().Attributes().PutStr("user.name", planted)
	plant(logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes())
	structured := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty()
	structured.Body().SetEmptyMap().PutStr("message", planted)
	structured.Body().Map().PutInt("rows", 7)
	require.NoError(t, p.sender.Logs(t.Context(), logs))

	metrics := oneCounter("questionnaire", "questions", 3, map[string]string{"user": "alice@" + planted, "status": "short"})
	metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("enduser.id", planted)
	metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", "q1")
	second := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints()
	second.At(0).CopyTo(second.AppendEmpty())
	second.At(1).Attributes().PutStr("user", "bob@"+planted)
	second.At(1).SetIntValue(4)
	require.NoError(t, p.sender.Metrics(t.Context(), metrics))

	owners := oneCounter("anyone", "nvidia.gpu.workload.anything", 1, map[string]string{"user.id": "1000"})
	require.NoError(t, p.sender.Metrics(t.Context(), owners))

	p.await(t, 1, 2)
	assert.Equal(t, "1000", awaitSeries(t, p.collector, "nvidia_gpu_workload_anything_total", 1)[0].Labels["user_id"])
	values := []float64{}
	for _, sample := range awaitSeries(t, p.collector, "questions_total", 2) {
		values = append(values, sample.Value)
		assert.Equal(t, "short", sample.Labels["status"])
	}
	assert.ElementsMatch(t, []float64{3, 4}, values, "what two users have stays two series")
	awaitSome(t, p.collector, "traces_span_metrics_calls_total", "a span")
	left := p.left(t)
	assert.NotContains(t, left, planted)
	for name, secret := range credentials {
		assert.NotContains(t, left, secret, name)
	}
	attributes := p.sink.Spans()[0].Attributes().AsRaw()
	assert.Equal(t, int64(17), attributes["prompt_size"])
	assert.Equal(t, fmt.Sprintf("[text: %d bytes]", len(planted+"-of-prompt")), attributes["prompt"])
	assert.Contains(t, attributes, "repro.artifact.fingerprint", "the payload was read before it was removed")
	assert.Equal(t, ptrace.StatusCodeError, p.sink.Spans()[0].Status().Code())
	assert.Equal(t, int64(7), p.sink.LogRecords()[1].Body().Map().AsRaw()["rows"])
	exception, _ := p.sink.Spans()[0].Events().At(0).Attributes().Get("exception.type")
	assert.Equal(t, "ValueError", exception.Str())
	stopDropIn(t, p.collector)
}

// A text at each position that OTLP has for one, in each kind of value, leaves at
// none: once with a sentence at the positions of names and keys, too, and once
// with one word, where names and keys have what a program's source would have.
func TestProductionSendsNothingOfAnyPosition(t *testing.T) {
	t.Parallel()
	code := map[protoreflect.FullName]string{
		"opentelemetry.proto.common.v1.KeyValue.key":              "acme.note",
		"opentelemetry.proto.common.v1.InstrumentationScope.name": "acme.library",
		"opentelemetry.proto.metrics.v1.Metric.name":              "acme.gauge",
		"opentelemetry.proto.metrics.v1.Metric.unit":              "By",
	}
	for name, f := range map[string]*filler{
		"sentence": {text: "dear diary, alice@example.com"},
		"word":     {text: "hunter2sesame", names: code},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProduction(t)
			f.time = uint64(time.Now().UnixNano())
			spans, records := 0, 0
			// Values have seven or eight kinds, metrics five.
			for f.variant = range 40 {
				f.ids = 0
				td, ld := filledTraces(t, f), filledLogs(t, f)
				spans += td.SpanCount()
				records += ld.LogRecordCount()
				require.NoError(t, p.sender.Traces(t.Context(), td))
				require.NoError(t, p.sender.Logs(t.Context(), ld))
				require.NoError(t, p.sender.Metrics(t.Context(), filledMetrics(t, f)))
			}
			require.Greater(t, f.planted, 1000)
			last := oneCounter("anyone", "the.last", 1, nil)
			require.NoError(t, p.sender.Metrics(t.Context(), last))
			p.await(t, spans, records)
			awaitSome(t, p.collector, "the_last_total", "the last")
			awaitSome(t, p.collector, "traces_span_metrics_calls_total", "a span")
			assertNotLeft(t, p.left(t), f.text)
			assert.Zero(t, p.collector.Stop(t), "exit code after SIGTERM")
		})
	}
}

// tokens are secrets in forms that names in a program's source can have as well.
var tokens = []string{
	"ghp_" + strings.Repeat("x1y2", 9),
	"eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
	"hf_" + strings.Repeat("aBcD", 6),
	"hf_" + strings.Repeat("aBcD", 4), // as short as a unit
	"glpat-" + strings.Repeat("aB3d", 5),
	"sk-" + strings.Repeat("proj4", 6),
	"AKIA" + strings.Repeat("Q", 16),
	"acme." + "hvs." + strings.Repeat("aB3d", 6),
}

// A token leaves at no position that OTLP has for a text: as a key, a name, a unit, a
// version or a value, of records with the names of conclusions too.
func TestProductionSendsNoTokenOfAnyPosition(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	spans, records := 0, 0
	for i, token := range tokens {
		f := &filler{text: token, time: uint64(time.Now().UnixNano())}
		for f.variant = range 40 {
			f.ids = byte(i * 20)
			td, ld := filledTraces(t, f), filledLogs(t, f)
			switch record := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0); f.variant % 3 {
			case 1:
				record.SetEventName("ml.change")
			case 2:
				record.SetEventName("ml.problem")
			}
			spans += td.SpanCount()
			if f.variant%3 == 0 {
				records += ld.LogRecordCount()
			}
			require.NoError(t, p.sender.Traces(t.Context(), td))
			require.NoError(t, p.sender.Logs(t.Context(), ld))
			require.NoError(t, p.sender.Metrics(t.Context(), filledMetrics(t, f)))
		}
		require.Greater(t, f.planted, 1000)
	}
	require.NoError(t, p.sender.Metrics(t.Context(), oneCounter("anyone", "the.last", 1, nil)))
	p.await(t, spans, records)
	awaitSome(t, p.collector, "the_last_total", "the last")
	awaitSome(t, p.collector, "traces_span_metrics_calls_total", "a span")
	left := p.left(t)
	for _, token := range tokens {
		assertNotLeft(t, left, token)
	}
	assert.Zero(t, p.collector.Stop(t), "exit code after SIGTERM")
}

// aliasList is an item of the lists of clients in docs/vocabulary.md: the canonical
// attribute and the client's.
var aliasList = regexp.MustCompile("(?m)^- `([^`]+)`: (`[^`]+`(?:, `[^`]+`)*)")

type alias struct{ source, canonical string }

// aliases reads those lists.
func aliases(t *testing.T) (list []alias) {
	t.Helper()
	page, err := os.ReadFile(harness.Path("docs", "vocabulary.md"))
	require.NoError(t, err)
	_, clients, _ := strings.Cut(string(page), "\n## Clients\n")
	clients, _, _ = strings.Cut(clients, "\n## ")
	for _, item := range aliasList.FindAllStringSubmatch(clients, -1) {
		for source := range strings.SplitSeq(item[2], ", ") {
			list = append(list, alias{strings.Trim(source, "`"), item[1]})
		}
	}
	return list
}

// vocabulary has whatever ml_enrich reads or writes, but for users' names, Snakepit's
// error, which is read for its type, and parameters, which are read for the model.
func vocabulary(t *testing.T) map[string]bool {
	t.Helper()
	keep, _ := committedLabels(t)
	known := map[string]bool{"repro.payload.size": true}
	for key := range keep {
		known[key] = true
	}
	for _, alias := range aliases(t) {
		if alias.canonical != "ml.user" && alias.source != "snakepit.grpc.error" && alias.source != "llm.invocation_parameters" {
			known[strings.NewReplacer("*", "up", "<name>", "up").Replace(alias.source)] = true
		}
	}
	require.Greater(t, len(known), 200, "docs/vocabulary.md has no lists of clients")
	return known
}

// What ml_enrich knows leaves.
func TestProductionKeepsTheVocabulary(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	keep := vocabulary(t)
	require.NoError(t, p.sender.Traces(t.Context(), oneSpan("anyone", "chat", func(attributes pcommon.Map) {
		for key := range keep {
			attributes.PutStr(key, "1")
		}
	})))
	p.await(t, 1, 0)
	got := p.sink.Spans()[0].Attributes()
	for key := range keep {
		value, found := got.Get(key)
		if assert.True(t, found, "%s was removed", key) {
			assert.Equal(t, "1", value.AsString(), key)
		}
	}
	stopDropIn(t, p.collector)
}

// isRecordedContent reports whether a client's attribute is content that is long
// enough to be found again. The paths of requests are their routes, which stay.
func isRecordedContent(key, text string) bool {
	return len(text) >= 20 && key != "http.target" && isContent(contentKeys, key)
}

// contentOf collects the values of a recording's content.
func contentOf(td ptrace.Traces) (content []string) {
	collect := func(attributes pcommon.Map) {
		for key, value := range attributes.All() {
			if isRecordedContent(key, value.AsString()) {
				content = append(content, value.AsString())
			}
		}
	}
	for _, rs := range td.ResourceSpans().All() {
		collect(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				collect(span.Attributes())
				for _, event := range span.Events().All() {
					collect(event.Attributes())
				}
			}
		}
	}
	return content
}

// assertNotLeft expects content in nothing that reached a back end.
func assertNotLeft(t *testing.T, left, content string) {
	t.Helper()
	if at := strings.Index(left, content); at >= 0 {
		assert.Failf(t, "content has left", "%.200q is in %.300q", content, left[max(0, at-100):])
	}
}

// recorded returns the requests of one signal that the examples recorded of a
// client, none where it sends nothing of it.
func recorded(t *testing.T, client, signal string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(harness.Path("examples", client, "recording", signal+".json"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
}

// What real clients sent goes through without its content, with what was made of
// it before, and with each number and each attribute that ml_enrich knows.
func TestProductionSendsNoContentOfRecordings(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(harness.Path("examples", "*", "recording"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	known := vocabulary(t)
	for _, folder := range folders {
		client := filepath.Base(filepath.Dir(folder))
		t.Run(client, func(t *testing.T) {
			p := startProduction(t)
			var content []string
			sent := map[string]ptrace.Span{}
			for _, request := range recorded(t, client, "traces") {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
				require.NoError(t, err)
				content = append(content, contentOf(td)...)
				require.NoError(t, p.sender.Traces(t.Context(), td))
				for _, rs := range td.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						for _, span := range ss.Spans().All() {
							sent[span.TraceID().String()+span.SpanID().String()] = span
						}
					}
				}
			}
			records := 0
			for _, request := range recorded(t, client, "logs") {
				ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(request)
				require.NoError(t, err)
				records += ld.LogRecordCount()
				require.NoError(t, p.sender.Logs(t.Context(), ld))
			}
			for _, request := range recorded(t, client, "metrics") {
				md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(request)
				require.NoError(t, err)
				require.NoError(t, p.sender.Metrics(t.Context(), md))
			}
			p.await(t, len(sent), records)
			awaitSome(t, p.collector, "traces_span_metrics_calls_total", "a span")

			kept := 0
			for _, span := range p.sink.Spans() {
				before := sent[span.TraceID().String()+span.SpanID().String()]
				for key, value := range before.Attributes().All() {
					after, found := span.Attributes().Get(key)
					assert.True(t, found, "attribute %s", key)
					if known[key] || value.Type() == pcommon.ValueTypeInt || value.Type() == pcommon.ValueTypeDouble {
						assert.Equal(t, value.AsString(), after.AsString(), key)
						kept++
					}
				}
				// The parts of a request repeat the path, and no route says which it is.
				if !strings.HasSuffix(span.Name(), " http send") && !strings.HasSuffix(span.Name(), " http receive") {
					assert.Equal(t, before.Name(), span.Name())
				}
				for key, value := range span.Attributes().All() {
					if strings.HasPrefix(key, "ml.") || strings.HasPrefix(key, "repro.artifact.") {
						assert.NotContains(t, value.AsString(), "bytes]", "what this project made: %s", key)
					}
				}
				assert.Equal(t, before.Status().Code(), span.Status().Code())
				assert.Equal(t, before.Events().Len(), span.Events().Len())
			}
			assert.Positive(t, kept)
			left := p.left(t)
			for _, text := range content {
				assertNotLeft(t, left, text)
			}
			assertLabelsKept(t, p)
			assertDerived(t, client, p)
			stopDropIn(t, p.collector)
		})
	}
}

// assertLabelsKept expects the labels of this project's series, which dashboards
// and alerts select by, as they are without ml_guard.
func assertLabelsKept(t *testing.T, p *production) {
	t.Helper()
	seen := 0
	for _, sample := range p.exposition(t) {
		own := slices.ContainsFunc([]string{"ml_", "gen_ai_", "hw_", "nvidia_", "traces_span_metrics_"}, func(prefix string) bool {
			return strings.HasPrefix(sample.Labels["__name__"], prefix)
		})
		for label, value := range sample.Labels {
			if own {
				seen++
				assert.NotContains(t, value, "[text:", "%s of %s", label, sample.Labels["__name__"])
			}
		}
	}
	assert.Positive(t, seen)
}

// assertDerived expects of each client what could only be made of what was
// sent before its content was removed, or has to outlive it.
func assertDerived(t *testing.T, client string, p *production) {
	t.Helper()
	left := p.left(t)
	for _, key := range map[string][]string{
		"taskweaver": {"gen_ai.usage.input_tokens", "ml.tokens.estimated", "ml.session.id", "ml.request.id"},
		"llm":        {"gen_ai.usage.output_tokens", "ml.tokens_per_second", "gen_ai.response.id"},
		"torchtel":   {"ml.user", "ml.rank.global", "repro.artifact.fingerprint", "repro.payload.size", "exception.type"},
		"snakepit":   {"ml.session.id", "snakepit.correlation_id", "repro.artifact.fingerprint", "error.type"},
		"tuft":       {"ml.training_run.id", "ml.session.id", "ml.batch.size"},
		"fx":         {"ml.epoch", "ml.loss", "ml.run.id"},
	}[client] {
		assert.Contains(t, left, key, "nothing of %s has it", client)
	}
	if client == "torchtel" || client == "snakepit" {
		awaitArtifact(t, p)
	}
}

// awaitArtifact waits until a failure's reproduction is on disk: the payload
// that it needs was read before it was removed.
func awaitArtifact(t *testing.T, p *production) {
	t.Helper()
	require.Eventually(t, func() bool {
		artifacts, err := harness.Artifacts(filepath.Join(p.dir, "reproductions"))
		return err == nil && len(artifacts) > 0
	}, arrival, poll, "no reproduction was written")
}

// The workload generator's five systems, which send more kinds of spans than
// the recordings have.
func TestProductionSendsNoContentOfScenarios(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	sent := harness.Generate(t, p.collector, harness.Workload{
		Seed: 11, Scenarios: "all", Duration: 2 * time.Second, Rate: 20, Ranks: 2,
	})
	p.await(t, len(sent.Spans), len(sent.Logs))
	left := p.left(t)
	content := 0
	for _, span := range sent.Spans {
		for key, value := range span.Attributes {
			if text := fmt.Sprint(value); isRecordedContent(key, text) {
				content++
				assertNotLeft(t, left, text)
			}
		}
	}
	assert.Positive(t, content, "the scenarios have no content")
	awaitSome(t, p.collector, "ml_steps_total", "a step")
	assertLabelsKept(t, p)
	stopDropIn(t, p.collector)
}
