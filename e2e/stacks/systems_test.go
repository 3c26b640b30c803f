package stacks

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// section is what the page of one system has.
type section struct {
	page string
	// base is the configuration that the reader has, and lines what the page adds to
	// it.
	base  string
	lines map[string]any
	// series and keys are what the reader is told to expect.
	series, keys []string
}

var quoted = regexp.MustCompile("`([a-z][a-z0-9_.]*)`")

// readSection reads the page of a system.
func readSection(t *testing.T, name string) section {
	t.Helper()
	page := "docs/systems/" + name + ".md"
	text, err := os.ReadFile(harness.Path(filepath.FromSlash(page)))
	require.NoError(t, err)
	body := string(text)

	s := section{page: page, base: "distribution/config/agent.yaml", lines: map[string]any{}}
	for _, block := range documents.Of(documents.Parse(page, body), "yaml") {
		if over, ok := block.Option("over"); ok {
			s.base = over
			require.NoError(t, yaml.Unmarshal([]byte(block.Text), &s.lines))
		}
	}
	s.series = bulletNames(body, "In Prometheus")
	s.keys = bulletNames(body, "On spans")
	require.NotEmpty(t, s.series, "nothing is promised in Prometheus")
	require.NotEmpty(t, s.keys, "nothing is promised on spans")
	return s
}

// bulletNames returns the names in backquotes that a bullet of a page has and
// that have a dot or an underscore, as metrics and attributes do.
func bulletNames(body, title string) []string {
	_, rest, _ := strings.Cut(body, "\n- **"+title+"**")
	text, _, _ := strings.Cut(rest, "\n- **")
	var names []string
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		if strings.ContainsAny(match[1], "._") {
			names = append(names, match[1])
		}
	}
	return names
}

// The lines of a system's page, added as it says, give what it says.
func TestSystems(t *testing.T) {
	t.Parallel()
	for title, send := range map[string]func(t *testing.T, collector *harness.Collector) (stop func()){
		"torchtel":   generates("torchtel", 21, 2),
		"tuft":       generates("tuft", 22, 1),
		"snakepit":   generates("snakepit", 23, 1),
		"fx":         generates("fx", 24, 1),
		"taskweaver": generates("taskweaver", 25, 1),
		"vllm":       vllm,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := readSection(t, title)
			collector, sink := s.start(t, title)
			// Rates need more than one export, so the client goes on until all that
			// is promised is there.
			stop := send(t, collector)

			require.EventuallyWithT(t, func(c *assert.CollectT) {
				samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
				if !assert.NoError(c, err) {
					return
				}
				there := map[string]bool{}
				for _, sample := range samples {
					name := sample.Labels["__name__"]
					there[name] = true
					there[strings.TrimSuffix(name, "_count")] = true
				}
				for _, name := range s.series {
					assert.True(c, there[name], "%s promises the series %s; there are %v", s.page, name, slices.Sorted(maps.Keys(there)))
				}
				keys := map[string]bool{}
				for _, traces := range sink.Traces() {
					for _, resource := range traces.ResourceSpans().All() {
						addKeys(keys, resource.Resource().Attributes())
						for _, scope := range resource.ScopeSpans().All() {
							for _, span := range scope.Spans().All() {
								addKeys(keys, span.Attributes())
							}
						}
					}
				}
				for _, key := range s.keys {
					assert.True(c, keys[key], "%s promises the key %s on spans; there are %v", s.page, key, slices.Sorted(maps.Keys(keys)))
				}
			}, harness.ArrivalTimeout, harness.ArrivalPoll)
			stop()
			assert.Zero(t, collector.Stop(t), "exit code after SIGTERM")
			assert.Empty(t, harness.LogErrors(collector.Output()), "errors in the collector's log")
		})
	}
}

func addKeys(keys map[string]bool, attributes pcommon.Map) {
	for key := range attributes.All() {
		keys[key] = true
	}
}

