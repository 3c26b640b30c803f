package smoke

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// otherPrograms are top-level keys of YAML that neither a collector nor Compose
// reads: Prometheus' configuration, TuFT's, Kubernetes objects, registries of names. Such blocks have
// to be YAML, no more; so have recordings, which the receiver's tests load.
var otherPrograms = []string{"scrape_configs", "telemetry", "apiVersion", "schema_url", "file_format"}

// Every configuration that a reader may copy from the documentation has to
// load. A block need not be whole: what it leaves out is completed. One that is
// marked over=FILE is lines to be added to that file, and loaded with it; over=FILE,FILE
// is lines to be added to several. One that is marked values is of the Helm chart.
func TestDocumentedYAMLLoads(t *testing.T) {
	blocks := documents.Of(documented(t), "yaml", "yml")
	require.NotEmpty(t, blocks, "the documents have no YAML block: are they still where this test looks?")
	for _, block := range blocks {
		name := fmt.Sprintf("%s:%d", block.File, block.Line)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content map[string]any
			if err := yaml.Unmarshal([]byte(block.Text), &content); err != nil {
				t.Fatalf("it is not YAML of keys and values: %v", err)
			}
			if over, ok := block.Option("over"); ok {
				added := filepath.Join(t.TempDir(), "added.yaml")
				require.NoError(t, os.WriteFile(added, []byte(block.Text), 0o600))
				files := append(shippedAll(t, over), added)
				code, output := harness.Validate(t, []string{recording(), "KAFKA_PASSWORD=secret"}, files...)
				assert.Zero(t, code, "%s does not load over %s:\n%s", name, over, output)
				return
			}
			if _, ok := content["services"]; ok {
				loadCompose(t, block.Text)
				return
			}
			if block.Info == "values" {
				assert.NoError(t, chartSchema(t).Validate(any(content)))
				return
			}
			if block.Info == "recording" || slices.ContainsFunc(otherPrograms, func(key string) bool {
				_, found := content[key]
				return found
			}) {
				return
			}
			config := complete(t, content)
			text, err := yaml.Marshal(config)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "block.yaml")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			// A path in a document is meant from where the document is.
			code, output := harness.ValidateIn(t, filepath.Dir(harness.Path(block.File)), []string{recording()}, file)
			assert.Zero(t, code, "%s does not load:\n%s\nas\n%s", name, output, text)
		})
	}
}

// loadCompose expects Compose to read a file of this text, in which no key is
// unknown to it.
func loadCompose(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compose.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("documented"))
	require.NoError(t, err)
	_, err = options.LoadProject(t.Context())
	require.NoError(t, err, text)
}

// documented returns the fenced blocks of everything that documents the project
// or a component.
func documented(t *testing.T) []documents.Block {
	t.Helper()
	blocks, err := documents.All(harness.Path())
	require.NoError(t, err)
	return blocks
}

// sections are the keys of a collector's configuration that hold components.
var sections = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

// complete makes a whole configuration of a block: components that its
// pipelines name and that it does not define are taken from the default
// configuration, and a block without pipelines gets one.
func complete(t *testing.T, content map[string]any) map[string]any {
	t.Helper()
	defaults := defaultConfiguration(t)

	// A pipeline's lists by themselves are one pipeline.
	pipeline := map[string]any{}
	for _, section := range []string{"receivers", "processors", "exporters"} {
		if list, ok := content[section].([]any); ok {
			pipeline[section] = list
			delete(content, section)
		}
	}
	if len(pipeline) > 0 {
		content["service"] = map[string]any{"pipelines": map[string]any{"traces": pipeline}}
	}
	// So are pipelines without the keys above them.
	if pipelines, ok := content["pipelines"]; ok {
		content["service"] = map[string]any{"pipelines": pipelines}
		delete(content, "pipelines")
	}
	for key := range content {
		if key != "service" && !slices.Contains(sections, key) {
			t.Fatalf("the block has the key %q: no collector reads it, and this test does not know what does", key)
		}
	}

	service, _ := content["service"].(map[string]any)
	if service == nil {
		service = map[string]any{}
		content["service"] = service
	}
	pipelines, _ := service["pipelines"].(map[string]any)
	if pipelines == nil {
		pipelines = map[string]any{"traces": map[string]any{}}
		service["pipelines"] = pipelines
	}
	for _, value := range pipelines {
		fields, ok := value.(map[string]any)
		require.True(t, ok, "a pipeline is a map of receivers, processors and exporters")
		if _, ok := fields["receivers"]; !ok {
			fields["receivers"] = []any{"otlp"}
		}
		if _, ok := fields["exporters"]; !ok {
			fields["exporters"] = []any{"debug"}
		}
		define(content, defaults, "receivers", fields["receivers"])
		define(content, defaults, "processors", fields["processors"])
		define(content, defaults, "exporters", fields["exporters"])
	}
	// The default otlp receiver has it as a middleware.
	if extensions, _ := service["extensions"].([]any); !slices.Contains(extensions, any("ml_guard")) {
		service["extensions"] = append(extensions, "ml_guard")
	}
	define(content, defaults, "extensions", service["extensions"])
	connect(pipelines, content)
	return content
}

// define adds the components of a list that neither the block's section nor its
// connectors define.
func define(content, defaults map[string]any, section string, list any) {
	ids, _ := list.([]any)
	for _, id := range ids {
		id := fmt.Sprint(id)
		if has(content, section, id) || has(content, "connectors", id) {
			continue
		}
		from := section
		if !has(defaults, section, id) && has(defaults, "connectors", id) {
			from = "connectors"
		}
		components, _ := content[from].(map[string]any)
		if components == nil {
			components = map[string]any{}
			content[from] = components
		}
		defined, _ := defaults[from].(map[string]any)
		components[id] = defined[id]
	}
}

// connect gives every connector that the pipelines use on one side only the
// other side, which a collector asks for.
func connect(pipelines, content map[string]any) {
	connectors, _ := content["connectors"].(map[string]any)
	for id := range connectors {
		receives, exports := uses(pipelines, "receivers", id), uses(pipelines, "exporters", id)
		switch {
		case exports && !receives:
			signal := "metrics"
			if strings.HasPrefix(id, "forward") {
				signal = "traces"
			}
			pipelines[signal+"/completed-"+strings.ReplaceAll(id, "/", "-")] = map[string]any{
				"receivers": []any{id}, "exporters": []any{"debug"},
			}
			define(content, nil, "exporters", []any{"debug"})
		case receives && !exports:
			pipelines["traces/completed-"+strings.ReplaceAll(id, "/", "-")] = map[string]any{
				"receivers": []any{"otlp"}, "exporters": []any{id},
			}
			define(content, map[string]any{"receivers": map[string]any{"otlp": completedOTLP}}, "receivers", []any{"otlp"})
		}
	}
}

var completedOTLP = map[string]any{"protocols": map[string]any{"grpc": nil}}

func uses(pipelines map[string]any, section, id string) bool {
	for _, value := range pipelines {
		fields, _ := value.(map[string]any)
		list, _ := fields[section].([]any)
		if slices.Contains(list, any(id)) {
			return true
		}
	}
	return false
}

func has(config map[string]any, section, id string) bool {
	components, _ := config[section].(map[string]any)
	_, found := components[id]
	return found
}

func defaultConfiguration(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(harness.Path("distribution", "config", "agent.yaml"))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	return config
}
