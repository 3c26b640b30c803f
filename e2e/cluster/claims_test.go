package cluster

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// draDriver is the name of NVIDIA's driver of dynamic resource allocation.
const draDriver = "gpu.nvidia.com"

// offered is what such a driver tells the cluster of the GPUs of the library that stands in
// for NVML.
const offered = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node1-gpu.nvidia.com}
spec:
  driver: gpu.nvidia.com
  nodeName: node1
  pool: {name: node1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
`

// claimer is a pod that claims a GPU and uses none.
const claimer = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: team-vision}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]
---
apiVersion: v1
kind: Pod
metadata: {name: claimer, namespace: team-vision}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers:
    - name: notebook
      image: localhost/otelcol-ml-training:1
      command: [sleep, infinity]
      resources: {claims: [{name: gpu}]}
`

// driver gives containers the GPUs that the scheduler has allocated, which changes nothing of
// them.
type driver struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer

	// allocated returns the name of the device of a claim.
	allocated func(*dra.Claim) (string, error)
	endpoint  string
	// registered gets the kubelet's answer.
	registered chan *registration.RegistrationStatus
}

// startDriver registers a driver with the node's kubelet. It ends with the test.
func (c *cluster) startDriver(t *testing.T) {
	t.Helper()
	const state = "/var/lib/kubelet"
	d := &driver{endpoint: path.Join(state, "plugins", draDriver, "dra.sock"), registered: make(chan *registration.RegistrationStatus, 1)}
	d.allocated = func(claim *dra.Claim) (string, error) {
		return c.try(t, "", "kubectl", "get", "resourceclaim", "--namespace", claim.GetNamespace(), claim.GetName(),
			"--output", "jsonpath={.status.allocation.devices.results[0].device}")
	}
	serve := func(socket string, register func(grpc.ServiceRegistrar)) {
		file := filepath.Join(c.folder, socket)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", file)
		require.NoError(t, err)
		server := grpc.NewServer()
		register(server)
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
	}
	serve(d.endpoint, func(server grpc.ServiceRegistrar) { dra.RegisterDRAPluginServer(server, d) })
	// The kubelet looks for such files there.
	serve(path.Join(state, "plugins_registry", draDriver+".sock"), func(server grpc.ServiceRegistrar) { registration.RegisterRegistrationServer(server, d) })
	select {
	case answer := <-d.registered:
		require.True(t, answer.GetPluginRegistered(), answer.GetError())
	case <-time.After(started):
		require.Fail(t, "the kubelet does not know the driver")
	}
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DRAPlugin, Name: draDriver, Endpoint: d.endpoint, SupportedVersions: []string{dra.DRAPluginService}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	select {
	case d.registered <- status:
	default:
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// NodePrepareResources says of each claim which device it is.
func (d *driver) NodePrepareResources(_ context.Context, request *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	answer := &dra.NodePrepareResourcesResponse{Claims: make(map[string]*dra.NodePrepareResourceResponse)}
	for _, claim := range request.GetClaims() {
		device, err := d.allocated(claim)
		if err != nil {
			answer.Claims[claim.GetUid()] = &dra.NodePrepareResourceResponse{Error: device + err.Error()}
			continue
		}
		answer.Claims[claim.GetUid()] = &dra.NodePrepareResourceResponse{Devices: []*dra.Device{{RequestNames: []string{"gpu"}, PoolName: "node1", DeviceName: device}}}
	}
	return answer, nil
}

func (*driver) NodeUnprepareResources(_ context.Context, request *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	answer := &dra.NodeUnprepareResourcesResponse{Claims: make(map[string]*dra.NodeUnprepareResourceResponse)}
	for _, claim := range request.GetClaims() {
		answer.Claims[claim.GetUid()] = &dra.NodeUnprepareResourceResponse{}
	}
	return answer, nil
}

// claimed gives a pod one of the stand-in's GPUs by dynamic resource allocation. The reader
// knows the pod by name, although it runs nothing there.
func (c *cluster) claimed(t *testing.T) {
	c.drive(t, "count 2", "gone 1")
	c.startDriver(t)
	c.apply(t, offered)
	c.apply(t, claimer)
	c.kubectl(t, "wait", "--namespace", "team-vision", "--for=condition=Ready", "pod/claimer", "--timeout=2m")
	device := c.field(t, "{.items[0].status.allocation.devices.results[0].device}", "--namespace", "team-vision", "resourceclaims")
	owned := harness.Labels{"k8s_namespace_name": "team-vision", "k8s_pod_name": "claimer", "k8s_container_name": "notebook"}
	c.awaitMetric(t, "nvidia_gpu_workload_memory_usage_bytes", owned)
	var held []string
	for _, sample := range harness.Select(c.samples(t, c.pods(t, "agent")[0]), "nvidia_gpu_workload_memory_usage_bytes", owned) {
		held = append(held, sample.Labels["hw_id"])
	}
	assert.Equal(t, []string{"GPU-00000000-0000-0000-0000-00000000000" + strings.TrimPrefix(device, "gpu-")}, held)
	c.kubectl(t, "delete", "pod", "--namespace", "team-vision", "claimer")
}
