// Package podresources reads the GPUs of containers from this host's kubelet,
// through the Unix socket of its pod-resources API. It does so in the background,
// so that a slow or missing kubelet delays no reading.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// Socket is the path of a kubelet's socket below the host's root directory.
const Socket = "/var/lib/kubelet/pod-resources/kubelet.sock"

const (
	// maxAnswerSize is the largest answer in bytes, which is also the
	// kubelet's own limit.
	maxAnswerSize = 16 << 20
	// maxHeaderSize bounds what comes before the answer, in bytes.
	maxHeaderSize = 64 << 10
)

// Options are the settings of a Client.
type Options struct {
	// Socket is the path of the kubelet's socket.
	Socket string
	// Interval is the least time between two requests. Zero means no limit.
	Interval time.Duration
	// Timeout is the limit for an answer. It must be positive.
	Timeout time.Duration
	// Logger gets one line for each change between answers and errors.
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Client reads the GPUs of containers from the kubelet. Create it with
// NewClient.
type Client struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	busy   bool
	asked  time.Time
	owners Owners
	denied bool
	// logged is the kind of the last answer: a code, or "" without a kubelet.
	logged string
}

// NewClient returns a client that has sent no request yet.
func NewClient(opts Options) *Client {
	c := &Client{opts: opts}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Poll sends a request in the background, unless the last one was less than the
// interval ago or has no answer yet. It never waits.
func (c *Client) Poll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	// A clock that was set back must not stop the requests.
	early := now.Sub(c.asked) < c.opts.Interval && !now.Before(c.asked)
	if c.ctx.Err() != nil || c.busy || !c.asked.IsZero() && early {
		return
	}
	c.busy, c.asked = true, now
	c.asking.Go(c.ask)
}

// Owners returns the kubelet's last answer, or nil without one, and whether the socket may
// not be used.
func (c *Client) Owners() (owners Owners, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners, c.denied
}

// Shutdown interrupts the current request and waits for it, until ctx ends. It
// is safe to call again.
func (c *Client) Shutdown(ctx context.Context) {
	c.mu.Lock()
	c.cancel() // with the lock, so that no request begins
	c.mu.Unlock()
	_ = shared.Await(ctx, c.asking.Wait)
}

// ask sends one request and keeps the answer. It drops the earlier answer if the
// request fails, because that may be outdated.
func (c *Client) ask() {
	owners, err := c.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.ctx.Err() != nil {
		// The request was interrupted.
		return
	}
	c.owners = owners
	c.denied = errors.Is(err, fs.ErrPermission) || status.Code(err) == codes.PermissionDenied
	c.log(err)
}

// list opens a new connection, because a restarted kubelet has another socket at
// the same path. It dials before it uses gRPC, which would log a warning for each
// missing socket.
func (c *Client) list() (Owners, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
	defer cancel()
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.opts.Socket)
	if err != nil {
		return nil, err
	}
	// gRPC closes the connection too, if it has used it.
	defer func() { _ = dialed.Close() }()
	var once sync.Once
	connection, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			err := errors.New("the connection to the kubelet has ended")
			once.Do(func() { err = nil })
			return dialed, err
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithMaxHeaderListSize(maxHeaderSize),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerSize)),
	)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	answer, err := podresourcesapi.NewPodResourcesListerClient(connection).List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return ownersOf(answer)
}

// log logs a change of the answer's kind. A kubelet that was never there is not
// logged, because most hosts have none.
func (c *Client) log(err error) {
	// A socket that refuses connections has the code Unknown.
	kind, write := status.Code(err).String(), c.opts.Logger.Info
	text := "The kubelet lists the GPUs of containers"
	switch {
	case err == nil:
	case c.denied:
		kind, text = "denied", "The collector has no permission for the kubelet's socket, which needs root; containers with GPUs have no names"
	case errors.Is(err, fs.ErrNotExist):
		kind, text = "", "The kubelet's socket is gone; containers with GPUs have no names until it is back"
	default:
		write, text = c.opts.Logger.Warn, "The kubelet does not list the GPUs of containers; the receiver tries again"
	}
	if kind != c.logged {
		c.logged = kind
		write(text, zap.String("socket", c.opts.Socket), zap.Error(err))
	}
}

const (
	// maxNameLength is the longest name that Kubernetes allows.
	maxNameLength = 253
	// maxHoldings bounds the devices of all containers.
	maxHoldings = 16384
	// maxOwners bounds the containers that share one GPU.
	maxOwners = 128
)

// Owners are the containers with GPUs, by the names of their devices.
type Owners map[string][]workload.Pod

// Of returns the containers of a GPU or MIG device, each once, in the kubelet's
// order. A shared GPU has several. If there are more than maxOwners it returns
// none, because a part of them would look like all.
func (o Owners) Of(gpu *device.Identity) []workload.Pod {
	var found []workload.Pod
	for _, name := range namesOf(gpu) {
		for _, pod := range o[name] {
			if len(found) <= maxOwners && !slices.Contains(found, pod) {
				found = append(found, pod)
			}
		}
	}
	if len(found) > maxOwners {
		return nil
	}
	return found
}

