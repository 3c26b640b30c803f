//go:build cgo && linux

package gpureceiver

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"sharing in time": {control: "pid 5001\npid2 5002\nprocess_samples 100\nsampled 5001", run: runSharingInTime},
		"sharing by MPS":  {control: mpsControl + "\nsampled 5001", run: runSharingByMPS},
		"sharing by MPS, which the driver does not tell apart": {control: mpsControl + "\nsampled 5000", run: runSharingByMPSOfOneUse},
		"sharing by MPS, of which only the server is listed":   {library: "NO_MPS", control: mpsControl + "\nsampled 5000", run: runSharingByMPSServerOnly},
	})
}

// mpsControl is a driver with an MPS server, which has a context of its own, and two of its
// clients.
const mpsControl = "pid 5000\nmemory 27\nmps 5001\nmps2 5002\nprocess_samples 100"

// Pods that share a GPU, and the one of the MPS server, with a process each.
const (
	firstUID  = "11111111-aaaa-bbbb-cccc-0123456789ab"
	secondUID = "22222222-aaaa-bbbb-cccc-0123456789ab"
	daemonUID = "33333333-aaaa-bbbb-cccc-0123456789ab"
)

func (r hostRoot) process(t *testing.T, pid int, name, podUID string) {
	t.Helper()
	r.write(t, fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (%s) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 9 0 5 1\n", pid, name))
	r.write(t, fmt.Sprintf("proc/%d/cgroup", pid), "0::/kubepods/burstable/pod"+podUID+"/"+fmt.Sprintf("%064x", pid)+"\n")
}

func (r hostRoot) podLogs(t *testing.T, namespace, name, uid string) {
	t.Helper()
	r.write(t, "var/log/pods/"+namespace+"_"+name+"_"+uid+"/main/0.log", "")
}

// sharedGPU is a host with a GPU that three pods share, and processes of two and of an
// MPS server. They are on another GPU too, which one of the pods has alone.
func sharedGPU(t *testing.T, d *fakeDriver) (hostRoot, *rig) {
	t.Helper()
	root := newHostRoot(t)
	root.process(t, 5000, "nvidia-cuda-mps", daemonUID)
	root.process(t, 5001, "python3", firstUID)
	root.process(t, 5002, "python3", secondUID)
	d.serveKubelet(t, root).give(map[string][]string{"first": {gpu0 + "::0"}, "second": {gpu0 + "::1", gpu1}, "idle": {gpu0 + "::2"}})
	cfg := root.config(t, d)
	cfg.slowInterval = 0
	cfg.Metrics.NvidiaGpuProcessMemoryUsage.Enabled = true
	cfg.Metrics.NvidiaGpuProcessUtilization.Enabled = true
	cfg.Metrics.NvidiaGpuProcesses.Enabled = true
	return root, newRig(t, cfg)
}

// used is what each pod, or each process, has used of a GPU by a metric: MiB, or a fraction.
func used(metrics pmetric.Metrics, gpu, name string) map[string]float64 {
	found := map[string]float64{}
	for _, point := range pointsOf(metrics, gpu, name) {
		attributes := point.Attributes()
		if task := text(attributes, "hw.gpu.task"); task != "" && task != "general" {
			continue
		}
		of := text(attributes, "k8s.pod.name") + "/" + text(attributes, "k8s.container.name") + "/" + text(attributes, "k8s.pod.uid")
		if pid := text(attributes, "process.pid"); pid != "" {
			of = pid
		}
		if point.ValueType() == pmetric.NumberDataPointValueTypeDouble {
			found[of] += point.DoubleValue()
		} else {
			found[of] += float64(point.IntValue()) / (1 << 20)
		}
	}
	return found
}

// eventually waits for the kubelet's answer, which comes in the background.
func (r *rig) eventually(t *testing.T, gpu, name string, expected map[string]float64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, expected, used(r.after(t, 30*time.Second), gpu, name))
	}, time.Minute, time.Millisecond)
}

