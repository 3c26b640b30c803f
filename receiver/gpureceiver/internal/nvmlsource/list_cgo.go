//go:build cgo && linux

package nvmlsource

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxGPUs bounds the number of GPUs that a library can report.
const maxGPUs = 256

// request makes calls about a subject on the goroutine for calls, and returns their
// answer. If they do not return in time, late gets the answer when they do.
func request[T any](ctx context.Context, s *Source, subject string, question func() T, late func(T)) (T, outcome) {
	var answer, none T
	var left atomic.Bool // true once one of the two goroutines needs the answer no more
	result := processCalls.do(ctx, s.opts.CallTimeout, subject, func() {
		if answer = question(); left.Swap(true) {
			late(answer)
		}
	})
	if result == abandoned && ctx.Err() == nil {
		s.opts.Telemetry.Abandoned()
	}
	if left.Swap(true) {
		return answer, result
	}
	return none, result
}

// listing is the result of opening the library and listing its GPUs.
type listing struct {
	opts   *Options
	open   bool
	result status
	system device.System
	gpus   []*knownGPU
	// failed is the status of the last call that failed, empty if none did.
	failed status
}

// list opens the library if it is not open, and lists its GPUs. The identity of
// a known GPU is not read again, because a GPU that fell off the bus would not
// answer. A library that is opened and does not list its GPUs in time is closed.
func (s *Source) list(ctx context.Context) status {
	wasOpen, system := s.open, s.system
	known := slices.DeleteFunc(slices.Clone(s.gpus), func(k *knownGPU) bool { return k.identity.MIG != nil })
	if !wasOpen {
		s.opts.Telemetry.Attempted()
	}
	found, _ := request(ctx, s, driverSubject, func() *listing {
		l := &listing{opts: &s.opts, open: wasOpen, system: system}
		if l.result = l.query(s.library, known); l.result != statusSuccess {
			l.undo(s.library, wasOpen)
		}
		return l
	}, func(late *listing) { late.undo(s.library, wasOpen) })
	if found == nil {
		return statusTimeout
	}
	if found.result != statusSuccess {
		// A library that was open before still is.
		return found.result
	}
	if !wasOpen {
		s.opts.Telemetry.Opened()
	}
	s.open, s.system, s.gpus = true, found.system, found.gpus
	return statusSuccess
}

// undo closes the library if the listing has opened it. A library must not be closed
// after a failed open.
func (l *listing) undo(lib *library, wasOpen bool) {
	if l.open && !wasOpen {
		l.open = false
		askStatus("close", l.opts.Telemetry, lib.close)
	}
}

func (l *listing) query(lib *library, known []*knownGPU) status {
	if !l.open {
		if result := askStatus("open", l.opts.Telemetry, lib.open); result != statusSuccess {
			return result
		}
		l.open = true
		l.text("driver_version", &l.system.DriverVersion, nil, later(lib, "nvmlSystemGetDriverVersion", lib.nvml.SystemGetDriverVersion))
		l.text("cuda_version", &l.system.CUDAVersion, device.CUDAVersion, func() (string, status) {
			version, result := guarded(lib, "nvmlSystemGetCudaDriverVersion_v2", lib.nvml.SystemGetCudaDriverVersion_v2)
			return cudaVersion(version), result
		})
	}
	// Its symbol was looked up by open.
	count, result := ask("device_count", l.opts.Telemetry, func() (int, status) {
		count, ret := lib.nvml.DeviceGetCount()
		return count, statusOf(ret)
	})
	if result != statusSuccess {
		return result
	}
	byIndex := make(map[int]*knownGPU, len(known))
	if len(known) <= count {
		// Indexes are stable only while GPUs are added, not removed.
		for _, k := range known {
			byIndex[k.identity.Index] = k
		}
	}
	for index := range min(count, maxGPUs) {
		k := byIndex[index]
		if k == nil {
			k = l.identify(lib, index)
		}
		if k != nil {
			l.gpus = append(l.gpus, k)
		}
	}
	if count > 0 && len(l.gpus) == 0 && !l.failed.unsupported() {
		// If no GPU returns its identity, the driver does not work or this
		// process has no permission for any.
		return cmp.Or(l.failed, statusSuccess)
	}
	return statusSuccess
}

// identify reads a GPU's identity. A GPU without a UUID is left out until it
// returns one, because it could not be distinguished from others.
func (l *listing) identify(lib *library, index int) *knownGPU {
	g, result := ask("device", l.opts.Telemetry, func() (*gpu, status) { return lib.gpu(index) })
	if result != statusSuccess {
		l.failed = result
		return nil
	}
	identity := device.Identity{Index: index}
	if l.text("uuid", &identity.ID, nil, later(lib, "nvmlDeviceGetUUID", g.device.GetUUID)); identity.ID == "" {
		return nil
	}
	l.text("name", &identity.Name, nil, later(lib, "nvmlDeviceGetName", g.device.GetName))
	l.text("pci_bus_id", &identity.PCIBusID, nil, g.busID)
	l.text("serial", &identity.Serial, device.Serial, later(lib, "nvmlDeviceGetSerial", g.device.GetSerial))
	l.text("vbios", &identity.VBIOS, device.VBIOS, later(lib, "nvmlDeviceGetVbiosVersion", g.device.GetVbiosVersion))
	l.text("architecture", &identity.Architecture, device.Architecture, g.architecture)
	if minor, result := ask("minor", l.opts.Telemetry, later(lib, "nvmlDeviceGetMinorNumber", g.device.GetMinorNumber)); result == statusSuccess {
		identity.Minor = device.Read(float64(minor))
	}
	if l.opts.Wants(device.NUMANode) {
		raw, _ := os.ReadFile(l.opts.pciFile(&identity, "numa_node"))
		identity.NUMANode = device.NUMANodeOf(string(raw))
	}
	return &knownGPU{gpu: g, identity: identity}
}

