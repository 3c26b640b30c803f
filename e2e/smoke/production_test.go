package smoke

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval":           "1s",
			"connectors::span_metrics::metrics_flush_interval": "1s",
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

// left collects every text that reached a back end: keys and values of
// attributes, names, descriptions, bodies and labels.
func (p *production) left(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, td := range p.sink.Traces() {
		all = append(all, spanTexts(td)...)
	}
	for _, ld := range p.sink.Logs() {
		for _, rl := range ld.ResourceLogs().All() {
			all = mapTexts(rl.Resource().Attributes(), all)
			for _, sl := range rl.ScopeLogs().All() {
				all = mapTexts(sl.Scope().Attributes(), all)
				for _, record := range sl.LogRecords().All() {
					all = valueTexts(record.Body(), mapTexts(record.Attributes(), all))
				}
			}
		}
	}
	for _, sample := range p.exposition(t) {
		for name, value := range sample.Labels {
			all = append(all, name, value)
		}
	}
	return all
}

func spanTexts(td ptrace.Traces) []string {
	var all []string
	for _, rs := range td.ResourceSpans().All() {
		all = mapTexts(rs.Resource().Attributes(), all)
		for _, ss := range rs.ScopeSpans().All() {
			all = mapTexts(ss.Scope().Attributes(), all)
			for _, span := range ss.Spans().All() {
				all = append(mapTexts(span.Attributes(), all), span.Name(), span.Status().Message())
				for _, event := range span.Events().All() {
					all = append(mapTexts(event.Attributes(), all), event.Name())
				}
			}
		}
	}
	return all
}

func mapTexts(attributes pcommon.Map, all []string) []string {
	for key, value := range attributes.All() {
		all = valueTexts(value, append(all, key))
	}
	return all
}

func valueTexts(value pcommon.Value, all []string) []string {
	switch value.Type() {
	case pcommon.ValueTypeMap:
		return mapTexts(value.Map(), all)
	case pcommon.ValueTypeSlice:
		for _, item := range value.Slice().All() {
			all = valueTexts(item, all)
		}
		return all
	default:
		return append(all, value.AsString())
	}
}

