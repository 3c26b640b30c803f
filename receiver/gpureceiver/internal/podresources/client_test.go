package podresources

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/status"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// kubelet is a server of the kubelet's API on a Unix socket.
type kubelet struct {
	podresourcesapi.UnimplementedPodResourcesListerServer
	server *grpc.Server
	served sync.WaitGroup

	mu     sync.Mutex
	answer func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error)
}

// List implements the API.
func (k *kubelet) List(ctx context.Context, _ *podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	k.mu.Lock()
	answer := k.answer
	k.mu.Unlock()
	return answer(ctx)
}

// startKubelet serves answers at a socket until the test's end.
func startKubelet(t *testing.T, socket string, answer func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error)) *kubelet {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	k := &kubelet{server: grpc.NewServer(), answer: answer}
	podresourcesapi.RegisterPodResourcesListerServer(k.server, k)
	k.served.Go(func() { _ = k.server.Serve(listener) })
	t.Cleanup(k.stop)
	return k
}

// stop also removes the socket.
func (k *kubelet) stop() {
	k.server.Stop()
	k.served.Wait()
}

func socketPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "kubelet.sock")
}

// rig is a client with a clock that the test moves.
type rig struct {
	*Client
	logs *observer.ObservedLogs

	mu  sync.Mutex
	now time.Time
}

func newRig(t *testing.T, socket string, timeout time.Duration) *rig {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	r := &rig{logs: logs, now: time.Unix(1700000000, 0)}
	r.Client = NewClient(Options{
		Socket: socket, Interval: 30 * time.Second, Timeout: timeout, Logger: zap.New(core),
		Now: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		},
	})
	t.Cleanup(func() { r.Shutdown(context.Background()) })
	return r
}

// poll moves the clock, asks, and waits for the answer.
func (r *rig) poll(d time.Duration) (Owners, workload.SourceState) {
	r.mu.Lock()
	r.now = r.now.Add(d)
	r.mu.Unlock()
	r.Poll()
	r.asking.Wait()
	return r.told()
}

// told returns the last answer, and what it says of the source.
func (r *rig) told() (Owners, workload.SourceState) {
	owners, denied := r.Owners()
	switch {
	case owners != nil:
		return owners, workload.SourceOK
	case denied:
		return nil, workload.SourceDenied
	}
	return nil, workload.SourceAbsent
}

func (r *rig) logged() []string {
	var messages []string
	for _, entry := range r.logs.All() {
		messages = append(messages, entry.Message)
	}
	return messages
}

func holding(resource string, ids ...string) *podresourcesapi.ContainerDevices {
	return &podresourcesapi.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

func pod(namespace, name string, containers ...*podresourcesapi.ContainerResources) *podresourcesapi.PodResources {
	return &podresourcesapi.PodResources{Namespace: namespace, Name: name, Containers: containers}
}

func container(name string, devices ...*podresourcesapi.ContainerDevices) *podresourcesapi.ContainerResources {
	return &podresourcesapi.ContainerResources{Name: name, Devices: devices}
}

func always(pods ...*podresourcesapi.PodResources) func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
	return func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
		return &podresourcesapi.ListPodResourcesResponse{PodResources: pods}, nil
	}
}

const (
	uuidA   = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	uuidB   = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	uuidMIG = "MIG-cccccccc-0000-0000-0000-000000000000"
)

var (
	gpuA = &device.Identity{ID: uuidA, Index: 0}
	// The device file of B has another number than NVML has.
	gpuB = &device.Identity{ID: uuidB, Index: 2, Minor: device.Read(1)}
	amd  = &device.Identity{ID: "GPU-6f2c9ad1d4a1e1b7", Vendor: device.AMD, PCIBusID: "0000:c1:00.0"}
	part = &device.Identity{
		ID: uuidMIG, Index: 2, Minor: device.Read(1), MIG: &device.MIG{Parent: uuidB, GPUInstance: 7, Profile: "1g.10gb+me"},
		Placement: &device.Placement{Profile: 20, Start: 4, Size: 1},
	}
)

