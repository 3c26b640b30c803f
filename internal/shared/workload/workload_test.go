package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

const containerA = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func known(n int64) Number {
	return Number{Value: n, Known: true}
}

func TestParseEnvironKeepsAllowedNamesOnly(t *testing.T) {
	env := ParseEnviron([]byte("HOME=/root\x00AWS_SECRET_ACCESS_KEY=s\x00RANK=1\x00RANKS=9\x00WANDB_API_KEY=k\x00WANDB_RUN_ID=r\x00"))
	assert.Equal(t, Environment{"RANK": "1", clients.RunVariables[1]: "r"}, env)
}

func TestParseEnviron(t *testing.T) {
	for name, test := range map[string]struct {
		raw      string
		expected Environment
	}{
		"empty":               {"", Environment{}},
		"no end":              {"RANK=3", Environment{"RANK": "3"}},
		"first entry counts":  {"RANK=3\x00RANK=4\x00", Environment{"RANK": "3"}},
		"value with an equal": {"OTEL_RESOURCE_ATTRIBUTES=a=b,c=d\x00", Environment{"OTEL_RESOURCE_ATTRIBUTES": "a=b,c=d"}},
		"no equal":            {"RANK\x00LOCAL_RANK=2\x00", Environment{"LOCAL_RANK": "2"}},
		"too long":            {"OTEL_SERVICE_NAME=" + strings.Repeat("x", 257) + "\x00", Environment{}},
		"no UTF-8":            {"OTEL_SERVICE_NAME=\xff\xfe\x00RANK=0\x00", Environment{"RANK": "0"}},
		"only zero bytes":     {"\x00\x00\x00", Environment{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, ParseEnviron([]byte(test.raw)))
		})
	}
}

func TestServiceName(t *testing.T) {
	for list, expected := range map[string]string{
		"":                              "",
		"service.name=a":                "a",
		"x=1, service.name = a b ,y=2":  "a b",
		"service.name=a%2Cb":            "a,b",
		"service.name=a,service.name=b": "b",
		"service.name=%zz":              "",
		"service.name":                  "",
		"service.namespace=n":           "",
		"service.name=" + strings.Repeat("x", 300): "",
	} {
		assert.Equal(t, expected, serviceName(list), list)
	}
}

