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

// gpuDevice is a device as a device plugin names it: by its UUID, or else by
// its place.
type gpuDevice struct {
	uuid string
	// index and instance are the GPU's number and its GPU instance's.
	index, instance int
}

// parseDevice reads a device's id. It reports false for one that is no GPU.
//
// NVIDIA's plugin gives UUIDs, GPU-… and MIG-…, with ::N behind them for the
// Nth share of one that is shared in time or by MPS. Resources can be renamed,
// so that their name does not matter. GKE's plugin gives nvidiaN, for a part
// nvidiaN/giM, and /vgpuK behind either for a share. Another vendor's plugin
// could use those names too, so that they count as NVIDIA's resources only.
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
	if d.index, found = parsePlace(gpu, "nvidia"); !found {
		return gpuDevice{}, false
	}
	if !divided {
		return d, true
	}
	part, share, shared := strings.Cut(parts, "/")
	if instance, found := parsePlace(part, "gi"); found {
		d.instance = instance
		if !shared {
			return d, true
		}
	} else if share = part; shared {
		return gpuDevice{}, false
	}
	_, found = parsePlace(share, "vgpu")
	return d, found
}

// parsePlace reads the small number behind a prefix.
func parsePlace(text, prefix string) (int, bool) {
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

// namesOf are the names by which a plugin can mean a GPU or MIG device.
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
