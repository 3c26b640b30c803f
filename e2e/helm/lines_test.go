package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// With trainingLogs, agents read the logs of the node's pods, as root and without
// capabilities. A training that only prints has a run. With gateways the agent loads, too.
func TestTrainingLogs(t *testing.T) {
	for _, values := range []string{"agents", "gateways"} {
		t.Run(values, func(t *testing.T) {
			objects := render(t, "--values", valuesFile(values), "--set", "agent.trainingLogs=true")
			agent := workloads(objects)["agent"]
			container := agent.container(t)
			assert.Equal(t, int64(0), *container.SecurityContext.RunAsUser)
			assert.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
			assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
			assert.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "pod-logs", MountPath: "/var/log/pods", ReadOnly: true})

			pods := t.TempDir()
			folder := filepath.Join(pods, "ml_llama-worker-3_0a1b2c3d-0000", "pytorch")
			require.NoError(t, os.MkdirAll(folder, 0o700))
			var lines strings.Builder
			for i := range 30 {
				at := time.Now().UTC().Add(time.Duration(i-30) * time.Second)
				fmt.Fprintf(&lines, "%s stdout F [titan] %s - root - INFO - step: %2d  loss:  7.12345  grad_norm:  1.4042  memory: 23.36GiB(29.49%%)  tps: 7,338  tflops: 47.90  mfu: 15.62%%\n",
					at.Format(time.RFC3339Nano), at.Format("2006-01-02 15:04:05,000"), i+1)
			}
			require.NoError(t, os.WriteFile(filepath.Join(folder, "0.log"), []byte(lines.String()), 0o600))
			around := surroundings{folders: map[string]string{"/var/log/pods": pods}, variables: map[string]string{"NODE_NAME": "node-1"}}
			if values == "agents" {
				around.overrides = map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"}
			}
			collector := startPod(t, objects, "agent", around)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
				require.NoError(c, err)
				if found := harness.Select(samples, "otelcol_connector_ml_lines_lines", harness.Labels{"format": "torchtitan"}); assert.Len(c, found, 1) {
					assert.InDelta(c, 30, found[0].Value, 0)
				}
				if values == "gateways" {
					return
				}
				samples, err = harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
				require.NoError(c, err)
				if found := harness.Select(samples, "ml_steps_total", harness.Labels{"job": "pytorch", "host_name": "node-1"}); assert.Len(c, found, 1) {
					assert.InDelta(c, 30, found[0].Value, 0)
				}
			}, arrival, poll)
		})
	}
}