func TestParseCgroup(t *testing.T) {
	const uid = "3f2d1c0b-aaaa-bbbb-cccc-0123456789ab"
	underscored := strings.ReplaceAll(uid, "-", "_")
	for name, test := range map[string]struct {
		raw      string
		expected Cgroup
	}{
		"empty":        {"", Cgroup{}},
		"no container": {"0::/user.slice/user-1000.slice/session-4.scope\n", Cgroup{}},
		"docker, v2":   {"0::/system.slice/docker-" + containerA + ".scope\n", Cgroup{ContainerID: containerA}},
		"docker, v1":   {"12:memory:/docker/" + containerA + "\n11:cpu:/docker/" + containerA + "\n", Cgroup{ContainerID: containerA}},
		"podman":       {"0::/user.slice/user-1000.slice/libpod-" + containerA + ".scope/container\n", Cgroup{ContainerID: containerA}},
		"containerd, systemd": {
			"0::/kubepods.slice/kubepods-pod" + underscored + ".slice/cri-containerd-" + containerA + ".scope\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"burstable, cgroupfs": {
			"0::/kubepods/burstable/pod" + uid + "/" + containerA + "\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"containerd with a prefix": {
			"0::/system.slice/containerd.service/kubepods-besteffort-pod" + underscored + ".slice:cri-containerd:" + containerA + "\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"cri-o": {
			"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + underscored + ".slice/crio-" + containerA + ".scope\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"Docker, rootless": {
			"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + containerA + ".scope\n",
			Cgroup{ContainerID: containerA},
		},
		"Podman, rootless": {
			"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + containerA + ".scope/container\n",
			Cgroup{ContainerID: containerA},
		},
		"Podman, in a pod of its own": {
			"0::/machine.slice/machine-libpod_pod_" + strings.Repeat("b", 64) + ".slice/libpod-" + containerA + ".scope/container\n",
			Cgroup{ContainerID: containerA},
		},
		"Podman, cgroupfs": {
			"0::/libpod_parent/" + strings.Repeat("b", 64) + "/libpod-" + containerA + "\n",
			Cgroup{ContainerID: containerA},
		},
		"nerdctl": {"0::/system.slice/nerdctl-" + containerA + ".scope\n", Cgroup{ContainerID: containerA}},
		"ECS": {
			"9:perf_event:/ecs/cluster/0123456789abcdef0123456789abcdef/" + containerA + "\n",
			Cgroup{ContainerID: containerA},
		},
		"containerd, v1": {
			"11:memory:/kubepods/besteffort/pod" + uid + "/" + containerA + "\n1:name=systemd:/kubepods/besteffort/pod" + uid + "/" + containerA + "\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"CRI-O, a cgroup of the container's own": {
			"0::/kubepods.slice/kubepods-pod" + underscored + ".slice/crio-" + containerA + ".scope/container\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"kubelet with a slice of its own, in a container": {
			"0::/system.slice/docker-" + strings.Repeat("f", 64) + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + underscored + ".slice/cri-containerd-" + containerA + ".scope\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"seen from another cgroup namespace": {
			"0::/../../kubepods-pod" + underscored + ".slice/cri-containerd-" + containerA + ".scope\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"a container in a pod's container": {
			"0::/kubepods/burstable/pod" + uid + "/" + strings.Repeat("f", 64) + "/docker/" + containerA + "\n",
			Cgroup{ContainerID: containerA, PodUID: uid},
		},
		"the job's first line counts": {
			"4:memory:/slurm/uid_1000/job_42/step_0/task_0\n3:cpuset:/slurm/uid_1000/job_43/step_0\n1:name=systemd:/system.slice/slurmd.service\n",
			Cgroup{SlurmJobID: "42"},
		},
		"Slurm, v1, several slurmd": {"4:devices:/slurm_node7/uid_1000/job_42/step_batch\n", Cgroup{SlurmJobID: "42"}},
		"Slurm, a container in a job": {
			"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0/libpod-" + containerA + ".scope\n",
			Cgroup{SlurmJobID: "42", ContainerID: containerA},
		},
		"Slurm's own job number in a name": {"0::/system.slice/slurmstepd.scope/job_18446744073709551616000/step_0\n", Cgroup{}},
		"static pod": {
			"0::/kubepods/pod" + containerA[:32] + "/" + containerA + "\n",
			Cgroup{ContainerID: containerA, PodUID: containerA[:32]},
		},
		"innermost container": {
			"0::/docker/" + strings.Repeat("f", 64) + "/docker/" + containerA + "\n",
			Cgroup{ContainerID: containerA},
		},
		"Slurm, v2":             {"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_3\n", Cgroup{SlurmJobID: "42"}},
		"Slurm, several slurmd": {"0::/system.slice/node7_slurmstepd.scope/job_42/step_batch\n", Cgroup{SlurmJobID: "42"}},
		"Slurm, v1":             {"4:memory:/slurm/uid_1000/job_42/step_0\n1:name=systemd:/user.slice\n", Cgroup{SlurmJobID: "42"}},
		"job outside Slurm":     {"0::/system.slice/job_42\n", Cgroup{}},
		"job that is no number": {"0::/slurm/job_4x2\n", Cgroup{}},
		"short hexadecimal":     {"0::/docker/" + containerA[:63] + "\n", Cgroup{}},
		"uppercase":             {"0::/docker/" + strings.ToUpper(containerA) + "\n", Cgroup{}},
		"no colons":             {"nonsense\n", Cgroup{}},
		"no line end":           {"0::/docker/" + containerA, Cgroup{ContainerID: containerA}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, ParseCgroup([]byte(test.raw)))
		})
	}
}

