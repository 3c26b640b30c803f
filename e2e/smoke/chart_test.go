package smoke

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// What of the Helm chart can be checked without Helm. e2e/helm does the rest.

func chartPath(elements ...string) string {
	return harness.Path(append([]string{"deploy", "helm", "otelcol-ml"}, elements...)...)
}

// chartYAML returns a file of the chart as plain values.
func chartYAML(t *testing.T, elements ...string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(chartPath(elements...))
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, yaml.UnmarshalStrict(text, &content), "%v", elements)
	return content
}

func chartSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(chartPath("values.schema.json"))
	require.NoError(t, err)
	return schema
}

// A chart cannot reach files outside of it, so it has copies of the shipped
// configurations and rules. make generate writes them.
func TestChartHasTheShippedFiles(t *testing.T) {
	sources := map[string]string{
		"agent.yaml":           harness.Path("distribution", "config", "agent.yaml"),
		"agent-gateway.yaml":   harness.Path("distribution", "config", "agent-gateway.yaml"),
		"gateway.yaml":         harness.Path("distribution", "config", "gateway.yaml"),
		"to-fleet.yaml":        harness.Path("distribution", "config", "to-fleet.yaml"),
		"fleet.yaml":           harness.Path("distribution", "config", "fleet.yaml"),
		"logs-kubernetes.yaml": harness.Path("distribution", "config", "logs-kubernetes.yaml"),
		"gpu.yaml":             harness.Path("docker", "collector", "gpu.yaml"),
	}
	rules, err := filepath.Glob(harness.Path("docker", "prometheus", "rules", "*.yaml"))
	require.NoError(t, err)
	for _, file := range rules {
		sources["rules/"+filepath.Base(file)] = file
	}
	require.NoError(t, os.CopyFS(t.TempDir(), os.DirFS(chartPath())), "no file is a link out of the chart")
	copies := map[string]bool{}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		files, err := filepath.Glob(chartPath("files", pattern))
		require.NoError(t, err)
		for _, file := range files {
			name, err := filepath.Rel(chartPath("files"), file)
			require.NoError(t, err)
			copies[filepath.ToSlash(name)] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(sources)), slices.Collect(maps.Keys(copies)))
	for name, source := range sources {
		want, err := os.ReadFile(source)
		require.NoError(t, err)
		got, err := os.ReadFile(chartPath("files", filepath.FromSlash(name)))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "files/%s of the chart is old: run make generate", name)
	}
}

func TestChartVersionIsTheManifests(t *testing.T) {
	assert.Equal(t, readManifest(t).Dist.Version, chartYAML(t, "Chart.yaml")["appVersion"], "the tag that make image gives")
}

// The schema admits values.yaml and each file of values for tests. What has
// properties has no others, and values.yaml has them all.
func TestChartSchema(t *testing.T) {
	schema := chartSchema(t)
	defaults := chartYAML(t, "values.yaml")
	require.NoError(t, schema.Validate(any(defaults)))
	tests, err := filepath.Glob(chartPath("ci", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	for _, file := range tests {
		require.NoError(t, schema.Validate(any(chartYAML(t, "ci", filepath.Base(file)))), file)
	}

	text := chartYAML(t, "values.schema.json")
	isClosed(t, text, "")
	// Helm sets it where the chart is part of another.
	defaults["global"] = map[string]any{}
	hasProperties(t, text, defaults, "")
}

// isClosed expects each object with properties to admit no others.
func isClosed(t *testing.T, node any, path string) {
	t.Helper()
	fields, ok := node.(map[string]any)
	if !ok {
		return
	}
	if _, found := fields["properties"]; found {
		assert.Equal(t, false, fields["additionalProperties"], "%s admits unknown keys", path)
	}
	for key, value := range fields {
		isClosed(t, value, path+"/"+key)
	}
}

// hasProperties expects values to have each property of a schema. Definitions are
// of forms that Kubernetes or the collector has, so their properties are left out.
func hasProperties(t *testing.T, schema, values map[string]any, path string) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		value, found := values[name]
		assert.True(t, found, "values.yaml lacks %s%s", path, name)
		if fields, ok := value.(map[string]any); ok {
			hasProperties(t, property.(map[string]any), fields, path+name+".")
		}
	}
}

// TestChartValuesAreAllTried expects ci/every-option.yaml to set each value to
// another than its default, so that the tests in e2e/helm see all templates.
func TestChartValuesAreAllTried(t *testing.T) {
	compareValues(t, "", chartYAML(t, "values.yaml"), chartYAML(t, "ci", "every-option.yaml"))
}

func compareValues(t *testing.T, path string, defaults, tried map[string]any) {
	t.Helper()
	for key, value := range defaults {
		if key == "enabled" && value == true {
			continue
		}
		fields, nested := value.(map[string]any)
		triedFields, _ := tried[key].(map[string]any)
		if nested && len(fields) > 0 && key != "nodeSelector" {
			compareValues(t, path+key+".", fields, triedFields)
			continue
		}
		if assert.Contains(t, tried, key, "ci/every-option.yaml lacks %s%s", path, key) {
			assert.NotEqual(t, value, tried[key], "ci/every-option.yaml has the default of %s%s", path, key)
		}
	}
}
