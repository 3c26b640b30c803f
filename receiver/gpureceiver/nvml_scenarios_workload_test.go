//go:build cgo && linux

package gpureceiver

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/podresources"
)

func init() {
	maps.Copy(scenarios, map[string]scenario{
		"workload ends":           {run: runWorkloadEnds},
		"workload number reused":  {run: runWorkloadNumberReused},
		"workload process series": {run: runWorkloadProcessSeries},
		"workload privileges":     {run: runWorkloadPrivileges},
		"workload Kubernetes":     {control: "pid 5000\nmig 0", run: runWorkloadKubernetes},
		"workload foreign PIDs":   {run: runWorkloadForeignPIDs},
	})
}

const (
	workloadMemory      = "nvidia.gpu.workload.memory.usage"
	workloadUtilization = "nvidia.gpu.workload.utilization"
)

// hostRoot is a root directory whose proc shows the host's processes: the real
// ones that the test puts there, and made ones.
type hostRoot string

func newHostRoot(t *testing.T) hostRoot {
	t.Helper()
	root := hostRoot(t.TempDir())
	root.write(t, "proc/2/comm", "kthreadd\n")
	root.write(t, "etc/hostname", "gpu-node-9\n")
	require.NoError(t, os.Symlink("/proc/stat", filepath.Join(string(root), "proc", "stat")))
	return root
}

