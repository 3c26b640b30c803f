package smoke

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// block is one fenced YAML block of a document.
type block struct {
	file string
	line int
	text string
	// info is what follows "yaml" on the fence's line.
	info string
}

// otherPrograms are top-level keys of YAML that no collector reads: compose
// files, Prometheus' configuration, Kubernetes objects. Such blocks have to be
// YAML, no more; so have recordings, which the receiver's tests load.
var otherPrograms = []string{"services", "scrape_configs", "apiVersion"}

// Every configuration that a reader may copy from the documentation has to
// load. A block need not be whole: what it leaves out is completed.
func TestDocumentedYAMLLoads(t *testing.T) {
	blocks := documentedYAML(t)
	require.NotEmpty(t, blocks, "the documents have no YAML block: are they still where this test looks?")
	for _, block := range blocks {
		name := fmt.Sprintf("%s:%d", block.file, block.line)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content map[string]any
			if err := yaml.Unmarshal([]byte(block.text), &content); err != nil {
				t.Fatalf("it is not YAML of keys and values: %v", err)
			}
			if strings.Contains(block.info, "title=compose") || strings.TrimSpace(block.info) == "recording" || slices.ContainsFunc(otherPrograms, func(key string) bool {
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
			code, output := harness.ValidateIn(t, filepath.Dir(harness.Path(block.file)), []string{recording()}, file)
			assert.Zero(t, code, "%s does not load:\n%s\nas\n%s", name, output, text)
		})
	}
}

// documentedYAML collects the YAML blocks of everything that documents the
// project or a component.
func documentedYAML(t *testing.T) []block {
	t.Helper()
	var blocks []block
	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/*/*.md",
		"receiver/*/*.md", "processor/*/*.md", "exporter/*/*.md", "connector/*/*.md", "extension/*/*.md",
		"cmd/*/*.md", "docker/*.md", "docker/*/*.md", "examples/*.md", "examples/*/*.md",
	} {
		files, err := filepath.Glob(harness.Path(filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, file := range files {
			if filepath.Base(file) == "documentation.md" {
				// Generated, with placeholders in its YAML.
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			name, err := filepath.Rel(harness.Path(), file)
			require.NoError(t, err)
			blocks = append(blocks, fencedYAML(name, string(text))...)
		}
	}
	return blocks
}

var fence = regexp.MustCompile("^( *)(`{3,}|~{3,}) *(yaml|yml)?(.*)$")

// fencedYAML returns the YAML blocks of a document. A block in a list item is
// indented like its fence.
func fencedYAML(file, text string) []block {
	var blocks []block
	var open []string
	var current *block
	for number, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			open = match
			if match[3] != "" {
				current = &block{file: file, line: number + 1, info: match[4]}
			}
		case open != nil && match != nil && strings.HasPrefix(match[2], open[2]) && match[3] == "" && strings.TrimSpace(match[4]) == "":
			if current != nil {
				blocks = append(blocks, *current)
			}
			open, current = nil, nil
		case current != nil:
			current.text += strings.TrimPrefix(line, open[1]) + "\n"
		}
	}
	return blocks
}

func TestFencedYAML(t *testing.T) {
	text := "```sh\nmake demo\n```\n" +
		"text\n\n```yaml\na: 1\n```\n" +
		"- item\n\n  ```yaml title=compose\n  b:\n    c: 2\n  ```\n" +
		"````md\n```yaml\nnot: taken\n```\n````\n"
	blocks := fencedYAML("x.md", text)
	require.Len(t, blocks, 2)
	assert.Equal(t, block{file: "x.md", line: 6, text: "a: 1\n"}, blocks[0])
	assert.Equal(t, block{file: "x.md", line: 11, text: "b:\n  c: 2\n", info: " title=compose"}, blocks[1])
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