// start runs a collector with the page's configuration, with a sink in
// Jaeger's place and what Snakepit and vLLM show for scraping.
func (s section) start(t *testing.T, title string) (*harness.Collector, *harness.Sink) {
	t.Helper()
	sink := harness.StartSink(t)
	config := readYAML(t, harness.Path(filepath.FromSlash(s.base)))
	documents.Merge(config, s.lines)

	overrides := map[string]any{
		"connectors::ml_metrics::flush_interval": "1s",
		"connectors::ml_metrics::initial_zero":   "1s",
	}
	exporters, _ := config["exporters"].(map[string]any)
	for id := range exporters {
		if name, _, _ := strings.Cut(id, "/"); strings.HasPrefix(name, "otlp") {
			overrides["exporters::"+id+"::endpoint"] = sink.Endpoint
		}
	}
	if expositions[title] != "" {
		scrape(t, config, expositions[title])
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	env := []string{"TRACES_EXPORTER=otlp_grpc/jaeger"}
	return harness.StartCollector(t, harness.CollectorOptions{Config: file, Overrides: overrides, Env: env}), sink
}

// expositions are what two of the systems show on an endpoint of their own,
// written after their documents. The tokens of vLLM rise with each scrape.
var expositions = map[string]string{
	"snakepit": exposition,
	"vllm": `# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="Qwen/Qwen3-8B",engine="0"} TOKENS
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="Qwen/Qwen3-8B",engine="0"} TOKENS
`,
}

// scrape has the prometheus receiver of the page scrape an exposition, every
// second.
func scrape(t *testing.T, config map[string]any, text string) {
	t.Helper()
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "TOKENS", strconv.FormatInt(scrapes.Add(1)*100, 10)))
	}))
	t.Cleanup(server.Close)
	var receivers struct {
		Prometheus struct {
			Config struct {
				ScrapeConfigs []map[string]any `yaml:"scrape_configs"`
			} `yaml:"config"`
		} `yaml:"prometheus"`
	}
	encoded, err := yaml.Marshal(config["receivers"])
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(encoded, &receivers))
	require.Len(t, receivers.Prometheus.Config.ScrapeConfigs, 1, "the page has the collector scrape something")
	target := receivers.Prometheus.Config.ScrapeConfigs[0]
	target["scrape_interval"] = "1s"
	target["static_configs"] = []any{map[string]any{"targets": []any{strings.TrimPrefix(server.URL, "http://")}}}
	documents.Merge(config, map[string]any{"receivers": map[string]any{"prometheus": map[string]any{"config": map[string]any{
		"scrape_configs": []any{target},
	}}}})
}

// generates returns what has mlgen send as a system does, by the transport that
// the system uses.
func generates(scenario string, seed int64, ranks int) func(t *testing.T, collector *harness.Collector) (stop func()) {
	return func(t *testing.T, collector *harness.Collector) func() {
		var endpoints harness.Endpoints
		if scenario == "tuft" || scenario == "taskweaver" {
			endpoints.GRPC = collector.Address(t, "receivers::otlp::protocols::grpc")
		} else {
			endpoints.HTTP = "http://" + collector.Address(t, "receivers::otlp::protocols::http")
			endpoints.FX = endpoints.HTTP
		}
		workload := untilStopped(scenario, seed)
		workload.Ranks = ranks
		generator := harness.StartGenerator(t, endpoints, workload)
		return func() { generator.Stop(t) }
	}
}

// vllm sends one request as vLLM's documents and source have it.
func vllm(t *testing.T, collector *harness.Collector) func() {
	t.Helper()
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "vllm")
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("vllm.llm_engine")
	span := scope.Spans().AppendEmpty()
	span.SetName("llm_request")
	span.SetKind(ptrace.SpanKindServer)
	span.SetTraceID(pcommon.TraceID{0x71, 1})
	span.SetSpanID(pcommon.SpanID{0x71, 2})
	end := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-3 * time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	attributes := span.Attributes()
	attributes.PutStr("gen_ai.response.model", "Qwen/Qwen3-8B")
	attributes.PutStr("gen_ai.request.id", "cmpl-1")
	attributes.PutInt("gen_ai.usage.prompt_tokens", 100)
	attributes.PutInt("gen_ai.usage.completion_tokens", 51)
	attributes.PutDouble("gen_ai.latency.e2e", 3)
	attributes.PutDouble("gen_ai.latency.time_in_queue", 0.1)
	attributes.PutDouble("gen_ai.latency.time_to_first_token", 0.5)
	attributes.PutDouble("gen_ai.latency.time_in_model_prefill", 0.4)
	attributes.PutDouble("gen_ai.latency.time_in_model_decode", 2.5)
	require.NoError(t, sender.Traces(t.Context(), traces))
	return func() { assert.NoError(t, sender.Close()) }
}
