//go:build cgo && linux

package nvmlsource

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxMIGDevices bounds the number of MIG devices that a library can report. The
// largest GPUs have 7.
const maxMIGDevices = 64

// maxProfile is more than the length of any profile.
const maxProfile = 32

// migSize is a MIG device's part of its GPU.
type migSize struct {
	gpuSlices, computeSlices uint32
	memoryMiB                uint64
	// totalBytes is the memory of the whole GPU.
	totalBytes uint64
}

// migListing is the result of looking for the MIG devices of a GPU.
type migListing struct {
	devices  []*knownGPU
	failures []failure
}

// listMIG lists the MIG devices of each GPU after it. It runs at each reading,
// because it is cheap and MIG can be reconfigured at any time. A GPU that does
// not answer keeps its MIG devices.
func (s *Source) listMIG(ctx context.Context) {
	listed := make([]*knownGPU, 0, len(s.gpus))
	for _, known := range s.gpus {
		if known.identity.MIG != nil {
			continue
		}
		listed = append(listed, known)
		if known.withoutMIG || asleep(known.powerStatus) {
			continue
		}
		children := known.children
		found, result := askAbout(ctx, s, known, "mig_devices", func() (migListing, status) {
			return findMIG(known, children, s.opts.Wants)
		})
		switch {
		case result == statusSuccess:
			known.children = found.devices
		case result.unsupported():
			known.withoutMIG, known.children = true, nil
		}
		for _, f := range found.failures {
			s.opts.Telemetry.Failed(f.call, string(f.status))
		}
		listed = append(listed, known.children...)
	}
	s.gpus = listed
}

// wholeGPUs are the listed GPUs without MIG devices.
func (s *Source) wholeGPUs() []*knownGPU {
	var whole []*knownGPU
	for _, known := range s.gpus {
		if known.identity.MIG == nil {
			whole = append(whole, known)
		}
	}
	return whole
}

// findMIG makes the calls about a GPU's MIG devices. It keeps those of before
// with their state, and releases those that are gone.
func findMIG(parent *knownGPU, before []*knownGPU, wants func(*device.Quantity) bool) (migListing, status) {
	count, result := guard(parent.migDevices)
	if result != statusSuccess {
		return migListing{}, result
	}
	var listing migListing
	for index := range min(count, maxMIGDevices) {
		one, call, result := identifyMIG(parent, index)
		switch {
		case result == statusGPUIsLost:
			return migListing{}, result
		case result == statusSuccess:
			listing.devices = append(listing.devices, one)
		case call == "mig_device" && (result == statusNotFound || result == statusInvalidArgument), result.unsupported():
			// Some indexes have no device.
		default:
			listing.failures = append(listing.failures, failure{call, result})
		}
	}
	slices.SortFunc(listing.devices, func(a, b *knownGPU) int {
		return cmp.Or(
			cmp.Compare(a.identity.MIG.GPUInstance, b.identity.MIG.GPUInstance),
			cmp.Compare(a.identity.MIG.ComputeInstance, b.identity.MIG.ComputeInstance),
		)
	})

	kept := make(map[*knownGPU]bool, len(before))
	for i, one := range listing.devices {
		// Memory and counters belong to the GPU instance, so that only its
		// first compute instance reports them.
		one.leads = i == 0 || listing.devices[i-1].identity.MIG.GPUInstance != one.identity.MIG.GPUInstance
		same := slices.IndexFunc(before, func(old *knownGPU) bool {
			return old.identity.ID == one.identity.ID && *old.identity.MIG == *one.identity.MIG && old.leads == one.leads
		})
		if same >= 0 && !kept[before[same]] {
			old := before[same]
			kept[old] = true
			old.device = one.device
			one.release()
			listing.devices[i] = old
			continue
		}
		one.calls = one.gpu.calls(one.identity.ID, func(q *device.Quantity) bool { return one.leads && wants(q) })
	}
	for _, old := range before {
		if !kept[old] {
			old.release()
		}
	}
	return listing, statusSuccess
}

// identifyMIG reads a MIG device's identity. It has its GPU's product. If a call fails
// it returns the call's name.
func identifyMIG(parent *knownGPU, index int) (known *knownGPU, call string, result status) {
	handle, result := guard(func() (*gpu, status) { return parent.migDevice(index) })
	if result != statusSuccess {
		return nil, "mig_device", result
	}
	defer func() {
		if result != statusSuccess {
			handle.release()
		}
	}()
	id, result := guard(later(handle.library, "nvmlDeviceGetUUID", handle.device.GetUUID))
	if result == statusSuccess && id == "" {
		result = statusNotFound
	}
	if result != statusSuccess {
		return nil, "uuid", result
	}
	instance, result := guard(handle.computeInstance)
	if result != statusSuccess {
		return nil, "mig_instances", result
	}
	// The profile is not needed to identify the device.
	name, _ := guard(later(handle.library, "nvmlDeviceGetName", handle.device.GetName))
	profile := namedProfile(name)
	if profile == "" {
		size, _ := guard(handle.size)
		profile = size.profile()
	}
	known = &knownGPU{gpu: handle, identity: parent.identity}
	known.identity.ID = id
	known.identity.MIG = &device.MIG{Parent: parent.identity.ID, Profile: profile, GPUInstance: handle.gpuInstance, ComputeInstance: instance}
	return known, "", statusSuccess
}

// profileName is the form of the end of the driver's name for a MIG device.
var profileName = regexp.MustCompile(` MIG ([0-9a-z.+-]*g\.[0-9a-z.+-]*)$`)

// namedProfile is the profile at the end of the driver's name for a MIG device,
// such as 1g.10gb, or empty if there is none.
func namedProfile(name string) string {
	if found := profileName.FindStringSubmatch(name); found != nil && len(found[1]) <= maxProfile {
		return found[1]
	}
	return ""
}

// profile writes the size as nvidia-smi does: slices and memory of the GPU
// instance, with the slices of a smaller compute instance before them. It is
// empty if the size is unknown.
func (s migSize) profile() string {
	if s.gpuSlices == 0 || s.memoryMiB == 0 || s.totalBytes == 0 {
		return ""
	}
	profile := fmt.Sprintf("%dg.%dgb", s.gpuSlices, s.gigabytes())
	if s.computeSlices > 0 && s.computeSlices < s.gpuSlices {
		profile = fmt.Sprintf("%dc.%s", s.computeSlices, profile)
	}
	return profile
}

// gigabytes is the memory of a GPU instance as profiles write it: the GPU's
// memory in gigabytes times the eighths that the instance has.
func (s migSize) gigabytes() int {
	const eighths, gibibyte = 8, 1 << 30
	total := float64(s.totalBytes)
	part := math.Ceil(float64(s.memoryMiB)*mebibyte/total*eighths) / eighths
	return int(math.Round(min(part, 1) * math.Ceil(total/gibibyte)))
}
