package smoke

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// queueing are the types of exporters that have a sending queue unless it is
// switched off, under all their names.
var queueing = []string{"otlp_grpc", "otlp", "otlp_http", "otlphttp", "zipkin", "kafka"}

// Every queue that is shipped or shown is bounded in bytes. A bound in requests
// is none: memory and disks are filled by bytes, and a disk that is full loses
// what is queued.
func TestQueuesAreBoundedInBytes(t *testing.T) {
	checked := 0
	for name, config := range shownConfigurations(t) {
		exporters, _ := config["exporters"].(map[string]any)
		for id, settings := range exporters {
			fields, _ := settings.(map[string]any)
			queue, present := fields["sending_queue"].(map[string]any)
			if kind, _, _ := strings.Cut(id, "/"); !present && !slices.Contains(queueing, kind) {
				continue
			}
			checked++
			t.Run(name+" "+id, func(t *testing.T) { checkQueue(t, config, queue) })
		}
	}
	assert.Greater(t, checked, 8, "are the configurations still where this test looks?")
}

func checkQueue(t *testing.T, config, queue map[string]any) {
	t.Helper()
	if queue["enabled"] == false {
		return
	}
	size := bytesOf(t, queue["queue_size"])
	assert.Equal(t, "bytes", queue["sizer"], "the queue has no bound in bytes")
	assert.Positive(t, size, "queue_size is to be set: the default is 1000, of whatever the sizer counts")
	if settings, batched := queue["batch"]; batched {
		batch, _ := settings.(map[string]any)
		// Without one it is the queue's, and min_size, 8192 by default, is 8 KiB.
		assert.NotNil(t, batch["sizer"], "a batch in a queue of bytes is to name its sizer")
		if batch["sizer"] == "bytes" {
			assert.Less(t, bytesOf(t, batch["max_size"]), int64(4<<20), "a gRPC server refuses requests above 4 MiB for good")
			assert.Positive(t, bytesOf(t, batch["max_size"]), "without max_size a batch has no bound")
		}
	}
	storage, persistent := queue["storage"].(string)
	if !persistent {
		return
	}
	extensions, _ := config["extensions"].(map[string]any)
	file, ok := extensions[storage].(map[string]any)
	require.True(t, ok, "extensions has no %s", storage)
	assert.Equal(t, true, file["recreate"], "a damaged file would end each start")
	assert.GreaterOrEqual(t, bytesOf(t, file["max_size"]), 4*size, "a file that reaches max_size loses what is queued")
	compaction, _ := file["compaction"].(map[string]any)
	for _, key := range []string{"on_start", "on_rebound", "cleanup_on_start"} {
		assert.Equal(t, true, compaction[key], "compaction::%s", key)
	}
	assert.Equal(t, file["directory"], compaction["directory"], "a temporary file elsewhere is copied, not renamed")
}

// Exporters batch in their queues. The processor that batches answers the sender
// before the exporter has the data, so a full queue refuses nobody. The archive is the
// exception: its exporter has no queue, and a full disk is to refuse nobody.
func TestNothingShownUsesTheBatchProcessor(t *testing.T) {
	for name, config := range shownConfigurations(t) {
		processors, _ := config["processors"].(map[string]any)
		for id := range processors {
			kind, _, _ := strings.Cut(id, "/")
			assert.True(t, kind != "batch" || id == "batch/archive", "%s: %s", name, id)
		}
		service, _ := config["service"].(map[string]any)
		pipelines, _ := service["pipelines"].(map[string]any)
		for id, pipeline := range pipelines {
			fields, _ := pipeline.(map[string]any)
			used, _ := fields["processors"].([]any)
			assert.NotContains(t, used, "batch", "%s: %s", name, id)
			if id != "traces/archive" {
				assert.NotContains(t, used, "batch/archive", "%s: %s", name, id)
			}
		}
	}
}

// bytesOf reads a size, a number or an environment variable's default.
func bytesOf(t *testing.T, value any) int64 {
	t.Helper()
	if value == nil {
		return 0
	}
	text := fmt.Sprint(value)
	if match := regexp.MustCompile(`^\$\{env:[A-Z_]+:-([0-9]+)\}$`).FindStringSubmatch(text); match != nil {
		text = match[1]
	}
	number, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "a size is a number of bytes")
	return number
}

