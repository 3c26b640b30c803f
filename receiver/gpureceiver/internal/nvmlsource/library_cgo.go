//go:build cgo && linux

package nvmlsource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// library is NVML through go-nvml. Any call can block forever. One goroutine makes
// them all.
type library struct {
	path string
	now  func() time.Time
	nvml nvml.Interface

	// mu guards the following fields, because an abandoned call can return and
	// use them while the next goroutine does.
	mu      sync.Mutex
	symbols map[string]bool
	// gpm are the samples to free before the library is closed.
	gpm map[*gpmSamples]struct{}
	// impossible counts impossible samples.
	impossible atomic.Int64
}

// loaders are the loaders of this process by path, which its receivers share:
// loading writes global variables of go-nvml, such as one that the wait for
// events reads, and a loader in use does not load again. go-nvml counts openings
// and closings.
var loaders sync.Map

func newLibrary(path string, now func() time.Time) *library {
	loader, _ := loaders.LoadOrStore(path, nvml.New(nvml.WithLibraryPath(path)))
	return &library{
		path: path, now: now, nvml: loader.(nvml.Interface),
		symbols: make(map[string]bool), gpm: make(map[*gpmSamples]struct{}),
	}
}

// open loads the library only if it has the symbols that go-nvml needs to start,
// because calling a missing symbol ends the process. It probes in a local scope,
// so that a file that is no NVML library has no effect.
func (l *library) open() status {
	probe := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if probe.Open() != nil {
		return statusLibraryNotFound
	}
	// This drops the reference only: the loaded library stays.
	defer func() { _ = probe.Close() }()
	for _, symbol := range []string{"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"} {
		if probe.Lookup(symbol) != nil {
			return statusLibraryNotFound
		}
	}
	l.mu.Lock()
	clear(l.symbols)
	l.mu.Unlock()
	return statusOf(l.nvml.Init())
}

// close shuts NVML down. It is called only after an open that succeeded. The process
// keeps the library, although go-nvml unloads it.
func (l *library) close() status {
	l.mu.Lock()
	samples := slices.Collect(maps.Keys(l.gpm))
	clear(l.gpm)
	l.mu.Unlock()
	for _, s := range samples {
		s.free()
	}
	return statusOf(l.nvml.Shutdown())
}

// has reports whether the library has one of several symbols. It must be asked before
// each call, because calling a missing symbol ends the process.
func (l *library) has(symbols ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(symbols, func(symbol string) bool {
		return shared.Entry(l.symbols, symbol, func() bool { return l.nvml.Extensions().LookupSymbol(symbol) == nil })
	})
}

// hasAll reports whether the library has several symbols.
func (l *library) hasAll(symbols ...string) bool {
	return !slices.ContainsFunc(symbols, func(symbol string) bool { return !l.has(symbol) })
}

// guarded makes a call if the library has its symbol.
func guarded[T any](l *library, symbol string, get func() (T, nvml.Return)) (T, status) {
	if !l.has(symbol) {
		var none T
		return none, statusFunctionNotFound
	}
	value, ret := get()
	return value, statusOf(ret)
}

// later returns a function that makes a call if the library has its symbol.
func later[T any](l *library, symbol string, get func() (T, nvml.Return)) func() (T, status) {
	return func() (T, status) { return guarded(l, symbol, get) }
}

// statusOf names a return code. It does not use the library's function for that,
// which can be missing too.
func statusOf(ret nvml.Return) status {
	if name, known := statuses[ret]; known {
		return name
	}
	return status(fmt.Sprintf("CODE_%d", int32(ret)))
}

// statuses are go-nvml's names, which it has until a library is loaded, and those of
// newer codes.
var statuses = func() map[nvml.Return]status {
	names := map[nvml.Return]status{
		nvml.ERROR_NOT_READY: "NOT_READY", nvml.ERROR_GPU_NOT_FOUND: "GPU_NOT_FOUND", nvml.ERROR_INVALID_STATE: "INVALID_STATE",
		nvml.ERROR_UNKNOWN: statusUnknown,
	}
	for ret := range nvml.ERROR_NOT_READY {
		names[ret] = status(strings.TrimPrefix(ret.Error(), "ERROR_"))
	}
	return names
}()