// What containers have, in every form that device plugins write, is told of
// the GPU or the part that it means.
func TestOwners(t *testing.T) {
	train := workload.Pod{Namespace: "ml", Name: "train-0", Container: "main"}
	other := workload.Pod{Namespace: "ml", Name: "other", Container: "main"}
	trains := func(devices ...*podresourcesapi.ContainerDevices) *podresourcesapi.PodResources {
		return pod("ml", "train-0", container("sidecar"), container("main", devices...))
	}
	claimed := func(one *podresourcesapi.PodResources, driver string, devices ...string) *podresourcesapi.PodResources {
		claim := &podresourcesapi.DynamicResource{ClaimName: "train-0-gpu", ClaimNamespace: "ml"}
		for _, device := range devices {
			claim.ClaimResources = append(claim.ClaimResources, &podresourcesapi.ClaimResource{DriverName: driver, PoolName: "node-1", DeviceName: device,
				CdiDevices: []*podresourcesapi.CDIDevice{{Name: "k8s." + driver + "/claim=00000000-0000-0000-0000-000000000000-" + device}}})
		}
		last := one.Containers[len(one.Containers)-1]
		last.DynamicResources = []*podresourcesapi.DynamicResource{claim}
		return one
	}
	claims := func(driver string, devices ...string) *podresourcesapi.PodResources {
		return claimed(trains(), driver, devices...)
	}
	for name, test := range map[string]struct {
		pods            []*podresourcesapi.PodResources
		a, b, part, amd []workload.Pod
	}{
		"AMD's plugin":     {pods: []*podresourcesapi.PodResources{trains(holding("amd.com/gpu", "0000:c1:00.0"))}, amd: []workload.Pod{train}},
		"no GPU of AMD":    {pods: []*podresourcesapi.PodResources{trains(holding("example.org/nic", "0000:c1:00.0"))}},
		"nothing":          {},
		"no devices":       {pods: []*podresourcesapi.PodResources{trains()}},
		"a whole GPU":      {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", uuidA))}, a: []workload.Pod{train}},
		"two GPUs":         {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", uuidA, uuidB))}, a: []workload.Pod{train}, b: []workload.Pod{train}},
		"a MIG device":     {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/mig-1g.10gb", uuidMIG))}, part: []workload.Pod{train}},
		"renamed resource": {pods: []*podresourcesapi.PodResources{trains(holding("example.org/h100", uuidA))}, a: []workload.Pod{train}},
		"shared in time": {
			pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu.shared", uuidA+"::0")), pod("ml", "other", container("main", holding("nvidia.com/gpu.shared", uuidA+"::1")))},
			a:    []workload.Pod{train, other},
		},
		"two shares of one container": {
			pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", uuidA+"::0", uuidA+"::3"))},
			a:    []workload.Pod{train},
		},
		"two containers of a pod": {
			pods: []*podresourcesapi.PodResources{pod("ml", "p", container("x", holding("nvidia.com/gpu", uuidA)), container("y", holding("nvidia.com/gpu", uuidB)))},
			a:    []workload.Pod{{Namespace: "ml", Name: "p", Container: "x"}},
			b:    []workload.Pod{{Namespace: "ml", Name: "p", Container: "y"}},
		},
		"a shared MIG device":        {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/mig-1g.10gb.shared", uuidMIG+"::2"))}, part: []workload.Pod{train}},
		"GKE":                        {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", "nvidia0"))}, a: []workload.Pod{train}},
		"GKE, a part":                {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", "nvidia1/gi7"))}, part: []workload.Pod{train}},
		"GKE, another part":          {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", "nvidia1/gi8"))}},
		"GKE, shared":                {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", "nvidia1/vgpu3"))}, b: []workload.Pod{train}},
		"GKE, a shared part":         {pods: []*podresourcesapi.PodResources{trains(holding("nvidia.com/gpu", "nvidia1/gi7/vgpu0"))}, part: []workload.Pod{train}},
		"DRA":                        {pods: []*podresourcesapi.PodResources{claims("gpu.nvidia.com", "gpu-0", "gpu-1")}, a: []workload.Pod{train}, b: []workload.Pod{train}},
		"DRA, a part":                {pods: []*podresourcesapi.PodResources{claims("gpu.nvidia.com", "gpu-1-mig-1g10gb-me-20-4")}, part: []workload.Pod{train}},
		"DRA, a part, earlier names": {pods: []*podresourcesapi.PodResources{claims("gpu.nvidia.com", "gpu-1-mig-20-4-1")}, part: []workload.Pod{train}},
		"DRA, another part":          {pods: []*podresourcesapi.PodResources{claims("gpu.nvidia.com", "gpu-1-mig-1g10gb-me-20-5", "gpu-1-mig-20-5-1", "gpu-2", "gpu-vfio-0", "", strings.Repeat("x", 200))}},
		"DRA, a claim that pods share": {
			pods: []*podresourcesapi.PodResources{claims("gpu.nvidia.com", "gpu-0"), claimed(pod("ml", "other", container("main")), "gpu.nvidia.com", "gpu-0")},
			a:    []workload.Pod{train, other},
		},
		"another driver of DRA":     {pods: []*podresourcesapi.PodResources{claims("gpu.example.com", "gpu-0")}},
		"another vendor's place":    {pods: []*podresourcesapi.PodResources{trains(holding("example.org/gpu", "nvidia0"))}},
		"other devices":             {pods: []*podresourcesapi.PodResources{trains(holding("example.org/nic", "eth0", "nvidia"), holding("nvidia.com/gpu", "nvidiax", "nvidia0/", "nvidia0/gi", "nvidia0/gi1/x", "nvidia-1", "nvidia99999999"))}},
		"a pod without a name":      {pods: []*podresourcesapi.PodResources{pod("ml", "", container("main", holding("nvidia.com/gpu", uuidA)))}},
		"a name that cannot be one": {pods: []*podresourcesapi.PodResources{pod("ml", strings.Repeat("x", 254), container("main", holding("nvidia.com/gpu", uuidA)))}},
	} {
		t.Run(name, func(t *testing.T) {
			socket := socketPath(t)
			startKubelet(t, socket, always(test.pods...))
			owners, state := newRig(t, socket, time.Minute).poll(0)
			assert.Equal(t, workload.SourceOK, state)
			assert.Equal(t, test.a, owners.Of(gpuA))
			assert.Equal(t, test.b, owners.Of(gpuB))
			assert.Equal(t, test.part, owners.Of(part))
			assert.Equal(t, test.amd, owners.Of(amd))
		})
	}
}

// A host without Kubernetes is no news, and a kubelet that comes, goes and
// comes back is told of once each.
func TestKubeletComesAndGoes(t *testing.T) {
	socket := socketPath(t)
	r := newRig(t, socket, time.Minute)
	for range 2 {
		owners, state := r.poll(30 * time.Second)
		assert.Nil(t, owners.Of(gpuA))
		assert.Equal(t, workload.SourceAbsent, state)
	}
	assert.Empty(t, r.logged())

	serve := func() *kubelet {
		return startKubelet(t, socket, always(pod("ml", "p", container("c", holding("nvidia.com/gpu", uuidA)))))
	}
	k := serve()
	owners, state := r.poll(29 * time.Second)
	assert.Equal(t, workload.SourceAbsent, state, "not asked before the interval is over")
	assert.Empty(t, owners.Of(gpuA))
	for range 2 {
		owners, state = r.poll(30 * time.Second)
		assert.Equal(t, workload.SourceOK, state)
		assert.Len(t, owners.Of(gpuA), 1)
	}

	k.stop()
	for range 2 {
		owners, state = r.poll(30 * time.Second)
		assert.Equal(t, workload.SourceAbsent, state, "what it said may have changed")
		assert.Empty(t, owners.Of(gpuA))
	}
	serve()
	_, state = r.poll(30 * time.Second)
	assert.Equal(t, workload.SourceOK, state)
	assert.Equal(t, []string{
		"The kubelet lists the GPUs of containers",
		"The kubelet's socket is gone; containers with GPUs have no names until it is back",
		"The kubelet lists the GPUs of containers",
	}, r.logged())
}

// Nobody waits for a kubelet that hangs, and it is not asked twice at once.
func TestKubeletHangs(t *testing.T) {
	socket := socketPath(t)
	questions := make(chan struct{}, 10)
	k := startKubelet(t, socket, func(ctx context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
		questions <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r := newRig(t, socket, 100*time.Millisecond)
	r.Poll()
	r.mu.Lock()
	r.now = r.now.Add(time.Hour)
	r.mu.Unlock()
	r.Poll()
	_, state := r.told()
	assert.Equal(t, workload.SourceAbsent, state)
	r.asking.Wait()
	assert.Len(t, questions, 1)
	_, state = r.poll(time.Hour)
	assert.Equal(t, workload.SourceAbsent, state)
	assert.Equal(t, []string{"The kubelet does not list the GPUs of containers; the receiver tries again"}, r.logged(), "once")

	k.mu.Lock()
	k.answer = always()
	k.mu.Unlock()
	_, state = r.poll(time.Hour)
	assert.Equal(t, workload.SourceOK, state)
}

// The time-out is an hour here, so that only the interruption can end it.
func TestShutdownWhileTheKubeletHangs(t *testing.T) {
	socket := socketPath(t)
	asked := make(chan struct{})
	startKubelet(t, socket, func(ctx context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r := newRig(t, socket, time.Hour)
	r.Poll()
	<-asked
	r.Shutdown(t.Context())
	r.Shutdown(t.Context())
	r.asking.Wait()
	assert.Empty(t, r.logged(), "that says nothing about the kubelet")
	_, state := r.poll(time.Hour)
	assert.Equal(t, workload.SourceAbsent, state, "nothing is asked any more")
}

// A peer that is no kubelet, or one that was told to answer too much.
func TestBadAnswers(t *testing.T) {
	many := make([]string, maxHoldings+1)
	for i := range many {
		many[i] = "GPU-" + strconv.Itoa(i)
	}
	for name, answer := range map[string]func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error){
		"larger than a kubelet's": always(pod("ml", strings.Repeat("x", maxAnswerSize), container("c"))),
		"too many devices":        always(pod("ml", "p", container("c", holding("nvidia.com/gpu", many...)))),
		"switched off": func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
			return nil, status.Error(codes.Unimplemented, "no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := socketPath(t)
			startKubelet(t, socket, answer)
			r := newRig(t, socket, time.Minute)
			owners, state := r.poll(0)
			assert.Nil(t, owners)
			assert.Equal(t, workload.SourceAbsent, state)
			assert.Equal(t, []string{"The kubelet does not list the GPUs of containers; the receiver tries again"}, r.logged())
		})
	}
}

func TestSocketsThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, socket := range map[string]string{
		"a file": file, "a directory": t.TempDir(), "a path that is too long": "/" + strings.Repeat("x", 200),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, socket, time.Minute)
			_, state := r.poll(0)
			assert.Equal(t, workload.SourceAbsent, state)
			assert.Len(t, r.logged(), 1)
		})
	}
}

// What gRPC logs goes to the user's log, where a host without a kubelet, or one
// whose kubelet stopped, must not be told of at every round.
func TestSocketsThatNobodyServesAreNotLoggedByGRPC(t *testing.T) {
	var logged lockedBuffer
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, &logged, &logged))
	t.Cleanup(func() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) })
	refusing := socketPath(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: refusing, Net: "unix"})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	for name, socket := range map[string]string{"absent": socketPath(t), "refusing": refusing} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, socket, time.Minute)
			for range 3 {
				_, state := r.poll(time.Minute)
				assert.Equal(t, workload.SourceAbsent, state)
			}
			assert.Empty(t, logged.String())
		})
	}
}

