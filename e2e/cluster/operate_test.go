package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// printing is a team's namespace with two jobs that print as nanoGPT does and send nothing: one
// fails, the other fails once, is started again by the kubelet and goes on.
const printing = `
apiVersion: v1
kind: Namespace
metadata: {name: team-vision}
---
apiVersion: batch/v1
kind: Job
metadata: {name: crashing, namespace: team-vision}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {team: vision}}
    spec:
      restartPolicy: Never
      containers:
        - name: training
          image: localhost/otelcol-ml-training:1
          command:
            - sh
            - -c
            - |
              for step in 0 1 2 3 4; do echo "iter $step: loss 2.5000, time 100.00ms, mfu 10.00%"; sleep 0.1; done
              echo 'Traceback (most recent call last):'
              echo '  File "/app/train.py", line 3, in step'
              echo 'ValueError: shapes differ'
              exit 1
---
apiVersion: batch/v1
kind: Job
metadata: {name: restarted, namespace: team-vision}
spec:
  template:
    metadata: {labels: {team: vision}}
    spec:
      restartPolicy: OnFailure
      volumes: [{name: state, emptyDir: {}}]
      containers:
        - name: training
          image: localhost/otelcol-ml-training:1
          volumeMounts: [{name: state, mountPath: /state}]
          command:
            - sh
            - -c
            - |
              for step in 0 1 2 3 4; do echo "iter $step: loss 2.5000, time 100.00ms, mfu 10.00%"; sleep 0.1; done
              [ ! -f /state/failed ] || exit 0
              touch /state/failed
              echo 'Traceback (most recent call last):'
              echo '  File "/app/train.py", line 3, in step'
              echo 'RuntimeError: the data are gone'
              exit 1
`

// holder is a pod that has a GPU and uses none.
const holder = `
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: team-vision}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: notebook
      image: localhost/otelcol-ml-training:1
      command: [sleep, infinity]
      resources: {limits: {nvidia.com/gpu: 1}}
`

// stateFolder is a folder of the node, where the agent keeps what outlives it.
const stateFolder = "/var/lib/kubelet/otelcol-ml"

// page is what is looked at of the live page.
type page struct {
	Runs []struct {
		ID, State, Owner string
		Hosts            []string
		Attempts         float64
	}
	Failures []struct {
		Class, Message string
		RunID          string `json:"run_id"`
		Count          int
	}
}

// read returns what the live page shows. It is empty if the page does not answer.
func read(t *testing.T, address string) (shown page) {
	t.Helper()
	if body, err := harness.Get(t.Context(), address+"/api/v1/state"); err == nil {
		require.NoError(t, json.Unmarshal([]byte(body), &shown))
	}
	return shown
}

// shows says whether the page has a run of a job in a state and after some attempts, with one
// failure, and knows where it ran and whose it is.
func (p page) shows(job, state string, attempts float64, class, message string) bool {
	for _, run := range p.Runs {
		if !strings.HasPrefix(run.ID, job+"-") || run.State != state || run.Attempts != attempts || run.Owner != "Vision team" || !slices.Equal(run.Hosts, []string{"node1"}) {
			continue
		}
		for _, failure := range p.Failures {
			if failure.RunID == run.ID && failure.Class == class && failure.Message == message && failure.Count == 1 {
				return true
			}
		}
	}
	return false
}

// printed has the agents read the logs of pods. What becomes of a job that crashes, and of one
// that is restarted, is on the page, also after an agent has been replaced.
func (c *cluster) printed(t *testing.T, values string) {
	owner := filepath.Join(t.TempDir(), "owner.yaml")
	require.NoError(t, os.WriteFile(owner, []byte(documentedBlock(t, "owners")), 0o600))
	c.helm(t, "upgrade", "otelcol-ml", "deploy/helm/otelcol-ml", "--values", values, "--values", owner,
		"--set", "agent.trainingLogs=true,agent.state.hostPath="+stateFolder+",gpu.privileges=attribution")
	// helm lets the only pod of a DaemonSet be away.
	c.rolledOut(t)
	c.apply(t, printing)
	arrives := func(state string) {
		t.Helper()
		address := c.open(t)
		await(t, func() bool {
			shown := read(t, address)
			return shown.shows("crashing", "failed", 1, "ValueError", "shapes differ") && shown.shows("restarted", state, 2, "RuntimeError", "the data are gone")
		}, arrival, poll, "the page does not show both jobs as they are, one %s", state)
	}
	arrives("running")
	c.kubectl(t, "rollout", "restart", "--namespace", "monitoring", "daemonset/otelcol-ml-agent")
	c.rolledOut(t)
	// Nothing is printed since: nothing is read twice, and what was counted is kept.
	arrives("unknown")
}

// rolledOut waits until all agents and readers of GPUs are those of the last upgrade.
func (c *cluster) rolledOut(t *testing.T) {
	t.Helper()
	for _, part := range []string{"agent", "gpu"} {
		c.kubectl(t, "rollout", "status", "--namespace", "monitoring", "daemonset/otelcol-ml-"+part, "--timeout", started.String())
	}
}