// gpu is one GPU or MIG device of the library.
type gpu struct {
	*library
	device nvml.Device
	gpm    *gpmSamples
	// parent is the GPU that a MIG device is a part of, nil for a whole GPU.
	parent *gpu
	// gpuInstance is that of a MIG device.
	gpuInstance int
}

// gpu returns the GPU with an index. The symbol was looked up by open.
func (l *library) gpu(index int) (*gpu, status) {
	handle, ret := l.nvml.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	return l.bind(handle), statusSuccess
}

// bind returns a GPU for a handle.
func (l *library) bind(handle nvml.Device) *gpu {
	g := &gpu{library: l, device: handle, gpm: &gpmSamples{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gpm[g.gpm] = struct{}{}
	return g
}

// release frees what the GPU holds in the library, for a GPU that is gone while
// others are not.
func (g *gpu) release() {
	g.mu.Lock()
	delete(g.library.gpm, g.gpm)
	g.mu.Unlock()
	g.gpm.free()
}

// busID returns the PCI address as sysfs writes it: with four digits of domain, where
// NVML's own text has eight.
func (g *gpu) busID() (string, status) {
	if !g.has("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo") {
		return "", statusFunctionNotFound
	}
	info, ret := g.device.GetPciInfo()
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device), statusOf(ret)
}

// architectures are the names of GPU architectures by NVML's numbers.
var architectures = map[nvml.DeviceArchitecture]string{
	2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing",
	7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell", 13: "rubin",
}

// architecture is empty for one that is younger than this package.
func (g *gpu) architecture() (string, status) {
	number, result := guarded(g.library, "nvmlDeviceGetArchitecture", g.device.GetArchitecture)
	return architectures[number], result
}

// migDevices is the number of MIG devices that a GPU can have, 0 while it is not in
// MIG mode. A GPU without that mode is unsupported.
func (g *gpu) migDevices() (int, status) {
	if !g.hasAll("nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex") {
		return 0, statusFunctionNotFound
	}
	mode, _, ret := g.device.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return 0, statusOf(ret)
	}
	count, ret := g.device.GetMaxMigDeviceCount()
	return count, statusOf(ret)
}

// migDevice returns the MIG device with an index; there are gaps.
func (g *gpu) migDevice(index int) (*gpu, status) {
	if !g.hasAll("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId") {
		return nil, statusFunctionNotFound
	}
	handle, ret := g.device.GetMigDeviceHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	instance, ret := handle.GetGpuInstanceId()
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	part := g.bind(handle)
	part.parent, part.gpuInstance = g, instance
	return part, statusSuccess
}

// placement returns the question where a GPU instance is.
func (g *gpu) placement(instance int) func() (*device.Placement, status) {
	return func() (*device.Placement, status) {
		if !g.hasAll("nvmlDeviceGetGpuInstanceById", "nvmlGpuInstanceGetInfo") {
			return nil, statusFunctionNotFound
		}
		handle, ret := g.device.GetGpuInstanceById(instance)
		if ret != nvml.SUCCESS {
			return nil, statusOf(ret)
		}
		info, ret := handle.GetInfo()
		if ret != nvml.SUCCESS {
			return nil, statusOf(ret)
		}
		return &device.Placement{Profile: int(info.ProfileId), Start: int(info.Placement.Start), Size: int(info.Placement.Size)}, statusSuccess
	}
}

// computeInstance is that of a MIG device. migDevice has looked the symbol up.
func (g *gpu) computeInstance() (int, status) {
	id, ret := g.device.GetComputeInstanceId()
	return id, statusOf(ret)
}

// persistent reports whether the driver keeps the GPU initialised while no process
// uses it.
func (g *gpu) persistent() (bool, status) {
	mode, result := guarded(g.library, "nvmlDeviceGetPersistenceMode", g.device.GetPersistenceMode)
	return mode == nvml.FEATURE_ENABLED, result
}