func (r hostRoot) write(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(string(r), path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// show makes a real process visible by its number.
func (r hostRoot) show(t *testing.T, number, pid int) {
	t.Helper()
	link := filepath.Join(string(r), "proc", strconv.Itoa(number))
	_ = os.Remove(link)
	require.NoError(t, os.Symlink(filepath.Join("/proc", strconv.Itoa(pid)), link))
}

func (r hostRoot) config(t *testing.T, d *fakeDriver) *Config {
	t.Helper()
	cfg := d.config(t)
	cfg.RootPath = string(r)
	return cfg
}

// child is a process with an environment that lives until it is told to end.
func child(t *testing.T, uid uint32, environment ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sleep", "3600")
	command.Env = append([]string{"SECRET=hunter2"}, environment...)
	command.Dir = "/"
	if uid != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	require.NoError(t, command.Start())
	t.Cleanup(func() { end(command) })
	return command
}

// end ends a child and takes it out of the list of processes.
func end(command *exec.Cmd) {
	_ = command.Process.Kill()
	_ = command.Wait()
}

func attributionOf(metrics pmetric.Metrics) map[string]string {
	states := make(map[string]string)
	for _, point := range pointsOf(metrics, "", "nvidia.gpu.attribution") {
		if point.IntValue() == 1 {
			states[text(point.Attributes(), "nvidia.gpu.attribution.source")] = text(point.Attributes(), "nvidia.gpu.attribution.state")
		}
	}
	return states
}

// Two real processes of one workload are one series with the sum of their
// memory, and each leaves it at the next reading after its end.
func runWorkloadEnds(t *testing.T, d *fakeDriver) {
	root := newHostRoot(t)
	run := []string{"WANDB_RUN_ID=run-7", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8", "OTEL_SERVICE_NAME=trainer"}
	compute, graphics := child(t, 0, run...), child(t, 0, run...)
	for _, process := range []*exec.Cmd{compute, graphics} {
		root.show(t, process.Process.Pid, process.Process.Pid)
	}
	d.set(t, fmt.Sprintf("pid %d", compute.Process.Pid), fmt.Sprintf("graphics %d", graphics.Process.Pid))
	r := newRig(t, root.config(t, d))

	metrics := r.scrape(t)
	points := pointsOf(metrics, gpu0, workloadMemory)
	require.Len(t, points, 1)
	assert.Equal(t, int64(39)<<30, points[0].IntValue())
	for name, expected := range map[string]string{
		"ml.run.id": "run-7", "ml.rank.global": "3", "ml.rank.local": "1", "ml.world_size": "8",
		"service.name": "trainer", "user.id": strconv.Itoa(os.Getuid()), "host.name": "gpu-node-9",
	} {
		assert.Equal(t, expected, text(points[0].Attributes(), name), name)
	}
	assert.NotContains(t, fmt.Sprint(points[0].Attributes().AsRaw(), r.logs.All()), "hunter2")
	attribution := attributionOf(metrics)
	assert.Equal(t, "ok", attribution["environ"])
	assert.Equal(t, "absent", attribution["slurm"])
	assert.Equal(t, "absent", attribution["podresources"])
	assert.NotEqual(t, "denied", attribution["cgroup"])

	// The driver still lists it, as it does until the next slow round.
	end(graphics)
	assert.InDelta(t, 19<<30, value(t, r.scrape(t), gpu0, workloadMemory), 0)

	// One that nobody has waited for has ended, too.
	require.NoError(t, compute.Process.Kill())
	require.Eventually(t, func() bool {
		return len(pointsOf(r.scrape(t), gpu0, workloadMemory)) == 0
	}, time.Minute, time.Millisecond)
	assert.Equal(t, "absent", attributionOf(r.scrape(t))["environ"])
}

// A process of the same number that began at another time is another one.
func runWorkloadNumberReused(t *testing.T, d *fakeDriver) {
	root := newHostRoot(t)
	first := child(t, 0, "WANDB_RUN_ID=first")
	root.show(t, 4242, first.Process.Pid)
	r := newRig(t, root.config(t, d))
	assert.Equal(t, "first", text(pointsOf(r.scrape(t), gpu0, workloadMemory)[0].Attributes(), "ml.run.id"))

	root.write(t, "proc/77/stat", "77 (sleep) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 1 0 99999999 1\n")
	require.NoError(t, os.Remove(filepath.Join(string(root), "proc", "4242")))
	require.NoError(t, os.Symlink("77", filepath.Join(string(root), "proc", "4242")))
	assert.Empty(t, pointsOf(r.scrape(t), gpu0, workloadMemory))
}

// The series of single processes say what each is, and processes whose memory
// the driver does not tell are counted.
func runWorkloadProcessSeries(t *testing.T, d *fakeDriver) {
	root := newHostRoot(t)
	process := child(t, 0, "RANK=0")
	root.show(t, 4242, process.Process.Pid)
	root.write(t, "proc/4243/stat", "4243 (a) b (c) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 1 0 5 1\n")
	root.write(t, "proc/4243/cgroup", "0::/user.slice\n")
	root.write(t, "proc/4243/status", "Uid:\t5\nNSpid:\t4243\t17\n")
	d.set(t, "process_samples 100")
	cfg := root.config(t, d)
	cfg.Metrics.NvidiaGpuProcessMemoryUsage.Enabled = true
	cfg.Metrics.NvidiaGpuProcessUtilization.Enabled = true
	cfg.Metrics.NvidiaGpuProcesses.Enabled = true
	metrics := newRig(t, cfg).scrape(t)

	points := pointsOf(metrics, gpu0, "nvidia.gpu.process.memory.usage")
	require.Len(t, points, 1, "the memory of the other is unknown, and not 0")
	attributes := points[0].Attributes()
	for name, expected := range map[string]string{
		"process.pid": "4242", "process.executable.name": "sleep", "ml.rank.global": "0",
	} {
		assert.Equal(t, expected, text(attributes, name), name)
	}
	start, err := time.Parse(time.RFC3339Nano, text(attributes, "process.creation.time"))
	require.NoError(t, err)
	assert.False(t, start.After(time.Now().Add(time.Minute)))

	utilization := make(map[string]float64)
	for _, point := range pointsOf(metrics, gpu0, "nvidia.gpu.process.utilization") {
		utilization[text(point.Attributes(), "process.pid")+" "+text(point.Attributes(), "hw.gpu.task")] = point.DoubleValue()
		if text(point.Attributes(), "process.pid") == "4243" {
			assert.Equal(t, "17", text(point.Attributes(), "process.vpid"))
			assert.Equal(t, "a) b (c", text(point.Attributes(), "process.executable.name"))
		}
	}
	assert.InDeltaMapValues(t, map[string]float64{
		"4242 general": 0.5, "4242 encoder": 0.05, "4242 decoder": 0,
		"4243 general": 0, "4243 encoder": 0, "4243 decoder": 0,
	}, utilization, 1e-9)
	assert.Len(t, pointsOf(metrics, gpu0, workloadUtilization), 2)

	counts := make(map[string]int64)
	for _, point := range pointsOf(metrics, gpu0, "nvidia.gpu.processes") {
		counts[text(point.Attributes(), "nvidia.gpu.process.type")] = point.IntValue()
	}
	assert.Equal(t, map[string]int64{"compute": 2, "graphics": 0, "mps": 0}, counts)
}

// The two profiles of privileges: as root everything is told, as another user
// what is not in an environment, and the kubelet's socket is denied. The
// process changes its user for a while.
func runWorkloadPrivileges(t *testing.T, d *fakeDriver) {
	const owner, reader = 61001, 61002
	if os.Getuid() != 0 {
		t.Log("NOT TESTED: the profiles of privileges. It needs root, to be two other users")
		return
	}
	root := newHostRoot(t)
	process := child(t, owner, "WANDB_RUN_ID=run-7")
	root.show(t, 4242, process.Process.Pid)
	d.serveKubelet(t, root)
	for _, path := range []string{filepath.Dir(string(root)), string(root), filepath.Dir(d.control), filepath.Dir(filepath.Dir(d.control))} {
		require.NoError(t, os.Chmod(path, 0o755))
	}
	require.NoError(t, os.Chmod(d.control, 0o644))

	cfg := root.config(t, d)
	cfg.slowInterval = 0
	r := newRig(t, cfg)
	metrics := r.scrape(t)
	assert.Equal(t, "run-7", text(pointsOf(metrics, gpu0, workloadMemory)[0].Attributes(), "ml.run.id"))
	assert.Equal(t, "ok", attributionOf(metrics)["environ"])

	require.NoError(t, syscall.Setresuid(-1, reader, -1))
	t.Cleanup(func() { require.NoError(t, syscall.Setresuid(-1, 0, -1)) })
	require.Eventually(t, func() bool {
		metrics = r.after(t, 10*time.Second)
		attribution := attributionOf(metrics)
		return attribution["environ"] == "denied" && attribution["podresources"] == "denied"
	}, time.Minute, time.Millisecond)
	points := pointsOf(metrics, gpu0, workloadMemory)
	require.Len(t, points, 1)
	assert.Empty(t, text(points[0].Attributes(), "ml.run.id"))
	assert.Equal(t, strconv.Itoa(owner), text(points[0].Attributes(), "user.id"))
	assert.NotEqual(t, "denied", attributionOf(metrics)["cgroup"])
}

// fakeKubelet answers what it was told last.
type fakeKubelet struct {
	podresourcesapi.UnimplementedPodResourcesListerServer

	mu   sync.Mutex
	pods []*podresourcesapi.PodResources
}

// List implements the kubelet's API.
func (k *fakeKubelet) List(context.Context, *podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &podresourcesapi.ListPodResourcesResponse{PodResources: k.pods}, nil
}

// give says which pod has which devices.
func (k *fakeKubelet) give(devices map[string][]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = nil
	for name, ids := range devices {
		k.pods = append(k.pods, &podresourcesapi.PodResources{
			Namespace: "ml", Name: name,
			Containers: []*podresourcesapi.ContainerResources{{
				Name: "main", Devices: []*podresourcesapi.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: ids}},
			}},
		})
	}
}

// claim says which pod has a device by dynamic resource allocation.
func (k *fakeKubelet) claim(pod, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := []*podresourcesapi.ClaimResource{{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: name}}
	k.pods = append(k.pods, &podresourcesapi.PodResources{Namespace: "ml", Name: pod, Containers: []*podresourcesapi.ContainerResources{{
		Name: "main", DynamicResources: []*podresourcesapi.DynamicResource{{ClaimName: pod + "-gpu", ClaimNamespace: "ml", ClaimResources: held}},
	}}})
}

// serveKubelet serves the kubelet's API below a root directory, for root only,
// as the kubelet does.
func (*fakeDriver) serveKubelet(t *testing.T, root hostRoot) *fakeKubelet {
	t.Helper()
	socket := filepath.Join(string(root), podresources.Socket)
	require.NoError(t, os.MkdirAll(filepath.Dir(socket), 0o700))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	server, kubelet := grpc.NewServer(), &fakeKubelet{}
	podresourcesapi.RegisterPodResourcesListerServer(server, kubelet)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	return kubelet
}

// The kubelet's names are those of the workload that uses what its pod has. A
// pod that uses nothing is there with 0.
func runWorkloadKubernetes(t *testing.T, d *fakeDriver) {
	const uid, container = "3f2d1c0b-aaaa-bbbb-cccc-0123456789ab", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	root := newHostRoot(t)
	root.write(t, "proc/5000/stat", "5000 (python3) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 9 0 5 1\n")
	root.write(t, "proc/5000/cgroup", "0::/kubepods.slice/kubepods-pod3f2d1c0b_aaaa_bbbb_cccc_0123456789ab.slice/cri-containerd-"+container+".scope\n")
	kubelet := d.serveKubelet(t, root)
	kubelet.give(map[string][]string{"train-0": {gpu0, gpu1}})
	r := newRig(t, root.config(t, d))

	names := func(metrics pmetric.Metrics, gpu string) []string {
		found := []string{}
		for _, point := range pointsOf(metrics, gpu, workloadMemory) {
			attributes := point.Attributes()
			found = append(found, fmt.Sprintf("%s/%s/%s/%s %d", text(attributes, "k8s.namespace.name"), text(attributes, "k8s.pod.name"),
				text(attributes, "k8s.container.name"), text(attributes, "k8s.pod.uid"), point.IntValue()>>30))
		}
		return found
	}
	// The kubelet answers in the background.
	eventually := func(expected map[string][]string, state string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			metrics := r.after(t, 30*time.Second)
			for gpu, series := range expected {
				assert.ElementsMatch(c, series, names(metrics, gpu), gpu)
			}
			assert.Equal(c, state, attributionOf(metrics)["podresources"])
		}, time.Minute, time.Millisecond)
	}
	used := "ml/train-0/main/" + uid + " 19"
	eventually(map[string][]string{gpu0: {used}, gpu1: {used}}, "ok")

	// Shared with another pod, of which this one also has a GPU alone.
	kubelet.give(map[string][]string{"train-0": {gpu0 + "::0", gpu1}, "idle": {gpu0 + "::1"}})
	eventually(map[string][]string{gpu0: {used, "ml/idle/main/ 0"}, gpu1: {used}}, "ok")

	// Both are shared: nothing says whose the process is, so that neither pod
	// is known to be idle.
	kubelet.give(map[string][]string{"train-0": {gpu0 + "::0", gpu1 + "::0"}, "idle": {gpu0 + "::1", gpu1 + "::1"}})
	unnamed := "///" + uid + " 19"
	eventually(map[string][]string{gpu0: {unnamed}, gpu1: {unnamed}}, "ok")

	// No process is left: the pods that have the GPUs are there with 0.
	d.set(t, "gone 1", "mig 0")
	idle := []string{"ml/train-0/main/ 0", "ml/idle/main/ 0"}
	eventually(map[string][]string{gpu0: idle, gpu1: idle}, "ok")

	kubelet.give(nil)
	eventually(map[string][]string{gpu0: {}, gpu1: {}}, "absent")
	assert.Contains(t, r.logged(), "The kubelet lists the GPUs of containers")

	// Dynamic resource allocation names a GPU by its device file, a MIG device by its place.
	kubelet.claim("claimed", "gpu-1")
	d.set(t, "gone 1", "mig 1")
	kubelet.claim("part", "gpu-0-mig-1g10gb-14-4")
	kubelet.claim("elsewhere", "gpu-0-mig-1g10gb-14-6")
	eventually(map[string][]string{gpu1: {"ml/claimed/main/ 0"}, migWhole: {"ml/part/main/ 0"}, migHalf0: {}}, "ok")
}

// Numbers of another PID namespace would name other processes.
func runWorkloadForeignPIDs(t *testing.T, d *fakeDriver) {
	root := newHostRoot(t)
	root.write(t, "proc/2/comm", "sh\n")
	root.write(t, "proc/4242/stat", "4242 (other) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 1 0 5 1\n")
	root.write(t, "proc/4242/environ", "WANDB_RUN_ID=another\x00")
	r := newRig(t, root.config(t, d))
	for range 2 {
		metrics := r.scrape(t)
		points := pointsOf(metrics, gpu0, workloadMemory)
		require.Len(t, points, 1, "its memory is told")
		assert.Empty(t, text(points[0].Attributes(), "ml.run.id"))
		assert.Equal(t, "absent", attributionOf(metrics)["environ"])
	}
	said := 0
	for _, line := range r.logged() {
		if line == "The host's processes are not visible, so that workloads have no names; the collector needs the host's PID namespace, or the host's root directory at root_path" {
			said++
		}
	}
	assert.Equal(t, 1, said)
}
