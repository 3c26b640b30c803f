package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Each rules file of docker/prometheus has a file of unit tests of its name, and
// the configuration loads it. All files of unit tests pass.
func TestPrometheusRules(t *testing.T) {
	files, err := filepath.Glob(harness.Path("docker", "prometheus", "rules", "*.yaml"))
	require.NoError(t, err)
	text, err := os.ReadFile(harness.Path("docker", "prometheus", "prometheus.yaml"))
	require.NoError(t, err)
	var config struct {
		RuleFiles []string `yaml:"rule_files"`
	}
	require.NoError(t, yaml.Unmarshal(text, &config))

	var loaded []string
	for _, file := range files {
		name := filepath.Base(file)
		loaded = append(loaded, "rules/"+name)
		t.Run(name, func(t *testing.T) {
			output, err := harness.Promtool(t, "check", "rules", "--lint=all", "--lint-fatal", file)
			require.NoError(t, err, "%s", output)
			assert.FileExists(t, harness.Path("docker", "prometheus", "tests", name))
		})
	}
	assert.NotEmpty(t, loaded)
	assert.ElementsMatch(t, loaded, config.RuleFiles)
	for _, name := range []string{"prometheus.yaml", "relabel-dcgm.yaml"} {
		output, err := harness.Promtool(t, "check", "config", name)
		require.NoError(t, err, "%s", output)
	}
	tests, err := filepath.Glob(harness.Path("docker", "prometheus", "tests", "*.yaml"))
	require.NoError(t, err)
	for _, file := range tests {
		t.Run("tests/"+filepath.Base(file), func(t *testing.T) {
			output, err := harness.Promtool(t, "test", "rules", file)
			require.NoError(t, err, "%s", output)
		})
	}
}

