package nvmlsource

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxMIGDevices bounds the number of MIG devices that a library can report. The
// largest GPUs have 7.
const maxMIGDevices = 64

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

// migDevice is a MIG device in a listing.
type migDevice struct {
	handle   gpu
	identity device.Identity
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
		if known.withoutMIG || s.asleep(known) {
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
			s.opts.Failed(f.call, string(f.status))
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
	count, result := guard(parent.handle.MIGDevices)
	if result != statusSuccess {
		return migListing{}, result
	}
	var listing migListing
	var found []migDevice
	for index := range min(count, maxMIGDevices) {
		one, f := identifyMIG(parent, index)
		if f.status == statusGPUIsLost {
			return migListing{}, f.status
		}
		if f.status != statusSuccess {
			if !f.status.unsupported() {
				listing.failures = append(listing.failures, f)
			}
			continue
		}
		if one.handle != nil {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b migDevice) int {
		return cmp.Or(
			cmp.Compare(a.identity.MIG.GPUInstance, b.identity.MIG.GPUInstance),
			cmp.Compare(a.identity.MIG.ComputeInstance, b.identity.MIG.ComputeInstance),
		)
	})

	kept := make(map[*knownGPU]bool, len(before))
	for i, one := range found {
		// Memory and counters belong to the GPU instance, so that only its
		// first compute instance reports them.
		leads := i == 0 || found[i-1].identity.MIG.GPUInstance != one.identity.MIG.GPUInstance
		if old := sameMIG(before, one, leads); old != nil && !kept[old] {
			kept[old] = true
			old.handle.Renew(one.handle)
			one.handle.Release()
			listing.devices = append(listing.devices, old)
			continue
		}
		needed := wants
		if !leads {
			needed = func(*device.Quantity) bool { return false }
		}
		listing.devices = append(listing.devices, &knownGPU{
			handle: one.handle, calls: one.handle.Calls(one.identity.ID, needed), identity: one.identity, leads: leads,
		})
	}
	for _, old := range before {
		if !kept[old] {
			old.handle.Release()
		}
	}
	return listing, statusSuccess
}

// sameMIG returns the device of before that is the same as one, or nil.
func sameMIG(before []*knownGPU, one migDevice, leads bool) *knownGPU {
	for _, old := range before {
		if old.identity.ID == one.identity.ID && *old.identity.MIG == *one.identity.MIG && old.leads == leads {
			return old
		}
	}
	return nil
}

// identifyMIG reads a MIG device's identity. Some indexes have no device.
func identifyMIG(parent *knownGPU, index int) (migDevice, failure) {
	handle, result := guard(func() (gpu, status) { return parent.handle.MIGDevice(index) })
	if result == statusNotFound || result == statusInvalidArgument {
		return migDevice{}, failure{status: statusSuccess}
	}
	if result != statusSuccess {
		return migDevice{}, failure{"mig_device", result}
	}
	identity, f := describeMIG(parent, handle)
	if f.status != statusSuccess {
		handle.Release()
		return migDevice{}, f
	}
	return migDevice{handle: handle, identity: identity}, f
}

// describeMIG returns the identity of a MIG device. It has its GPU's product.
func describeMIG(parent *knownGPU, handle gpu) (device.Identity, failure) {
	identity := parent.identity
	id, result := guard(handle.UUID)
	if result == statusSuccess && id == "" {
		result = statusNotFound
	}
	if result != statusSuccess {
		return identity, failure{"uuid", result}
	}
	part := &device.MIG{Parent: parent.identity.ID}
	_, result = guard(func() (struct{}, status) {
		var answer status
		part.GPUInstance, part.ComputeInstance, answer = handle.Instances()
		return struct{}{}, answer
	})
	if result != statusSuccess {
		return identity, failure{"mig_instances", result}
	}
	// The profile is not needed to identify the device.
	name, _ := guard(handle.Name)
	if part.Profile = namedProfile(name); part.Profile == "" {
		size, _ := guard(handle.Size)
		part.Profile = size.profile()
	}
	identity.ID, identity.MIG = id, part
	return identity, failure{status: statusSuccess}
}

// namedProfile is the profile at the end of the driver's name for a MIG device,
// such as 1g.10gb, or empty if there is none.
func namedProfile(name string) string {
	if _, profile, found := strings.Cut(name, " MIG "); found && validProfile(profile) {
		return profile
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

// validProfile reports whether a text from the driver can be a profile.
func validProfile(profile string) bool {
	if profile == "" || len(profile) > 32 || !strings.Contains(profile, "g.") {
		return false
	}
	for _, r := range profile {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && !strings.ContainsRune(".+-", r) {
			return false
		}
	}
	return true
}
