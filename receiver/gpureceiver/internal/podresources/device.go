package podresources

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

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
