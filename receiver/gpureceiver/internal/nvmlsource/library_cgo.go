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

	// mu guards what follows, because a call that was left behind may return
	// and look something up while the next goroutine does.
	mu      sync.Mutex
	symbols map[string]bool
	// gpm are the samples that are freed before the library is closed.
	gpm map[*gpmSamples]struct{}
	// histories are kept while the library is closed, so that busy times go
	// on when it is opened again.
	histories map[historyKey]*sampleHistory
	// impossible counts samples that cannot be true.
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

// history returns what was read of a buffer before.
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

// loaders are those of this process, by path. Receivers of one process share
// them: loading writes variables that go-nvml has once for all, such as the one
// that waiting for events reads, and a loader that is in use does not load
// again. Opening and closing are counted.
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

// Open loads the library only if it has the symbols without which go-nvml
// cannot even begin, because a call of a symbol that is not there ends the
// process. It looks in a local scope, so that a file that is no NVML library
// leaves nothing behind.
func (b *binding) Open() status {
	probe := dl.New(b.path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if probe.Open() != nil {
		return statusLibraryNotFound
	}
	// The reference is given back; what it loaded stays anyway.
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

// Close shuts NVML down. go-nvml unloads the library, but the process keeps it.
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

// has reports whether the library has a symbol. No symbol is called that it
// does not have.
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
	if !b.has("nvmlSystemGetDriverVersion") {
		return "", statusFunctionNotFound
	}
	version, ret := b.nvml.SystemGetDriverVersion()
	return version, statusOf(ret)
}

// CUDAVersion implements library.
func (b *binding) CUDAVersion() (string, status) {
	if !b.has("nvmlSystemGetCudaDriverVersion_v2") {
		return "", statusFunctionNotFound
	}
	version, ret := b.nvml.SystemGetCudaDriverVersion_v2()
	return cudaVersion(version), statusOf(ret)
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

// statusOf names a return code without asking the library for its text,
// because the function for that may be missing too.
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