// ownersOf reads the kubelet's answer. It leaves out devices that are no GPUs and
// containers with invalid names.
func ownersOf(answer *podresourcesapi.ListPodResourcesResponse) (Owners, error) {
	o := make(Owners)
	holdings := 0
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			owner := workload.Pod{Namespace: pod.GetNamespace(), Name: pod.GetName(), Container: container.GetName()}
			if !isName(owner.Namespace) || !isName(owner.Name) || !isName(owner.Container) {
				continue
			}
			for found := range devicesOf(container) {
				if holdings++; holdings > maxHoldings {
					return nil, fmt.Errorf("the kubelet lists more than %d devices of GPUs", maxHoldings)
				}
				// The kubelet lists several shares of a device together.
				if owners := o[found]; len(owners) == 0 || owners[len(owners)-1] != owner {
					o[found] = append(owners, owner)
				}
			}
		}
	}
	return o, nil
}

// devicesOf yields the names of the GPUs and MIG devices that a container has from device
// plugins and from drivers of dynamic resource allocation (DRA).
func devicesOf(container *podresourcesapi.ContainerResources) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, held := range container.GetDevices() {
			for _, id := range held.GetDeviceIds() {
				if found, isGPU := parseDevice(held.GetResourceName(), id); isGPU && !yield(found) {
					return
				}
			}
		}
		for _, claim := range container.GetDynamicResources() {
			for _, held := range claim.GetClaimResources() {
				if name := held.GetDeviceName(); held.GetDriverName() == draDriver && name != "" && len(name) <= maxDeviceIDLength && !yield(draDriver+"/"+name) {
					return
				}
			}
		}
	}
}

func isName(name string) bool { return name != "" && len(name) <= maxNameLength }

// maxDeviceIDLength is more than the longest form of a device's id.
const maxDeviceIDLength = 128

// parseDevice reads a device's id. It returns the device's name without the share of it, and
// false for an id that is no GPU.
//
// NVIDIA's plugin uses UUIDs, GPU-… and MIG-…, followed by ::N for share N of a
// GPU that is shared by time slicing or MPS. Its resources can be renamed, so that
// their name does not matter. GKE's plugin uses nvidiaN, nvidiaN/giM for a MIG
// device, and either followed by /vgpuK for a share. Another vendor's plugin could
// use those ids too, so that they count for resources of nvidia.com only. AMD's plugin
// uses addresses on the PCI bus.
func parseDevice(resource, id string) (name string, isGPU bool) {
	if len(id) > maxDeviceIDLength {
		return "", false
	}
	if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
		uuid, _, _ := strings.Cut(id, "::")
		return uuid, true
	}
	if resource == amdResource {
		return id, true
	}
	parts := indexed.FindStringSubmatch(id)
	if parts == nil || !strings.HasPrefix(resource, "nvidia.com/") {
		return "", false
	}
	return parts[1], true
}

// amdResource is the resource of AMD's plugin.
const amdResource = "amd.com/gpu"

// indexed is the form of the ids that GKE's plugin uses.
var indexed = regexp.MustCompile(`^(nvidia(?:0|[1-9]\d{0,4})(?:/gi(?:0|[1-9]\d{0,4}))?)(?:/vgpu\d{1,5})?$`)

// draDriver is NVIDIA's driver of dynamic resource allocation. Other vendors' devices have
// similar names.
const draDriver = "gpu.nvidia.com"

// draProfile writes a profile as draDriver does, such as 1g10gb-me for 1g.10gb+me.
var draProfile = strings.NewReplacer(".", "", "+", "-")

// namesOf returns the names of a GPU or MIG device: its UUID and its place in device
// plugins, and its names in draDriver, which earlier versions build otherwise.
func namesOf(gpu *device.Identity) []string {
	if gpu.Vendor == device.AMD {
		return []string{gpu.PCIBusID}
	}
	number := strconv.Itoa(gpu.Index)
	if gpu.Minor.Known {
		number = strconv.Itoa(int(gpu.Minor.Value))
	}
	place, claimed := "nvidia"+number, draDriver+"/gpu-"+number
	if gpu.MIG == nil {
		return []string{gpu.ID, place, claimed}
	}
	names := []string{gpu.ID, place + "/gi" + strconv.Itoa(gpu.MIG.GPUInstance)}
	if at := gpu.Placement; at != nil {
		names = append(names, fmt.Sprintf("%s-mig-%d-%d-%d", claimed, at.Profile, at.Start, at.Size),
			fmt.Sprintf("%s-mig-%s-%d-%d", claimed, draProfile.Replace(gpu.MIG.Profile), at.Profile, at.Start))
	}
	return names
}