// lockedBuffer keeps what several goroutines write.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// A kubelet that refuses, and a socket that may not be opened, are denied. Root
// may open every socket, so that this part needs another user: the privileges
// test of the receiver has one.
func TestDenied(t *testing.T) {
	socket := socketPath(t)
	startKubelet(t, socket, func(context.Context) (*podresourcesapi.ListPodResourcesResponse, error) {
		return nil, status.Error(codes.PermissionDenied, "no")
	})
	r := newRig(t, socket, time.Minute)
	_, state := r.poll(0)
	assert.Equal(t, workload.SourceDenied, state)
	assert.Equal(t, []string{"The collector has no permission for the kubelet's socket, which needs root; containers with GPUs have no names"}, r.logged())
}

// A clock that was set back does not end the questions.
func TestClockSetBack(t *testing.T) {
	socket := socketPath(t)
	r := newRig(t, socket, time.Minute)
	r.poll(0)
	startKubelet(t, socket, always())
	_, state := r.poll(-time.Hour)
	assert.Equal(t, workload.SourceOK, state)
}

// FuzzDevice shows that whatever a device is called, it is found by that name
// or by none.
func FuzzDevice(f *testing.F) {
	for _, id := range []string{uuidA, uuidMIG + "::3", "nvidia0", "nvidia1/gi7/vgpu0", "nvidia1/vgpu3", "eth0", "MIG-" + uuidA + "/1/0"} {
		f.Add("nvidia.com/gpu", id)
	}
	f.Fuzz(func(t *testing.T, resource, id string) {
		found, isGPU := parseDevice(resource, id)
		if !isGPU {
			assert.False(t, strings.HasPrefix(id, "GPU-") && len(id) <= maxDeviceIDLength)
			return
		}
		assert.LessOrEqual(t, len(found), maxDeviceIDLength)
		owners, err := ownersOf(&podresourcesapi.ListPodResourcesResponse{PodResources: []*podresourcesapi.PodResources{
			pod("ns", "p", container("c", holding(resource, id))),
		}})
		require.NoError(t, err)
		identity := &device.Identity{ID: found}
		if place, byPlace := strings.CutPrefix(found, "nvidia"); byPlace {
			index, instance, isMIG := strings.Cut(place, "/gi")
			identity.ID = ""
			identity.Index, err = strconv.Atoi(index)
			require.NoError(t, err)
			if isMIG {
				identity.MIG = &device.MIG{}
				identity.MIG.GPUInstance, err = strconv.Atoi(instance)
				require.NoError(t, err)
			}
		}
		assert.Len(t, owners.Of(identity), 1)
	})
}