// removedRow is a row of the table of what production.yaml removes.
var (
	removedRow = regexp.MustCompile("(?m)^\\| ((?:`[^`]+` ?)+)\\| ")
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// removed reads that table. A name that ends in * stands for all that begin
// so.
func removed(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(harness.Path("docs", "operations.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## What leaves in production\n")
	require.True(t, found, "docs/operations.md has no section about production.yaml")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, row := range removedRow.FindAllStringSubmatch(section, -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	require.Greater(t, len(names), 90, "the table of what is removed is not where this test looks")
	return names
}

// isRemoved says whether the table has an attribute.
func isRemoved(names []string, key string) bool {
	for _, name := range names {
		if prefix, all := strings.CutSuffix(name, "*"); key == name || all && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// What the design calls content has to be in the table, whatever else is.
func TestProductionRemovesContentOfEveryClient(t *testing.T) {
	names := removed(t)
	for _, key := range []string{
		"prompt", "message", "query", "user_query", "code", "result", "code_output", "functions", "files",
		"summary", "chat_summary", "reply_to_user", "verification_error", "verification_errors",
		"in.attachments", "out.attachments",
		"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
		"gen_ai.prompt.0.content", "gen_ai.completion.0.content", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
		"llm.input_messages.0.message.content", "llm.output_messages.0.message.content", "input.value", "output.value",
		"traceloop.entity.input", "traceloop.entity.output",
		"ai.prompt", "ai.prompt.messages", "ai.response.text", "ai.response.object", "ai.response.reasoning", "ai.response.toolCalls",
		"mlflow.spanInputs", "mlflow.spanOutputs",
		"langfuse.observation.input", "langfuse.observation.output", "langfuse.trace.input", "langfuse.trace.output",
		"snakepit.grpc.error", "user", "enduser.id", "user.id",
	} {
		assert.True(t, isRemoved(names, key), "%s is content, and the table does not have it", key)
	}
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
	added := regexp.MustCompile(`^(transform/content|transform/users|redaction/secrets)$`)
	for name := range production["processors"].(map[string]any) {
		if added.MatchString(name) {
			delete(production["processors"].(map[string]any), name)
		}
	}
	for name, pipeline := range production["service"].(map[string]any)["pipelines"].(map[string]any) {
		kept := []any{}
		for _, processor := range pipeline.(map[string]any)["processors"].([]any) {
			if !added.MatchString(processor.(string)) {
				kept = append(kept, processor)
			}
		}
		pipeline.(map[string]any)["processors"] = kept
		if len(kept) == 0 {
			assert.Equal(t, "traces/out", name)
			delete(pipeline.(map[string]any), "processors")
		}
	}
	assert.Equal(t, agent, production)
}

// The samplers that production.yaml has as comments load where it says.
func TestProductionsSamplersLoad(t *testing.T) {
	text, err := os.ReadFile(harness.Path("distribution", "config", "production.yaml"))
	require.NoError(t, err)
	_, commented, found := strings.Cut(string(text), "  # probabilistic_sampler:")
	require.True(t, found, "production.yaml has no example of sampling")
	commented, _, _ = strings.Cut("  # probabilistic_sampler:"+commented, "\nconnectors:")
	for _, sampler := range []string{"probabilistic_sampler", "tail_sampling"} {
		example := "processors:\n" + strings.ReplaceAll(commented, "  # ", "  ") +
			"\nservice: {pipelines: {traces/out: {processors: [transform/content, transform/users, redaction/secrets, " + sampler + "]}}}\n"
		file := filepath.Join(t.TempDir(), "sampling.yaml")
		require.NoError(t, os.WriteFile(file, []byte(example), 0o600))
		code, output := harness.Validate(t, nil, harness.Path("distribution", "config", "production.yaml"), file)
		assert.Zero(t, code, "%s\n%s", output, example)
	}
}

// Each attribute of the table is sent on a span, an event and a record, with a
// text of its own, and credentials in what stays. None may leave.
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
		"bearer":    "Bearer " + strings.Repeat("abc.", 6),
		"url":       "postgres://someone:hunter2hunter2@db:5432/runs",
		"parameter": "https://bucket/data?api_key=0123456789abcdef",
		"flag":      "train.py --hf-token 0123456789abcdef",
		"nvidia":    "nvapi-" + strings.Repeat("a1B2c3D4", 8),
		"replicate": "r8_" + strings.Repeat("a1B2c3D4", 5),
		"variable":  "DB_PASS=qwertz0123456789",
		"shared":    "Endpoint=sb://x/;SharedAccessKey=qwertz0123456789",
		"slash":     "postgres://someone:a/hunter2@db:5432/runs",
		"webhook":   "https://hooks.slack.com/services/T00000000/B00000000/" + strings.Repeat("a1B2c3", 4),
	}
	plant := func(attributes pcommon.Map) {
		for _, name := range removed(t) {
			if prefix, all := strings.CutSuffix(name, "*"); all {
				name = strings.ReplaceAll(prefix+".0", "..", ".")
			}
			attributes.PutStr(name, planted+" of "+name)
		}
		for name, secret := range credentials {
			attributes.PutStr("kept."+name, "see "+secret+" there")
		}
		attributes.PutEmptySlice("process.command_args").AppendEmpty().SetStr("--api-key=" + credentials["openai"])
		attributes.PutStr("http.request.header.authorization", planted)
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

	logs := oneLog("anyone", "connected with "+credentials["url"])
	logs.ResourceLogs().At(0).Resource().Attributes().PutStr("user.name", planted)
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	plant(records.At(0).Attributes())
	choice := records.AppendEmpty()
	choice.SetEventName("gen_ai.choice")
	choice.Body().SetEmptyMap().PutEmptyMap("anything").PutStr("content", planted)
	older := records.AppendEmpty()
	older.Attributes().PutStr("event.name", "gen_ai.user.message")
	older.Body().SetStr(planted)
	structured := records.AppendEmpty()
	structured.Body().SetEmptyMap().PutStr("message", planted)
	structured.Body().Map().PutStr("stage", "load")
	require.NoError(t, p.sender.Logs(t.Context(), logs))

	metrics := oneCounter("questionnaire", "questions", 3, map[string]string{"user": planted, "kind": "short"})
	metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("enduser.id", planted)
	metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("team", "vision")
	metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", "q1")
	require.NoError(t, p.sender.Metrics(t.Context(), metrics))

	owners := oneCounter("anyone", "nvidia.gpu.workload.anything", 1, map[string]string{"user.id": "1000"})
	require.NoError(t, p.sender.Metrics(t.Context(), owners))

	p.await(t, 1, 4)
	assert.Equal(t, "1000", awaitSeries(t, p.collector, "nvidia_gpu_workload_anything_total", 1)[0].Labels["user_id"])
	awaitSeries(t, p.collector, "questions_total", 1)
	awaitSome(t, p.collector, "traces_span_metrics_calls_total", "a span")
	for _, text := range p.left(t) {
		assert.NotContains(t, text, planted)
		for name, secret := range credentials {
			value := secret
			if at := strings.LastIndexByte(secret, '='); at >= 0 {
				value = secret[at+1:]
			}
			assert.NotContains(t, text, value, name)
			assert.NotContains(t, text, "hunter2", name)
		}
	}
	attributes := p.sink.Spans()[0].Attributes().AsRaw()
	assert.Equal(t, int64(17), attributes["prompt_size"])
	assert.Equal(t, "see **** there", attributes["kept.hugging"])
	assert.Contains(t, attributes, "repro.artifact.fingerprint", "the payload was read before it was removed")
	assert.Equal(t, ptrace.StatusCodeError, p.sink.Spans()[0].Status().Code())
	assert.Equal(t, map[string]any{"stage": "load"}, p.sink.LogRecords()[3].Body().Map().AsRaw())
	exception, _ := p.sink.Spans()[0].Events().At(0).Attributes().Get("exception.type")
	assert.Equal(t, "ValueError", exception.Str())
	assert.Len(t, harness.Select(p.exposition(t), "target_info", harness.Labels{"job": "questionnaire", "team": "vision"}), 1)
	stopDropIn(t, p.collector)
}

// aliasRow is a row of the tables of clients in docs/vocabulary.md: the
// client's attribute and the canonical one.
var aliasRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|")

// Whatever ml_enrich reads or writes leaves, users' names alone excepted.
func TestProductionKeepsTheVocabulary(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	keep := map[string]bool{}
	canonical, _ := committedLabels(t)
	for key := range canonical {
		keep[key] = true
	}
	page, err := os.ReadFile(harness.Path("docs", "vocabulary.md"))
	require.NoError(t, err)
	_, clients, _ := strings.Cut(string(page), "\n## Clients\n")
	for _, row := range aliasRow.FindAllStringSubmatch(clients, -1) {
		// Snakepit's error is read for its type.
		if row[2] != "ml.user" && row[1] != "snakepit.grpc.error" {
			keep[strings.NewReplacer("*", "up", "<name>", "up").Replace(row[1])] = true
		}
	}
	require.Greater(t, len(keep), 200, "docs/vocabulary.md has no tables of clients")
	keep["repro.payload.size"] = true
	require.NoError(t, p.sender.Traces(t.Context(), oneSpan("anyone", "chat", func(attributes pcommon.Map) {
		for key := range keep {
			attributes.PutStr(key, "1")
		}
	})))
	p.await(t, 1, 0)
	got := p.sink.Spans()[0].Attributes()
	for key := range keep {
		value, found := got.Get(key)
		assert.True(t, found, "%s was removed", key)
		assert.Equal(t, "1", value.AsString(), key)
	}
	stopDropIn(t, p.collector)
}

// contentOf collects the values of a recording's content that are long enough
// to be found again.
func contentOf(names []string, td ptrace.Traces) (content []string) {
	collect := func(attributes pcommon.Map) {
		for key, value := range attributes.All() {
			// The example about LLMs names its users as the answers are named.
			if key != "gen_ai.user" && isRemoved(names, key) && len(value.AsString()) >= 20 {
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

// assertNotLeft expects content in no text that reached a back end.
func assertNotLeft(t *testing.T, left []string, content string) {
	t.Helper()
	for _, text := range left {
		if strings.Contains(text, content) {
			assert.Failf(t, "content has left", "%.200q is in %.300q", content, text)
			return
		}
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

// What real clients sent goes through whole but for its content: every other
// attribute arrives as it was sent, with what was made of the content before
// it was removed.
func TestProductionSendsNoContentOfRecordings(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(harness.Path("examples", "*", "recording"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	names := removed(t)
	for _, folder := range folders {
		client := filepath.Base(filepath.Dir(folder))
		t.Run(client, func(t *testing.T) {
			p := startProduction(t)
			var content []string
			sent := map[string]ptrace.Span{}
			for _, request := range recorded(t, client, "traces") {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
				require.NoError(t, err)
				content = append(content, contentOf(names, td)...)
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

			canonical := 0
			for _, span := range p.sink.Spans() {
				before := sent[span.TraceID().String()+span.SpanID().String()]
				for key, value := range before.Attributes().All() {
					after, found := span.Attributes().Get(key)
					assert.Equal(t, !isRemoved(names, key), found, "attribute %s", key)
					if found {
						assert.Equal(t, value.AsString(), after.AsString(), key)
					}
				}
				canonical += span.Attributes().Len()
				assert.Equal(t, before.Status().Code(), span.Status().Code())
				assert.Equal(t, before.Events().Len(), span.Events().Len())
			}
			assert.Positive(t, canonical)
			left := p.left(t)
			for _, text := range content {
				assertNotLeft(t, left, text)
			}
			assertDerived(t, client, p)
			stopDropIn(t, p.collector)
		})
	}
}

// assertDerived expects of each client what could only be made of what was
// sent before its content was removed, or has to outlive it.
func assertDerived(t *testing.T, client string, p *production) {
	t.Helper()
	found := map[string]bool{}
	for _, td := range p.sink.Traces() {
		for _, text := range spanTexts(td) {
			found[text] = true
		}
	}
	for _, key := range map[string][]string{
		"taskweaver": {"gen_ai.usage.input_tokens", "ml.tokens.estimated", "ml.session.id", "ml.request.id"},
		"llm":        {"gen_ai.usage.output_tokens", "ml.tokens_per_second", "gen_ai.response.id"},
		"torchtel":   {"ml.user", "ml.rank.global", "repro.artifact.fingerprint", "repro.payload.size", "exception.type"},
		"snakepit":   {"ml.session.id", "snakepit.correlation_id", "repro.artifact.fingerprint", "error.type"},
		"tuft":       {"ml.training_run.id", "ml.session.id", "ml.batch.size"},
		"fx":         {"ml.epoch", "ml.loss", "ml.run.id"},
	}[client] {
		assert.True(t, found[key], "nothing of %s has %s", client, key)
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
	names := removed(t)
	p := startProduction(t)
	sent := harness.Generate(t, p.collector, harness.Workload{
		Seed: 11, Scenarios: "all", Duration: 2 * time.Second, Rate: 20, Ranks: 2,
	})
	p.await(t, len(sent.Spans), len(sent.Logs))
	left := p.left(t)
	content := 0
	for _, span := range sent.Spans {
		for key, value := range span.Attributes {
			if text := fmt.Sprint(value); isRemoved(names, key) && len(text) >= 20 {
				content++
				assertNotLeft(t, left, text)
			}
		}
	}
	assert.Positive(t, content, "the scenarios have no content")
	stopDropIn(t, p.collector)
}
