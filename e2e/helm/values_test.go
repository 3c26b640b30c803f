package helm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

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
					"-strict", "-summary", "-skip", "Certificate,PodMonitor,ServiceMonitor,PrometheusRule", "-kubernetes-version", version,
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
		"unknown key":                 {"replicas=3", "additional properties 'replicas' not allowed"},
		"unknown key of a part":       {"agent.gpu=true", "at '/agent': additional properties 'gpu' not allowed"},
		"GPU request":                 {`agent.resources.requests.nvidia\.com/gpu=1`, "at '/agent/resources/requests': additional properties 'nvidia.com/gpu' not allowed"},
		"unknown section":             {"gateway.config.processor.batch=1", "at '/gateway/config': additional properties 'processor' not allowed"},
		"unknown profile":             {"gpu.privileges=root", "at '/gpu/privileges': value must be one of 'rootless', 'attribution', 'privileged'"},
		"wrong type":                  {"gateway.enabled=yes please", "at '/gateway/enabled': got string, want boolean"},
		"memory that is no size":      {"agent.resources.limits.memory=1GB", "at '/agent/resources/limits/memory'"},
		"no memory limit":             {"gpu.resources.limits.memory=null", "at '/gpu/resources/limits': missing property 'memory'"},
		"more memory than the limit":  {"gateway.resources.requests.memory=3Gi", "gateway.resources.requests.memory is 3Gi: it must be at most limits.memory, which is 2Gi"},
		"endpoint without a port":     {"backends.traces.endpoint=jaeger", "at '/backends/traces/endpoint'"},
		"endpoint with a scheme":      {"backends.traces.endpoint=http://jaeger:4317", "at '/backends/traces/endpoint'"},
		"a port that is none":         {"backends.logs.endpoint=logs:74317", "at '/backends/logs/endpoint'"},
		"URL without a scheme":        {"backends.remoteWriteURL=prometheus:9090/api/v1/write", "at '/backends/remoteWriteURL'"},
		"page without a scheme":       {"backends.jaegerURL=jaeger.example", "at '/backends/jaegerURL'"},
		"no image":                    {"image.repository=", "image.repository is empty"},
		"image with a scheme":         {"image.repository=https://registry.example/otelcol-ml", "at '/image/repository'"},
		"image with its tag":          {"image.repository=registry.example/otelcol-ml:1.0", "at '/image/repository'"},
		"digest without its kind":     {"image.digest=0123456789abcdef", "at '/image/digest'"},
		"no destination":              {"backends.traces.endpoint=", "backends.traces.endpoint is empty"},
		"killed while it drains":      {"gateway.drainSeconds=210", "gateway.terminationGracePeriodSeconds is 210: it must be longer than gateway.drainSeconds, which is 210"},
		"seconds with a unit":         {"gateway.drainSeconds=90s", "at '/gateway/drainSeconds': got string, want integer"},
		"no domain":                   {"clusterDomain=cluster.local.", "at '/clusterDomain'"},
		"GPUs without agents":         {"agent.enabled=false", "gpu.enabled needs agent.enabled"},
		"page without gateways":       {"fleet.enabled=true,gateway.enabled=false", "fleet.enabled needs gateway.enabled"},
		"no gateway":                  {"gateway.replicas=0", "at '/gateway/replicas': minimum"},
		"root":                        {"runAsUser=0", "at '/runAsUser': minimum"},
		"no node at a time":           {"agent.maxUnavailable=0", "at '/agent/maxUnavailable'"},
		"more than all":               {"gateway.podDisruptionBudget.maxUnavailable=150%", "at '/gateway/podDisruptionBudget/maxUnavailable'"},
		"a folder that is relative":   {"agent.state.hostPath=var/lib", "at '/agent/state/hostPath'"},
		"a name with capitals":        {"gpu.runtimeClassName=NVIDIA", "at '/gpu/runtimeClassName'"},
		"a label with a space":        {"agent.podLabels.team=ml team", "at '/agent/podLabels/team'"},
		"variables by name":           {"agent.env.GOGC=100", "at '/agent/env': got object, want array"},
		"another operator":            {"gpu.tolerations[0].operator=Exist", "at '/gpu/tolerations/0/operator'"},
		"a network of 33 bits":        {"networkPolicy.scrapers[0].ipBlock.cidr=10.0.0.0/33", "at '/networkPolicy/scrapers/0/ipBlock/cidr'"},
		"a sender that is a text":     {"networkPolicy.clients={all}", "at '/networkPolicy/clients/0': got string, want object"},
		"scrapes without a unit":      {"serviceMonitor.interval=15", "at '/serviceMonitor/interval'"},
		"another kind of issuer":      {"tls.issuerKind=Authority", "at '/tls/issuerKind'"},
		"a secret that cannot be":     {"tls.secret=My_Secret", "at '/tls/secret'"},
		"a time without a unit":       {"gateway.config.connectors.ml_metrics.flush_interval=15", "at '/gateway/config/connectors/ml_metrics/flush_interval'"},
		"a stock time without a unit": {"gateway.config.exporters.otlp_grpc/jaeger.timeout=5", "at '/gateway/config/exporters/otlp_grpc~1jaeger/timeout'"},
		"a number of MiB with a unit": {"gateway.config.processors.memory_limiter.limit_mib=512Mi", "at '/gateway/config/processors/memory_limiter/limit_mib'"},
		"a component that is no map":  {"agent.config.processors.batch=1", "at '/agent/config/processors/batch'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, chart(), "--values", valuesFile("gateways"), "--set", test.set)
			assert.ErrorContains(t, err, test.message)
		})
	}
}