func TestIdentify(t *testing.T) {
	for name, test := range map[string]struct {
		env      Environment
		group    Cgroup
		uid      Number
		expected Workload
	}{
		"nothing": {},
		"torchrun without an id": {
			env:      Environment{"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", clients.RunVariables[2]: "none", "TORCHELASTIC_RESTART_COUNT": "0"},
			expected: Workload{RankGlobal: known(0), RankLocal: known(0), WorldSize: known(2), RunAttempt: known(0)},
		},
		"order of run ids": {
			env:      Environment{clients.RunVariables[0]: "m", clients.RunVariables[1]: "w", clients.RunVariables[2]: "t"},
			expected: Workload{RunID: "m"},
		},
		"a sentinel does not hide the next id": {
			env:      Environment{clients.RunVariables[0]: "None", clients.RunVariables[2]: "t"},
			expected: Workload{RunID: "t"},
		},
		"launcher before Slurm": {
			env:      Environment{"RANK": "5", "SLURM_PROCID": "1", "TORCHELASTIC_RESTART_COUNT": "2", "SLURM_RESTART_COUNT": "7"},
			expected: Workload{RankGlobal: known(5), RunAttempt: known(2)},
		},
		"the cgroup's job before the environment's": {
			env:      Environment{"SLURM_JOB_ID": "9"},
			group:    Cgroup{SlurmJobID: "42"},
			expected: Workload{SlurmJobID: "42"},
		},
		"numbers that are none": {
			env: Environment{"RANK": "-1", "LOCAL_RANK": "x", "WORLD_SIZE": "0", "SLURM_JOB_ID": "0", "TORCHELASTIC_RESTART_COUNT": "99999999999"},
		},
		"user": {uid: known(0), expected: Workload{UserID: "0"}},
		"service name before the attributes'": {
			env:      Environment{"OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "service.name=b"},
			expected: Workload{ServiceName: "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.expected, Identify(test.env, test.group, test.uid))
		})
	}
}

func TestHostName(t *testing.T) {
	root := t.TempDir()
	own, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, own, HostName(""))
	assert.Equal(t, own, HostName(root), "without a file")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", "hostname"), []byte("node-3\n"), 0o600))
	assert.Equal(t, "node-3", HostName(root))
}

// FuzzIdentify shows that whatever a process puts into its environment, its
// cgroup and its status, the workload is bounded, valid text.
func FuzzIdentify(f *testing.F) {
	f.Add([]byte("RANK=0\x00OTEL_RESOURCE_ATTRIBUTES=service.name=a%20b\x00"), []byte("0::/slurm/uid_1/job_5\n"), []byte("Uid:\t1\n"))
	f.Add([]byte("TORCHELASTIC_RUN_ID=none\x00\x00=\x00=x"), []byte("4:memory:/kubepods/pod"+strings.Repeat("a", 32)+"/"+containerA), []byte("Uid:"))
	f.Add([]byte("OTEL_SERVICE_NAME=\xff"), []byte(":::\n:"), []byte{0})
	f.Fuzz(func(t *testing.T, environ, cgroup, status []byte) {
		w := Identify(ParseEnviron(environ), ParseCgroup(cgroup), userIDOf(status))
		for _, text := range []string{w.RunID, w.SlurmJobID, w.ContainerID, w.PodUID, w.ServiceName, w.UserID} {
			if len(text) > maxValueLength || !utf8.ValidString(text) {
				t.Errorf("%q is no bounded text", text)
			}
		}
		for _, number := range []Number{w.RunAttempt, w.RankGlobal, w.RankLocal, w.WorldSize} {
			if number.Value < 0 || !number.Known && number.Value != 0 {
				t.Errorf("%+v is no rank or count", number)
			}
		}
	})
}

func userIDOf(status []byte) Number {
	userID, _ := parseStatus(status)
	return userID
}
