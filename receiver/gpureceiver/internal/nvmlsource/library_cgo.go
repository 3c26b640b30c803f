//go:build cgo && linux

package nvmlsource

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// buildSupported reports that this build can call NVML.
const buildSupported = true

// binding is NVML through go-nvml.
type binding struct {
	path string
	now  func() time.Time
	nvml nvml.Interface

	// mu guards the following fields, because an abandoned call can return and
	// use them while the next goroutine does.
	mu      sync.Mutex
	symbols map[string]bool
	// gpm are the samples to free before the library is closed.
	gpm map[*gpmSamples]struct{}
	// histories are kept while the library is closed, so that busy times
	// continue when it is opened again.
	histories map[historyKey]*sampleHistory
	// impossible counts impossible samples.
	impossible atomic.Int64
}

// ImpossibleSamples implements samplingLibrary.
func (b *binding) ImpossibleSamples() int64 {
	return b.impossible.Swap(0)
}

// historyKey is a GPU and one of its buffers.
type historyKey struct {
	id   string
	kind nvml.SamplingType
}

// maxHistories bounds the buffers that are remembered.
const maxHistories = 16 * maxGPUs

// history returns the history of a buffer.
func (b *binding) history(id string, kind nvml.SamplingType) *sampleHistory {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := historyKey{id, kind}
	if known := b.histories[key]; known != nil {
		return known
	}
	if len(b.histories) >= maxHistories {
		clear(b.histories)
	}
	b.histories[key] = &sampleHistory{}
	return b.histories[key]
}

// loaders are the loaders of this process by path, which its receivers share:
// loading writes global variables of go-nvml, such as one that the wait for
// events reads, and a loader in use does not load again. go-nvml counts openings
// and closings.
var (
	loadersMu sync.Mutex
	loaders   = make(map[string]nvml.Interface)
)

func loaderOf(path string) nvml.Interface {
	loadersMu.Lock()
	defer loadersMu.Unlock()
	if loaders[path] == nil {
		loaders[path] = nvml.New(nvml.WithLibraryPath(path))
	}
	return loaders[path]
}

func newLibrary(path string, now func() time.Time) library {
	return &binding{
		path: path, now: now, nvml: loaderOf(path),
		symbols: make(map[string]bool), gpm: make(map[*gpmSamples]struct{}),
		histories: make(map[historyKey]*sampleHistory),
	}
}

// Open loads the library only if it has the symbols that go-nvml needs to start,
// because calling a missing symbol ends the process. It probes in a local scope,
// so that a file that is no NVML library has no effect.
func (b *binding) Open() status {
	probe := dl.New(b.path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
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
	b.mu.Lock()
	clear(b.symbols)
	b.mu.Unlock()
	return statusOf(b.nvml.Init())
}

// Close shuts NVML down. The process keeps the library, although go-nvml unloads
// it.
func (b *binding) Close() status {
	b.mu.Lock()
	samples := slices.Collect(maps.Keys(b.gpm))
	clear(b.gpm)
	b.mu.Unlock()
	for _, s := range samples {
		s.release()
	}
	return statusOf(b.nvml.Shutdown())
}

// has reports whether the library has a symbol. It must be asked before each
// call, because calling a missing symbol ends the process.
func (b *binding) has(symbol string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, known := b.symbols[symbol]
	if !known {
		found = b.nvml.Extensions().LookupSymbol(symbol) == nil
		b.symbols[symbol] = found
	}
	return found
}

// DriverVersion implements library.
func (b *binding) DriverVersion() (string, status) {
	return guarded(b, "nvmlSystemGetDriverVersion", b.nvml.SystemGetDriverVersion)
}

// CUDAVersion implements library.
func (b *binding) CUDAVersion() (string, status) {
	version, result := guarded(b, "nvmlSystemGetCudaDriverVersion_v2", b.nvml.SystemGetCudaDriverVersion_v2)
	return cudaVersion(version), result
}

// DeviceCount implements library. Its symbol was looked up by Open.
func (b *binding) DeviceCount() (int, status) {
	count, ret := b.nvml.DeviceGetCount()
	return count, statusOf(ret)
}

// Device implements library. Its symbol was looked up by Open.
func (b *binding) Device(index int) (gpu, status) {
	device, ret := b.nvml.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	return b.bind(device), statusSuccess
}

// statusOf names a return code. It does not use the library's function for that,
// which can be missing too.
func statusOf(ret nvml.Return) status {
	if name, known := statuses[ret]; known {
		return name
	}
	return status(fmt.Sprintf("CODE_%d", int32(ret)))
}

var statuses = map[nvml.Return]status{
	nvml.SUCCESS:                         statusSuccess,
	nvml.ERROR_UNINITIALIZED:             statusUninitialized,
	nvml.ERROR_INVALID_ARGUMENT:          statusInvalidArgument,
	nvml.ERROR_NOT_SUPPORTED:             statusNotSupported,
	nvml.ERROR_NO_PERMISSION:             statusNoPermission,
	nvml.ERROR_ALREADY_INITIALIZED:       "ALREADY_INITIALIZED",
	nvml.ERROR_NOT_FOUND:                 statusNotFound,
	nvml.ERROR_INSUFFICIENT_SIZE:         "INSUFFICIENT_SIZE",
	nvml.ERROR_INSUFFICIENT_POWER:        "INSUFFICIENT_POWER",
	nvml.ERROR_DRIVER_NOT_LOADED:         statusDriverNotLoaded,
	nvml.ERROR_TIMEOUT:                   "TIMEOUT",
	nvml.ERROR_IRQ_ISSUE:                 "IRQ_ISSUE",
	nvml.ERROR_LIBRARY_NOT_FOUND:         statusLibraryNotFound,
	nvml.ERROR_FUNCTION_NOT_FOUND:        statusFunctionNotFound,
	nvml.ERROR_CORRUPTED_INFOROM:         "CORRUPTED_INFOROM",
	nvml.ERROR_GPU_IS_LOST:               statusGPUIsLost,
	nvml.ERROR_RESET_REQUIRED:            "RESET_REQUIRED",
	nvml.ERROR_OPERATING_SYSTEM:          "OPERATING_SYSTEM",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   statusLibRMVersionMismatch,
	nvml.ERROR_IN_USE:                    "IN_USE",
	nvml.ERROR_MEMORY:                    "MEMORY",
	nvml.ERROR_NO_DATA:                   "NO_DATA",
	nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:    "VGPU_ECC_NOT_SUPPORTED",
	nvml.ERROR_INSUFFICIENT_RESOURCES:    "INSUFFICIENT_RESOURCES",
	nvml.ERROR_FREQ_NOT_SUPPORTED:        "FREQ_NOT_SUPPORTED",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ARGUMENT_VERSION_MISMATCH",
	nvml.ERROR_DEPRECATED:                "DEPRECATED",
	nvml.ERROR_NOT_READY:                 "NOT_READY",
	nvml.ERROR_GPU_NOT_FOUND:             "GPU_NOT_FOUND",
	nvml.ERROR_INVALID_STATE:             "INVALID_STATE",
	nvml.ERROR_UNKNOWN:                   statusUnknown,
}