// allocated gives a pod one of the stand-in's GPUs. The reader knows the pod by name, although
// it runs nothing there.
func (c *cluster) allocated(t *testing.T) {
	gpus := []string{"GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"}
	c.drive(t, "count 2", "gone 1")
	c.startPlugin(t, gpus...)
	await(t, func() bool {
		return c.field(t, `{.status.allocatable.nvidia\.com/gpu}`, "node", "node1") == "2"
	}, arrival, poll, "the node has no GPUs")
	c.apply(t, holder)
	c.kubectl(t, "wait", "--namespace", "team-vision", "--for=condition=Ready", "pod/holder", "--timeout=2m")
	owned := harness.Labels{"k8s_namespace_name": "team-vision", "k8s_pod_name": "holder", "k8s_container_name": "notebook"}
	c.awaitMetric(t, "nvidia_gpu_workload_memory_usage_bytes", owned)
	held := make(map[string]float64)
	for _, sample := range harness.Select(c.samples(t, c.pods(t, "agent")[0]), "nvidia_gpu_workload_memory_usage_bytes", owned) {
		held[sample.Labels["hw_id"]] = sample.Value
	}
	assert.Len(t, held, 1)
	for gpu, bytes := range held {
		assert.Contains(t, gpus, gpu)
		assert.Zero(t, bytes)
	}
	c.kubectl(t, "delete", "pod", "--namespace", "team-vision", "holder")
}

// restricted installs a second release where Pod Security has its strictest standard: agents
// and gateways run there. What needs more is refused for exactly that.
func (c *cluster) restricted(t *testing.T, values string) {
	c.kubectl(t, "create", "namespace", "strict")
	c.kubectl(t, "label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
	helm := func(command string, more ...string) string {
		output, err := c.try(t, "", "helm", slices.Concat([]string{command, "strict", "deploy/helm/otelcol-ml", "--namespace", "strict", "--values", values,
			"--set", "gpu.enabled=false,gateway.enabled=true,gateway.replicas=1,gateway.drainSeconds=0,gateway.persistence.enabled=false"}, more)...)
		require.NoError(t, err, output)
		return output
	}
	assert.NotContains(t, helm("install", "--wait", "--timeout", started.String()), "violate")
	c.kubectl(t, "rollout", "status", "--namespace", "strict", "daemonset/strict-otelcol-ml-agent", "--timeout", started.String())
	for value, reasons := range map[string][]string{
		"gpu.enabled=true":                    {"hostPID=true", `volumes "proc", "sys", "hostname"`},
		"agent.trainingLogs=true":             {`volume "pod-logs"`, "runAsUser=0"},
		"agent.state.hostPath=" + stateFolder: {`volume "state"`, `container "owner" must not include "CHOWN"`},
	} {
		warning := strings.ReplaceAll(helm("upgrade", "--set", value), `\"`, `"`)
		for _, reason := range append(reasons, "would violate PodSecurity") {
			assert.Contains(t, warning, reason, value)
		}
	}
	output, err := c.try(t, "", "helm", "uninstall", "strict", "--namespace", "strict", "--wait")
	require.NoError(t, err, output)
	assert.Empty(t, c.left(t, "strict"))
}

// uninstalled removes the chart as docs/install.md does. Only the folder of the node stays.
func (c *cluster) uninstalled(t *testing.T) {
	output, err := c.try(t, "", "helm", "uninstall", "otelcol-ml", "--namespace", "monitoring", "--wait", "--timeout", started.String())
	require.NoError(t, err, output)
	claims := c.left(t, "otelcol-ml")
	assert.NotEmpty(t, claims)
	for _, claim := range claims {
		assert.True(t, strings.HasPrefix(claim, "persistentvolumeclaim/"), claim)
	}
	c.kubectl(t, "delete", "pvc", "--namespace", "monitoring", "--selector", "app.kubernetes.io/instance=otelcol-ml")
	assert.Empty(t, c.left(t, "otelcol-ml"))
	assert.Empty(t, strings.TrimSpace(c.field(t, "{.items[*].metadata.name}", "--namespace", "monitoring", "secrets")))
	assert.DirExists(t, filepath.Join(c.folder, stateFolder))
}

// left returns the objects of a release that the cluster has.
func (c *cluster) left(t *testing.T, release string) []string {
	t.Helper()
	kinds := slices.DeleteFunc(strings.Fields(c.kubectl(t, "api-resources", "--verbs", "list,delete", "--output", "name")), func(kind string) bool {
		// kubectl warns of endpoints, which are those of endpointslices.
		return strings.HasPrefix(kind, "events") || kind == "endpoints"
	})
	var names []string
	// What the objects own goes with them, somewhat later.
	for deadline := time.Now().Add(started); ; time.Sleep(poll) {
		names = strings.Fields(c.kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found",
			"--selector", "app.kubernetes.io/instance="+release, "--output", "name"))
		if time.Now().After(deadline) || !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "persistentvolumeclaim/") }) {
			return names
		}
	}
}