// What has a form that is refused elsewhere is taken where it means something.
func TestTakenValues(t *testing.T) {
	for name, set := range map[string]string{
		"no time":              "gateway.config.exporters.prometheus.metric_expiration=0",
		"times":                "gateway.config.connectors.ml_metrics.flush_interval=1m30s",
		"variables":            "gateway.config.processors.memory_limiter.limit_mib=${env:MIB:-0},gateway.config.processors.memory_limiter.check_interval=${env:EVERY}",
		"Prometheus' own":      "agent.config.receivers.prometheus.config.global.scrape_interval=1d",
		"an IPv6 address":      "backends.traces.endpoint=[fd00::1]:4317",
		"a registry's port":    "image.repository=registry.example:5000/team/otelcol-ml",
		"an IPv6 network":      "networkPolicy.scrapers[0].ipBlock.cidr=fd00::/8",
		"a component's switch": "agent.config.processors.ml_guard=null",
	} {
		_, err := template(t, chart(), "--values", valuesFile("gateways"), "--set", set)
		assert.NoError(t, err, name)
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
	rendered, firsts := 0, make(map[string][]string)
	for _, block := range blocks {
		if block.Info != "values" {
			continue
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(block.Text), 0o600))
		// The later ones of a document say what the first one gets besides.
		if firsts[block.File] == nil {
			firsts[block.File] = []string{"--values", file}
		}
		assert.NotEmpty(t, workloads(render(t, append(slices.Clone(firsts[block.File]), "--values", file)...)), "%s:%d", block.File, block.Line)
		rendered++
	}
	assert.Positive(t, rendered)
}

// The autoscaler in the documentation scales the gateways of the release there.
func TestDocumentedAutoscaler(t *testing.T) {
	blocks, err := documents.All(harness.Path())
	require.NoError(t, err)
	var found []autoscalingv2.HorizontalPodAutoscaler
	for _, block := range blocks {
		if strings.Contains(block.Text, "kind: HorizontalPodAutoscaler") {
			found = append(found, autoscalingv2.HorizontalPodAutoscaler{})
			require.NoError(t, yaml.UnmarshalStrict([]byte(block.Text), &found[len(found)-1]))
		}
	}
	require.Len(t, found, 1)
	output, err := runHelm(t, "template", "otelcol-ml", chart(), "--kube-version", oldestKubernetes, "--values", valuesFile("openshift"), "--show-only", "templates/gateway.yaml")
	require.NoError(t, err)
	target := found[0].Spec.ScaleTargetRef
	assert.Contains(t, output, "apiVersion: "+target.APIVersion+"\nkind: "+target.Kind+"\nmetadata:\n  name: "+target.Name+"\n")
}
