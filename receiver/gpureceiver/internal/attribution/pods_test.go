package attribution

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

var (
	podA     = workload.Pod{Namespace: "ml", Name: "a", Container: "main"}
	podASide = workload.Pod{Namespace: "ml", Name: "a", Container: "side"}
	podB     = workload.Pod{Namespace: "ml", Name: "b", Container: "main"}
	unnamed  = workload.Pod{}
)

func inPod(uid string) device.Process {
	return device.Process{Workload: workload.Workload{PodUID: uid, ContainerID: "c" + uid}}
}

func mpsServer(uid string) device.Process {
	process := device.Process{Details: workload.Details{Executable: "nvidia-cuda-mps"}}
	if uid != "" {
		process.Workload = inPod(uid).Workload
	}
	return process
}

// usedBy is a GPU that containers own and processes use.
func usedBy(owners []workload.Pod, processes ...device.Process) device.GPU {
	return device.GPU{Owners: owners, Processes: processes}
}

func TestNamePods(t *testing.T) {
	owners := func(pods ...workload.Pod) []workload.Pod { return pods }
	container := device.Process{Workload: workload.Workload{ContainerID: "x"}}
	unknown := device.Process{}
	for name, test := range map[string]struct {
		gpus     []device.GPU
		expected [][]workload.Pod
	}{
		"one owner": {
			[]device.GPU{usedBy(owners(podA), inPod("1"), inPod("1"))},
			[][]workload.Pod{{podA, podA}},
		},
		"one owner, nothing known of the process": {
			[]device.GPU{usedBy(owners(podA), unknown)},
			[][]workload.Pod{{podA}},
		},
		"one owner, a container without a pod's UID": {
			[]device.GPU{usedBy(owners(podA), container)},
			[][]workload.Pod{{podA}},
		},
		"no owner": {
			[]device.GPU{usedBy(nil, inPod("1"), unknown)},
			[][]workload.Pod{{unnamed, unnamed}},
		},
		"shared": {
			[]device.GPU{usedBy(owners(podA, podB), inPod("1"), inPod("2"), unknown)},
			[][]workload.Pod{{unnamed, unnamed, unnamed}},
		},
		"shared, and one of them has another GPU alone": {
			[]device.GPU{usedBy(owners(podA, podB), inPod("1"), inPod("2")), usedBy(owners(podA), inPod("1"))},
			[][]workload.Pod{{podA, unnamed}, {podA}},
		},
		"a process on a GPU that its pod does not have": {
			[]device.GPU{usedBy(owners(podA), inPod("1"), inPod("9")), usedBy(owners(podB), inPod("2"), inPod("9"))},
			[][]workload.Pod{{podA, unnamed}, {podB, unnamed}},
		},
		"two pods where one has the GPU": {
			[]device.GPU{usedBy(owners(podA), inPod("1"), inPod("2"))},
			[][]workload.Pod{{unnamed, unnamed}},
		},
		// The server runs in a pod that was given no GPU.
		"a client of MPS, and its server": {
			[]device.GPU{usedBy(owners(podA), inPod("1"), mpsServer("9"))},
			[][]workload.Pod{{podA, unnamed}},
		},
		"an MPS server alone": {
			[]device.GPU{usedBy(owners(podA), mpsServer("9")), usedBy(owners(podB), mpsServer(""))},
			[][]workload.Pod{{unnamed}, {unnamed}},
		},
		"an MPS server in its clients' pod": {
			[]device.GPU{usedBy(owners(podA), mpsServer("1"), inPod("1"))},
			[][]workload.Pod{{podA, podA}},
		},
		"two containers of a pod share": {
			[]device.GPU{usedBy(owners(podA, podASide), inPod("1"))},
			[][]workload.Pod{{{Namespace: "ml", Name: "a"}}},
		},
		"two containers of a pod have one each": {
			[]device.GPU{usedBy(owners(podA), inPod("1")), usedBy(owners(podASide), inPod("1"))},
			[][]workload.Pod{{podA}, {podASide}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			namePods(test.gpus)
			for i, gpu := range test.gpus {
				for j, process := range gpu.Processes {
					assert.Equal(t, test.expected[i][j], process.Workload.Pod, "process %d of GPU %d", j, i)
				}
			}
		})
	}
}
