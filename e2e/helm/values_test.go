package helm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func TestLint(t *testing.T) {
	for name, file := range values(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := runHelm(t, "lint", "--strict", chart(), "--values", file)
			require.NoError(t, err)
			assert.NotContains(t, output, "[WARNING]")
		})
	}
}

// kubeconform reads everything but the objects of the Prometheus operator, which
// render decodes. It makes no connection, because the schemas are files.
func TestKubernetesSchemas(t *testing.T) {
	schemas := harness.Path(".cache", "kubernetes-schemas")
	folders, err := filepath.Glob(filepath.Join(schemas, "v*-strict"))
	require.NoError(t, err)
	require.Greater(t, len(folders), 1, "make e2e-helm fetches the schemas of an old and a new Kubernetes")
	require.Equal(t, "v"+oldestKubernetes+"-strict", filepath.Base(folders[0]))
	rendered := t.TempDir()
	for name, file := range values(t) {
		_, err := template(t, chart(), "--values", file, "--output-dir", filepath.Join(rendered, name))
		require.NoError(t, err)
	}
	for _, folder := range folders {
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(folder), "v"), "-strict")
		t.Run(version, func(t *testing.T) {
			code, output := harness.Run(t, harness.Command{
				Name: "kubeconform", Path: harness.Binary(t, "e2e-helm", ".cache", "bin", "kubeconform"),
				Args: []string{
					"-strict", "-summary", "-skip", "PodMonitor,ServiceMonitor,PrometheusRule", "-kubernetes-version", version,
					"-schema-location", schemas + "/{{ .NormalizedKubernetesVersion }}{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json",
					rendered,
				},
			}, harness.StartTimeout)
			assert.Zero(t, code, output)
			assert.Contains(t, output, "Invalid: 0, Errors: 0")
		})
	}
}

// A value that the chart would ignore, or that cannot work, is an error that names
// it.
func TestRefusedValues(t *testing.T) {
	for name, test := range map[string]struct {
		set, message string
	}{
		"unknown key":             {"replicas=3", "additional properties 'replicas' not allowed"},
		"unknown key of a part":   {"agent.gpu=true", "at '/agent': additional properties 'gpu' not allowed"},
		"GPU request":             {`agent.resources.requests.nvidia\.com/gpu=1`, "at '/agent/resources/requests': additional properties 'nvidia.com/gpu' not allowed"},
		"unknown section":         {"gateway.config.processor.batch=1", "at '/gateway/config': additional properties 'processor' not allowed"},
		"unknown profile":         {"gpu.privileges=root", "at '/gpu/privileges': value must be one of 'rootless', 'attribution', 'privileged'"},
		"wrong type":              {"gateway.enabled=yes please", "at '/gateway/enabled': got string, want boolean"},
		"memory that is no size":  {"agent.resources.limits.memory=1GB", "at '/agent/resources/limits/memory'"},
		"no memory limit":         {"gpu.resources.limits.memory=null", "at '/gpu/resources/limits': missing property 'memory'"},
		"endpoint without a port": {"backends.traces.endpoint=jaeger", "at '/backends/traces/endpoint'"},
		"no image":                {"image.repository=", "image.repository is empty"},
		"no destination":          {"backends.traces.endpoint=", "backends.traces.endpoint is empty"},
		"killed while it drains":  {"gateway.drainSeconds=210", "gateway.terminationGracePeriodSeconds is 210: it must be longer than gateway.drainSeconds, which is 210"},
		"no domain":               {"clusterDomain=cluster.local.", "at '/clusterDomain'"},
		"GPUs without agents":     {"agent.enabled=false", "gpu.enabled needs agent.enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, chart(), "--values", valuesFile("gateways"), "--set", test.set)
			assert.ErrorContains(t, err, test.message)
		})
	}
}

func TestOldClustersAreRefused(t *testing.T) {
	_, err := runHelm(t, "template", "telemetry", chart(), "--values", valuesFile("agents"), "--kube-version", "1.29.9")
	assert.ErrorContains(t, err, "chart requires kubeVersion: >=1.30.0-0")
}

// The values in the documentation render.
func TestDocumentedValues(t *testing.T) {
	blocks, err := documents.All(harness.Path())
	require.NoError(t, err)
	rendered := 0
	for _, block := range blocks {
		if block.Info != "values" {
			continue
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(block.Text), 0o600))
		assert.NotEmpty(t, workloads(render(t, "--values", file)), "%s:%d", block.File, block.Line)
		rendered++
	}
	assert.Positive(t, rendered)
}