// The rules tell writers apart by whatever label their series have: after remote
// write that of instance_label, and no instance.
func TestPrometheusRulesWithAnyLabelOfWriters(t *testing.T) {
	text, err := os.ReadFile(harness.Path("docker", "prometheus", "tests", "writers.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), `instance="`)
	changed := strings.NewReplacer(`instance="`, `collector_instance_id="`, "../rules", harness.Path("docker", "prometheus", "rules")).Replace(string(text))
	file := filepath.Join(t.TempDir(), "writers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	output, err := harness.Promtool(t, "test", "rules", file)
	require.NoError(t, err, "%s", output)
}

// A configuration that takes the folder of rules as a whole, by a glob, starts.
func TestPrometheusTakesTheFolderOfRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "glob.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rule_files: [rules/*.yaml]\n"), 0o600))
	prometheus := harness.StartPrometheusAt(t, file, nil)
	rules, err := prometheus.Rules(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, rules)
}

// The queries that join runs to GPUs, and pods' labels to what pods have of GPUs, are in the
// READMEs of ml_enrich and gpu.
func TestJoinsToGPUs(t *testing.T) {
	for _, file := range []string{
		harness.Path("processor", "mlenrichprocessor", "testdata", "run_info_test.yaml"),
		harness.Path("receiver", "gpureceiver", "testdata", "pod_labels_test.yaml"),
	} {
		output, err := harness.Promtool(t, "test", "rules", file)
		require.NoError(t, err, "%s", output)
	}
}

// The page for who replaces dcgm-exporter lists each recorded name, and no other.
func TestReplacementPageListsTheNames(t *testing.T) {
	page, err := os.ReadFile(harness.Path("docs", "replace-contrib-and-dcgm.md"))
	require.NoError(t, err)
	rules, err := os.ReadFile(harness.Path("docker", "prometheus", "rules", "dcgm.yaml"))
	require.NoError(t, err)
	recorded := map[string]bool{}
	for _, match := range regexp.MustCompile(`- record: (DCGM_FI_\w+)`).FindAllStringSubmatch(string(rules), -1) {
		recorded[match[1]] = true
	}
	listed := map[string]bool{}
	for item := range strings.Lines(string(page)) {
		if strings.HasPrefix(item, "- ") {
			for _, match := range regexp.MustCompile("`(DCGM_FI_\\w+)`").FindAllStringSubmatch(item, -1) {
				listed[match[1]] = true
			}
		}
	}
	assert.Equal(t, recorded, listed)
}

// testDCGMNames looks at what the rules make of the recording.
func testDCGMNames(t *testing.T, j *job) {
	t.Helper()
	text, err := os.ReadFile(harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"))
	require.NoError(t, err)
	var recording struct {
		GPUs []struct {
			UUID, Name string
			Index      int
		}
		Frames []struct {
			GPUs []struct {
				UUID     string
				Activity map[string]struct{ Utilization float64 }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &recording))
	recorded := map[string][]float64{}
	for _, frame := range recording.Frames {
		for _, gpu := range frame.GPUs {
			recorded[gpu.UUID] = append(recorded[gpu.UUID], 100*gpu.Activity["general"].Utilization)
		}
	}

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := j.prometheus.Query(t.Context(), "DCGM_FI_DEV_GPU_UTIL")
		assert.NoError(c, err)
		assert.Len(c, samples, len(recording.GPUs))
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	samples, err := j.prometheus.Query(t.Context(), "DCGM_FI_DEV_GPU_UTIL")
	require.NoError(t, err)
	utilizations := map[string]float64{}
	for _, sample := range samples {
		utilizations[sample.Labels["UUID"]] = sample.Value
	}
	for _, gpu := range recording.GPUs {
		assert.Contains(t, recorded[gpu.UUID], utilizations[gpu.UUID], "a value of %s that the recording has", gpu.UUID)
		labels := harness.Labels{
			"gpu": strconv.Itoa(gpu.Index), "device": "nvidia" + strconv.Itoa(gpu.Index), "modelName": gpu.Name,
			"Hostname": "gpu-node-1", "DCGM_FI_DRIVER_VERSION": "570.124.06", "nvidia_gpu_source": "replay",
		}
		series := j.prometheus.AwaitSeries(t, fmt.Sprintf("DCGM_FI_DEV_GPU_UTIL{UUID=%q}", gpu.UUID))
		for name, value := range labels {
			assert.Equal(t, []string{value}, harness.Distinct(series, name), name)
		}
	}
	for _, name := range []string{
		"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP",
		"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL",
	} {
		assert.Len(t, harness.Distinct(j.prometheus.AwaitSeries(t, name), "UUID"), len(recording.GPUs), name)
	}
}

// What a pod's GPU shows after relabelling, in its own series and in those of
// the rules.
func TestRelabelToPod(t *testing.T) {
	const exposition = `# TYPE nvidia_gpu_info gauge
nvidia_gpu_info{hw_id="GPU-a",nvidia_gpu_index="0"} 1
# TYPE hw_power_watts gauge
hw_power_watts{hw_id="GPU-a",nvidia_gpu_index="0"} 321
# TYPE nvidia_gpu_workload_memory_usage_bytes gauge
nvidia_gpu_workload_memory_usage_bytes{hw_id="GPU-a",k8s_namespace_name="ml",k8s_pod_name="train-0",k8s_container_name="main"} 1024
`
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, exposition)
	}))
	defer target.Close()
	prometheus := harness.StartPrometheusWith(t, "relabel-dcgm.yaml", map[string]string{
		"otelcol-ml:8889": strings.TrimPrefix(target.URL, "http://"),
	})
	for _, selector := range []string{"nvidia_gpu_workload_memory_usage_bytes", "DCGM_FI_DEV_POWER_USAGE"} {
		series := prometheus.AwaitSeries(t, selector+`{pod="train-0"}`)
		assert.Equal(t, []string{"ml"}, harness.Distinct(series, "namespace"), selector)
		assert.Equal(t, []string{"main"}, harness.Distinct(series, "container"), selector)
	}
	power, err := prometheus.Scalar(t.Context(), "DCGM_FI_DEV_POWER_USAGE")
	require.NoError(t, err)
	assert.InDelta(t, 321, power, 0)
}