// pciFile returns the path of the kernel's file about a GPU's PCI device.
func (o *Options) pciFile(gpu *device.Identity, name string) string {
	return filepath.Join("/", o.RootPath, "sys/bus/pci/devices", filepath.Base(gpu.PCIBusID), name)
}

// text reads a text, unless it is the text of a quantity that is not wanted. It stays
// as it is if unknown.
func (l *listing) text(name string, into *string, quantity *device.Quantity, question func() (string, status)) {
	if quantity != nil && !l.opts.Wants(quantity) {
		return
	}
	if answer, result := ask(name, l.opts.Telemetry, question); result == statusSuccess {
		*into = answer
	} else if result.failed() {
		l.failed = result
	}
}

// cudaVersion writes NVML's number, such as 12080, as 12.8. It is empty for
// what is no version.
func cudaVersion(number int) string {
	if number < 1000 {
		return ""
	}
	return fmt.Sprintf("%d.%d", number/1000, number%1000/10)
}

// maxFormer bounds the GPUs that are remembered between sessions.
const maxFormer = 2 * maxGPUs

// knownGPU is a GPU whose identity is known. It stays listed while its calls
// fail.
type knownGPU struct {
	*gpu
	// calls are the calls of the GPU.
	calls    []call
	identity device.Identity
	// powerStatus is the file with the kernel's power status of the PCI device.
	powerStatus string
	// state is the last logged state of the GPU, empty while it answers.
	state status

	// slow has the answers of the slow calls. It is nil until the GPU is adopted. It is
	// kept while the library is closed, as are histories, those of the table of calls.
	slow      *slowAnswers
	histories map[nvml.SamplingType]*sampleHistory
	// children are its MIG devices, and withoutMIG is true for a GPU that can
	// have none. leads is true for the MIG device that reports the values of
	// its whole GPU instance.
	children          []*knownGPU
	withoutMIG, leads bool
	// divided is true for a GPU whose MIG devices are listed: they report its
	// processes.
	divided bool
	// eventsTried is true once the GPU was registered for events, and
	// eventsKnown if that succeeded.
	eventsTried, eventsKnown bool
}

// questions returns the calls about the GPU that yield a wanted quantity. A MIG device that
// does not lead its GPU instance reports its processes only.
func (k *knownGPU) questions(wants func(*device.Quantity) bool) []call {
	t := table{gpu: k.gpu, fields: &fieldBatch{ask: k.askFields}, histories: k.histories}
	part := k.identity.MIG != nil && !k.leads
	return t.calls(func(q *device.Quantity) bool { return (!part || q == device.ProcessList) && wants(q) })
}

// adopt prepares the GPUs that are new in this session.
func (s *Source) adopt() {
	divided := make(map[string]bool)
	for _, known := range s.gpus {
		if known.identity.MIG != nil {
			divided[known.identity.MIG.Parent] = true
		}
	}
	for _, known := range s.gpus {
		known.divided = divided[known.identity.ID]
		if known.slow != nil {
			continue
		}
		known.powerStatus = s.opts.pciFile(&known.identity, "power/runtime_status")
		known.slow, known.histories = &slowAnswers{}, make(map[nvml.SamplingType]*sampleHistory)
		if before := s.former[known.identity.ID]; before != nil {
			known.slow, known.state, known.histories = before.slow, before.state, before.histories
		}
		known.calls = known.questions(s.opts.Wants)
		if len(s.former) >= maxFormer {
			clear(s.former)
		}
		s.former[known.identity.ID] = known
	}
}

// maxMIGDevices bounds the number of MIG devices that a library can report. The
// largest GPUs have 7.
const maxMIGDevices = 64

// maxProfile is more than the length of any profile.
const maxProfile = 32

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
			return findMIG(known, children)
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

// findMIG makes the calls about a GPU's MIG devices. It keeps those of before
// with their state, and releases those that are gone.
func findMIG(parent *knownGPU, before []*knownGPU) (migListing, status) {
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
		} else {
			one.identity.Placement, _ = guard(parent.placement(one.identity.MIG.GPUInstance))
		}
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
	known = &knownGPU{gpu: handle, identity: parent.identity}
	known.identity.ID = id
	known.identity.MIG = &device.MIG{Parent: parent.identity.ID, Profile: namedProfile(name), GPUInstance: handle.gpuInstance, ComputeInstance: instance}
	return known, "", statusSuccess
}

// profileName is the form of the end of the driver's name for a MIG device.
var profileName = regexp.MustCompile(` MIG ([0-9a-z.+-]*g\.[0-9a-z.+-]*)$`)

// namedProfile is the profile at the end of the driver's name for a MIG device,
// such as 1g.10gb, or empty if there is none, as before the branch 470.
func namedProfile(name string) string {
	if found := profileName.FindStringSubmatch(name); found != nil && len(found[1]) <= maxProfile {
		return found[1]
	}
	return ""
}
