package podresources

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// maxNameLength is the longest name that Kubernetes allows.
	maxNameLength = 253
	// maxHoldings bounds the devices of all containers.
	maxHoldings = 16384
	// maxOwners bounds the containers that share one GPU.
	maxOwners = 128
)

var errTooMany = errors.New("the kubelet lists more than 16384 devices of GPUs")

// Owners are the containers with GPUs, by the names of their devices.
type Owners map[gpuDevice][]workload.Pod

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
			for _, held := range container.GetDevices() {
				for _, id := range held.GetDeviceIds() {
					found, isGPU := parseDevice(held.GetResourceName(), id)
					if !isGPU {
						continue
					}
					if holdings++; holdings > maxHoldings {
						return nil, errTooMany
					}
					// The kubelet lists several shares of a device together.
					if owners := o[found]; len(owners) == 0 || owners[len(owners)-1] != owner {
						o[found] = append(owners, owner)
					}
				}
			}
		}
	}
	return o, nil
}

func isName(name string) bool {
	return name != "" && len(name) <= maxNameLength
}

// maxDeviceIDLength is more than the longest form of a device's id.
const maxDeviceIDLength = 128

// noInstance is the GPU instance of a whole GPU.
const noInstance = -1

// gpuDevice is a device as a device plugin names it: by its UUID, or else by its
// index.
type gpuDevice struct {
	uuid string
	// index is the GPU's index, and instance its GPU instance.
	index, instance int
}

// parseDevice reads a device's id. It reports false for an id that is no GPU.
//
// NVIDIA's plugin uses UUIDs, GPU-… and MIG-…, followed by ::N for share N of a
// GPU that is shared by time slicing or MPS. Its resources can be renamed, so that
// their name does not matter. GKE's plugin uses nvidiaN, nvidiaN/giM for a MIG
// device, and either followed by /vgpuK for a share. Another vendor's plugin could
// use those ids too, so that they count for resources of nvidia.com only.
func parseDevice(resource, id string) (gpuDevice, bool) {
	if len(id) > maxDeviceIDLength {
		return gpuDevice{}, false
	}
	if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
		uuid, _, _ := strings.Cut(id, "::")
		return gpuDevice{uuid: uuid, index: noInstance, instance: noInstance}, true
	}
	parts := indexed.FindStringSubmatch(id)
	if parts == nil || !strings.HasPrefix(resource, "nvidia.com/") {
		return gpuDevice{}, false
	}
	// The pattern allows few digits.
	d := gpuDevice{instance: noInstance}
	d.index, _ = strconv.Atoi(parts[1])
	if parts[2] != "" {
		d.instance, _ = strconv.Atoi(parts[2])
	}
	return d, true
}

// indexed is the form of the ids that GKE's plugin uses.
var indexed = regexp.MustCompile(`^nvidia(\d{1,5})(?:/gi(\d{1,5}))?(?:/vgpu\d{1,5})?$`)

// namesOf returns the names of a GPU or MIG device in device plugins.
func namesOf(gpu *device.Identity) [2]gpuDevice {
	instance := noInstance
	if gpu.MIG != nil {
		instance = gpu.MIG.GPUInstance
	}
	return [2]gpuDevice{
		{uuid: gpu.ID, index: noInstance, instance: noInstance},
		{index: gpu.Index, instance: instance},
	}
}
