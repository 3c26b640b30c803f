package attribution

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// named is a process in a pod whose directory of logs was found.
func named(uid string, pod workload.Pod) device.Process {
	process := inPod(uid)
	process.Workload.Pod = nameOf(pod)
	return process
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
		"shared, and the names are known": {
			[]device.GPU{usedBy(owners(podA, podB), named("1", podA), named("2", podB), unknown)},
			[][]workload.Pod{{podA, podB, unnamed}},
		},
		"one owner, and another pod's name is known": {
			[]device.GPU{usedBy(owners(podA), named("2", podB), inPod("1"))},
			[][]workload.Pod{{nameOf(podB), podA}},
		},
		"one owner, whose name is known, and another pod": {
			[]device.GPU{usedBy(owners(podA), named("1", podA), inPod("2"))},
			[][]workload.Pod{{nameOf(podA), unnamed}},
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

func TestPodOf(t *testing.T) {
	const uid = "11111111-aaaa-bbbb-cccc-0123456789ab"
	root := t.TempDir()
	assert.Empty(t, loggedPods(root)[uid], "a host without a kubelet")
	for _, name := range []string{
		"ml_train-0.a_" + uid, "kube-system_static_0123456789abcdef0123456789abcdef",
		"ml_other_22222222-aaaa-bbbb-cccc-0123456789ab", "ml_a_b_33333333-aaaa-bbbb-cccc-0123456789ab",
		"ml_A\x1b_44444444-aaaa-bbbb-cccc-0123456789ab", "55555555-aaaa-bbbb-cccc-0123456789ab", "x_y_",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, podLogs, name), 0o755))
	}
	for of, expected := range map[string]workload.Pod{
		uid:                                    {Namespace: "ml", Name: "train-0.a"},
		"0123456789abcdef0123456789abcdef":     {Namespace: "kube-system", Name: "static"},
		"3456789abcdef0123456789abcdef":        {},
		"33333333-aaaa-bbbb-cccc-0123456789ab": {},
		"44444444-aaaa-bbbb-cccc-0123456789ab": {},
		"55555555-aaaa-bbbb-cccc-0123456789ab": {},
		"":                                     {},
	} {
		assert.Equal(t, expected, loggedPods(root)[of], of)
	}
}
