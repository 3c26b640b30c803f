package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// prepared is the runtime class that a cluster with GPUs has.
const prepared = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
`

// volume is one for a gateway.
const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-%[1]d}
spec:
  capacity: {storage: 4Gi}
  accessModes: [ReadWriteOnce]
  local: {path: /var/lib/kubelet/volume-%[1]d}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}]
`

// training is a pod that trains and sends to the agent of its node. Its job has a number.
const training = `
apiVersion: v1
kind: Pod
metadata: {name: training-%[1]d, namespace: default}
spec:
  restartPolicy: Never
  containers:
    - name: training
      image: localhost/otelcol-ml-training:1
      command: [mlgen, --scenario, torchtel, --ranks, "2", --steps, "%[2]d", --rate, "10", --job-id, "%[1]d", --endpoint, "otelcol-ml-agent.monitoring:4317"]
`

// TestInstall goes the way of docs/install.md, and then that of an operator over the next year.
func TestInstall(t *testing.T) {
	c := startCluster(t)
	jaeger := harness.StartJaeger(t)
	c.apply(t, prepared)
	for i := range 2 {
		c.apply(t, fmt.Sprintf(volume, i))
		require.NoError(t, os.MkdirAll(filepath.Join(c.folder, "var", "lib", "kubelet", fmt.Sprintf("volume-%d", i)), 0o755))
	}
	c.kubectl(t, "label", "node", "node1", "nvidia.com/gpu.present=true")
	backend := forward(t, jaeger.OTLPEndpoint())
	values := documentedValues(t, backend)

	c.kubectl(t, "create", "namespace", "monitoring")
	t.Run("a namespace without the label refuses the readers of GPUs", func(t *testing.T) {
		c.kubectl(t, "label", "namespace", "monitoring", "pod-security.kubernetes.io/enforce=baseline")
		output, err := c.try(t, "", "helm", "install", "otelcol-ml", "deploy/helm/otelcol-ml", "--namespace", "monitoring", "--values", values)
		require.NoError(t, err, output)
		await(t, func() bool {
			return strings.Contains(c.kubectl(t, "get", "events", "--namespace", "monitoring"), "violates PodSecurity")
		}, started, poll, "nothing is refused")
		c.kubectl(t, "label", "--overwrite", "namespace", "monitoring", "pod-security.kubernetes.io/enforce=privileged")
	})
	// The controller tries again by itself.
	c.helm(t, "upgrade", "otelcol-ml", "deploy/helm/otelcol-ml", "--values", values)

	t.Run("spans of a pod", func(t *testing.T) { c.spansArrive(t, jaeger, 101) })
	t.Run("the page by port-forward", c.page)
	t.Run("the GPUs", c.gpus)
	t.Run("gateways, and back", func(t *testing.T) {
		c.helm(t, "upgrade", "otelcol-ml", "deploy/helm/otelcol-ml", "--values", values, "--set", "gateway.enabled=true")
		require.Len(t, c.pods(t, "gateway"), 2)
		c.spansArrive(t, jaeger, 102)
		c.gatewaysCount(t, 102)
		c.drain(t)
		c.helm(t, "rollback", "otelcol-ml")
		// They go on for drainSeconds.
		await(t, func() bool { return len(c.pods(t, "gateway")) == 0 }, started, poll, "the gateways are still there")
		c.spansArrive(t, jaeger, 103)
	})
	t.Run("network policies", func(t *testing.T) { c.policies(t, jaeger, values, backend) })
	t.Run("programs that only print", func(t *testing.T) { c.printed(t, values) })
	t.Run("a pod with a GPU of a device plugin", c.allocated)
	t.Run("a pod with a GPU by a claim", c.claimed)
	t.Run("a namespace with the standard restricted", func(t *testing.T) { c.restricted(t, values) })
	t.Run("uninstalled", c.uninstalled)
}

