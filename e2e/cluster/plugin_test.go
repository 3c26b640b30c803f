package cluster

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin hands out the GPUs of the library that stands in for NVML, as NVIDIA's device plugin
// does: by their UUIDs.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer

	uuids []string
	ended chan struct{}
}

// startPlugin registers a device plugin with the node's kubelet. It ends with the test.
func (c *cluster) startPlugin(t *testing.T, uuids ...string) {
	t.Helper()
	folder := filepath.Join(c.folder, "var", "lib", "kubelet", "device-plugins")
	p := &plugin{uuids: uuids, ended: make(chan struct{})}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(folder, "gpus.sock"))
	require.NoError(t, err)
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { close(p.ended); server.Stop() })

	connection, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(t.Context(), &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: "gpus.sock", ResourceName: "nvidia.com/gpu",
	})
	require.NoError(t, err)
}

func (*plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch says once that all GPUs are healthy.
func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	var all []*deviceplugin.Device
	for _, uuid := range p.uuids {
		all = append(all, &deviceplugin.Device{ID: uuid, Health: deviceplugin.Healthy})
	}
	if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-stream.Context().Done():
	}
	return nil
}

// Allocate gives containers what they ask for, which changes nothing of them.
func (*plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	answer := &deviceplugin.AllocateResponse{}
	for range request.GetContainerRequests() {
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return answer, nil
}