// Each pod has its own memory and use, and the one without a process is there with 0.
func runSharingInTime(t *testing.T, d *fakeDriver) {
	root, r := sharedGPU(t, d)
	first := used(r.scrape(t), gpu0, workloadUtilization)
	assert.Equal(t, map[string]float64{"//" + firstUID: 0.5, "//" + secondUID: 0}, first)
	// All that is known of two pods on one GPU is which processes are one pod's.
	r.eventually(t, gpu0, workloadMemory, map[string]float64{"//" + firstUID: 19 << 10, "//" + secondUID: 5 << 10})

	// The directories of logs have the names to the UIDs.
	root.podLogs(t, "ml", "first", firstUID)
	root.podLogs(t, "ml", "second", secondUID)
	r.eventually(t, gpu0, workloadMemory, map[string]float64{
		"first/main/" + firstUID: 19 << 10, "second/main/" + secondUID: 5 << 10, "idle/main/": 0,
	})
	metrics := r.scrape(t)
	for _, point := range pointsOf(metrics, gpu0, "hw.gpu.memory.usage") {
		assert.Empty(t, text(point.Attributes(), "k8s.pod.name"), "the GPU is no pod's alone")
	}

	// The driver says nothing of the processes' use.
	d.set(t, "pid 5001", "pid2 5002", "result:nvmlDeviceGetProcessUtilization 3")
	r.eventually(t, gpu0, workloadUtilization, map[string]float64{})
	assert.Len(t, used(r.scrape(t), gpu0, workloadMemory), 3)
	assert.Zero(t, r.count(t, "failed_calls"))
}

// Clients of MPS have their own memory and use. Their server is a process and no workload.
func runSharingByMPS(t *testing.T, d *fakeDriver) {
	root, r := sharedGPU(t, d)
	root.podLogs(t, "ml", "first", firstUID)
	root.podLogs(t, "ml", "second", secondUID)
	root.podLogs(t, "gpu-operator", "mps-control-daemon", daemonUID)
	r.eventually(t, gpu0, workloadMemory, map[string]float64{
		"first/main/" + firstUID: 20 << 10, "second/main/" + secondUID: 10 << 10, "idle/main/": 0,
	})
	metrics := r.scrape(t)
	assert.Equal(t, map[string]float64{"5000": 27, "5001": 20 << 10, "5002": 10 << 10}, used(metrics, gpu0, "nvidia.gpu.process.memory.usage"))
	counts := map[string]int64{}
	for _, point := range pointsOf(metrics, gpu0, "nvidia.gpu.processes") {
		counts[text(point.Attributes(), "nvidia.gpu.process.type")] = point.IntValue()
	}
	assert.Equal(t, map[string]int64{"compute": 1, "graphics": 0, "mps": 2}, counts)

	// New samples, of a client.
	d.set(t, mpsControl, "process_samples 200", "sampled 5001")
	assert.Equal(t, map[string]float64{"first/main/" + firstUID: 0.5, "second/main/" + secondUID: 0},
		used(r.after(t, 30*time.Second), gpu0, workloadUtilization))
	assert.Zero(t, r.count(t, "failed_calls"))
}

// What a driver counts for the server is no client's, so that nobody knows whether one was
// idle. While the server is idle, all are.
func runSharingByMPSOfOneUse(t *testing.T, d *fakeDriver) {
	_, r := sharedGPU(t, d)
	metrics := r.scrape(t)
	assert.Empty(t, used(metrics, gpu0, workloadUtilization))
	assert.Equal(t, map[string]float64{"5000": 0.5}, used(metrics, gpu0, "nvidia.gpu.process.utilization"))

	d.set(t, "pid 5000", "memory 27", "mps 5001", "mps2 5002")
	assert.Equal(t, map[string]float64{"//" + firstUID: 0, "//" + secondUID: 0}, used(r.after(t, 30*time.Second), gpu0, workloadUtilization))
}

// A driver without the clients has the server alone, whose owner is not the one pod that has
// the GPU. A pod without a process may be a client, so that none is idle.
func runSharingByMPSServerOnly(t *testing.T, d *fakeDriver) {
	root, r := sharedGPU(t, d)
	r.after(t, 30*time.Second)
	r.eventually(t, gpu0, workloadMemory, map[string]float64{"//" + daemonUID: 27})
	d.set(t, "pid 5000", "memory 27", "process_samples 200", "sampled 5000")
	assert.Equal(t, map[string]float64{"//" + daemonUID: 0.5}, used(r.after(t, 30*time.Second), gpu0, workloadUtilization))
	root.podLogs(t, "gpu-operator", "mps-control-daemon", daemonUID)
	r.eventually(t, gpu0, workloadMemory, map[string]float64{"mps-control-daemon//" + daemonUID: 27})
	// A server of the host, whose clients are in pods.
	root.write(t, "proc/5000/cgroup", "0::/system.slice/mps.service\n")
	r.eventually(t, gpu0, workloadMemory, map[string]float64{"//": 27})
	assert.Zero(t, r.count(t, "failed_calls"), "a function that the driver lacks is no failure")
}
