package podresources

import (
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
	if !strings.HasPrefix(resource, "nvidia.com/") {
		return gpuDevice{}, false
	}
	d := gpuDevice{instance: noInstance}
	gpu, parts, divided := strings.Cut(id, "/")
	found := false
	if d.index, found = parseIndex(gpu, "nvidia"); !found {
		return gpuDevice{}, false
	}
	if !divided {
		return d, true
	}
	part, share, shared := strings.Cut(parts, "/")
	if instance, found := parseIndex(part, "gi"); found {
		d.instance = instance
		if !shared {
			return d, true
		}
	} else if share = part; shared {
		return gpuDevice{}, false
	}
	_, found = parseIndex(share, "vgpu")
	return d, found
}

// parseIndex reads the small number after a prefix.
func parseIndex(text, prefix string) (int, bool) {
	digits, found := strings.CutPrefix(text, prefix)
	if !found {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, false
	}
	return int(number), true
}

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