// shownConfigurations returns every collector's configuration that is shipped
// or that a document shows, by its name. What is merged over another file is
// here as the collector sees it.
func shownConfigurations(t *testing.T) map[string]map[string]any {
	t.Helper()
	shown := map[string]map[string]any{}
	for _, pattern := range []string{"distribution/config/*.yaml", "docker/collector/*.yaml", "docker/jaeger/*.yaml", "examples/*/collector*.yaml"} {
		files, err := filepath.Glob(harness.Path(filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			shown[relative(t, file)] = over(t, relative(t, file), nil)
		}
	}
	stack := harness.Path("docker", "collector", "stack.yaml")
	shown[relative(t, stack)] = over(t, "distribution/config/agent.yaml", readYAML(t, stack))

	manifests, err := filepath.Glob(harness.Path("examples", "gpu", "kubernetes-*.yaml"))
	require.NoError(t, err)
	for _, manifest := range manifests {
		for i, text := range embeddedConfigurations(t, manifest) {
			var config map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(text), &config))
			shown[fmt.Sprintf("%s, %d", relative(t, manifest), i)] = config
		}
	}
	for _, block := range documents.Of(documented(t), "yaml", "yml") {
		var config map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block.Text), &config))
		// What testdata has is the clients' own documents' and not shown here.
		if file, ok := block.Option("over"); ok && !strings.Contains(file, "/testdata/") {
			config = over(t, file, config)
		}
		shown[fmt.Sprintf("%s:%d", block.File, block.Line)] = config
	}
	return shown
}

// embeddedConfigurations returns the texts of a manifest's ConfigMaps.
func embeddedConfigurations(t *testing.T, manifest string) []string {
	t.Helper()
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	var found []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Kind string            `yaml:"kind"`
			Data map[string]string `yaml:"data"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if object.Kind == "ConfigMap" {
			found = slices.AppendSeq(found, maps.Values(object.Data))
		}
	}
	return found
}

// over returns files of the repository, as in a block's option, with lines merged over them.
func over(t *testing.T, files string, lines map[string]any) map[string]any {
	t.Helper()
	config := map[string]any{}
	for _, part := range shippedAll(t, files) {
		documents.Merge(config, readYAML(t, part))
	}
	documents.Merge(config, lines)
	return config
}

func relative(t *testing.T, file string) string {
	t.Helper()
	name, err := filepath.Rel(harness.Path(), file)
	require.NoError(t, err)
	return filepath.ToSlash(name)
}

func readYAML(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, yaml.Unmarshal(text, &content), file)
	return content
}

// A request that becomes too large for the server of the back end, because ml_enrich adds
// attributes, arrives in parts.
func TestARequestThatGrows(t *testing.T) {
	t.Parallel()
	const spans, most = 34_000, 4 << 20
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"), Env: []string{"JAEGER_ENDPOINT=" + sink.Endpoint}, Dir: t.TempDir(),
	})
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(t, rs.Resource().Attributes().FromRaw(map[string]any{"service.name": "torchtel", "job_id": 4711, "global_rank": 3, "world_size": 8}))
	to, now := rs.ScopeSpans().AppendEmpty().Spans(), time.Now()
	for i := range spans {
		span := to.AppendEmpty()
		span.SetName("Llama.forward")
		span.SetTraceID([16]byte{1, byte(i), byte(i >> 8)})
		span.SetSpanID([8]byte{1, byte(i), byte(i >> 8)})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Millisecond)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutStr("sequence", strings.Repeat("s", 40))
	}
	var sizer ptrace.ProtoMarshaler
	require.Less(t, sizer.TracesSize(td), most)
	require.NoError(t, senderTo(t, collector).Traces(t.Context(), td))
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, sink.Spans(), spans) }, time.Minute, 50*time.Millisecond)
	sum := 0
	for _, part := range sink.Traces() {
		sum += sizer.TracesSize(part)
	}
	assert.Greater(t, sum, most, "it has not grown")
}