// documentedBlock returns the block of values in docs/install.md that has a key.
func documentedBlock(t *testing.T, key string) string {
	t.Helper()
	page, err := os.ReadFile(harness.Path("docs", "install.md"))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml values\n(.*?)```").FindAllSubmatch(page, -1) {
		if strings.Contains(string(block[1]), key+":") {
			return string(block[1])
		}
	}
	require.Fail(t, "docs/install.md shows no values with "+key)
	return ""
}

// documentedValues writes the file of values of docs/install.md, with the image that is on the
// node and with the back end.
func documentedValues(t *testing.T, backend string) string {
	t.Helper()
	text := strings.NewReplacer("registry.example/otelcol-ml", "localhost/otelcol-ml", "jaeger.tracing:4317", backend).Replace(documentedBlock(t, "backends"))
	require.Contains(t, text, backend)
	// The pods are found by their addresses, because mlgen names none.
	text += "agent:\n  kubernetesAttributes: true\n"
	// The test reads metrics from outside of the cluster.
	text += "networkPolicy:\n  scrapers: [{namespaceSelector: {}}, {ipBlock: {cidr: " + outside + "/32}}]\n"
	// The library that stands in for the driver asks this file.
	text += "gpu:\n  env: [{name: FAKE_NVML_CONTROL, value: /run/nvml/control}]\n"
	path := filepath.Join(t.TempDir(), "my-values.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// spansArrive runs a pod that trains and waits until Jaeger has its steps, with the pod's UID.
func (c *cluster) spansArrive(t *testing.T, jaeger *harness.Jaeger, job int) {
	t.Helper()
	name := fmt.Sprintf("training-%d", job)
	c.apply(t, fmt.Sprintf(training, job, 100))
	uid := c.field(t, "{.metadata.uid}", "pod", name)
	await(t, func() bool {
		services, err := jaeger.Services(t.Context())
		if err != nil {
			return false
		}
		for _, service := range services {
			traces, err := jaeger.Search(t.Context(), service, map[string]string{"k8s.pod.uid": uid}, 10)
			if err == nil && len(traces) > 0 {
				return true
			}
		}
		return false
	}, arrival, poll, "no span with k8s.pod.uid %s", uid)
	c.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+name, "--timeout=2m")
}

// page waits until the live page has a run.
func (c *cluster) page(t *testing.T) {
	page := c.open(t)
	await(t, func() bool {
		body, err := harness.Get(t.Context(), page+"/?format=text")
		return err == nil && strings.Contains(body, "101")
	}, arrival, poll, "the page does not show the run")
}

// open opens the live page as docs/install.md does. It returns the address.
func (c *cluster) open(t *testing.T) string {
	t.Helper()
	port := harness.FreePort(t)
	harness.Start(t, harness.Command{
		Name: "port-forward", Path: filepath.Join(c.folder, "bin", "kubectl"),
		Args: []string{"port-forward", "--namespace", "monitoring", "daemonset/otelcol-ml-agent", fmt.Sprintf("%d:8890", port)},
		Env:  []string{"KUBECONFIG=" + filepath.Join(c.folder, "admin.conf")},
	}).AwaitOutput(t, "Forwarding from")
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// awaitMetric waits until agents have samples of a metric.
func (c *cluster) awaitMetric(t *testing.T, name string, labels harness.Labels) {
	t.Helper()
	await(t, func() bool {
		return slices.ContainsFunc(c.pods(t, "agent"), func(pod string) bool {
			return len(harness.Select(c.samples(t, pod), name, labels)) > 0
		})
	}, arrival, poll, "no %s %v", name, labels)
}

// gpus shows what the reader knows of the stand-in's GPUs, and of the pod that is on one.
func (c *cluster) gpus(t *testing.T) {
	c.awaitMetric(t, "hw_gpu_memory_usage_bytes", nil)
	c.apply(t, fmt.Sprintf(training, 200, 100000))
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/training-200", "--timeout=2m")
	uid := c.field(t, "{.metadata.uid}", "pod", "training-200")
	c.drive(t, "count 2", "pid "+c.process(t, uid))
	c.awaitMetric(t, "nvidia_gpu_workload_memory_usage_bytes", harness.Labels{"k8s_pod_uid": uid})
	c.drive(t, "count 2", "gone 1")
	c.kubectl(t, "delete", "pod", "training-200", "--grace-period=1")
}

// process returns the id, on the node, of the first process of a pod's container.
func (c *cluster) process(t *testing.T, uid string) string {
	t.Helper()
	var found string
	for _, status := range glob(t, filepath.Join("/proc", c.inside, "root", "proc", "[0-9]*", "cmdline")) {
		line, err := os.ReadFile(status)
		if err != nil || !strings.HasPrefix(string(line), "mlgen\x00") {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(status), "cgroup"))
		if err == nil && strings.Contains(string(groups), uid) {
			found = filepath.Base(filepath.Dir(status))
		}
	}
	require.NotEmpty(t, found, "no process of pod %s", uid)
	return found
}

// gatewaysCount waits until steps of a run are counted, which one gateway does.
func (c *cluster) gatewaysCount(t *testing.T, job int) {
	t.Helper()
	await(t, func() bool {
		counting := 0
		for _, pod := range c.pods(t, "gateway") {
			if len(harness.Select(c.samples(t, pod), "ml_steps_total", harness.Labels{"ml_run_id": strconv.Itoa(job)})) > 0 {
				counting++
			}
		}
		return counting == 1
	}, arrival, poll, "the steps of job %d are not at one gateway", job)
}

// drain takes the node out of service: the budget of the gateways lets one of two go, and
// both come back.
func (c *cluster) drain(t *testing.T) {
	t.Helper()
	output, err := c.try(t, "", "kubectl", "drain", "node1", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=30s")
	require.Error(t, err)
	assert.Contains(t, output, "would violate the pod's disruption budget")
	c.kubectl(t, "uncordon", "node1")
	c.kubectl(t, "wait", "--namespace", "monitoring", "--for=condition=Ready", "pod", "--selector", "app.kubernetes.io/component=gateway", "--timeout=3m")
}
