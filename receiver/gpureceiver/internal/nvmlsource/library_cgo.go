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
	// histories are kept while the library is closed, so that busy times
	// continue when it is opened again.
	histories map[historyKey]*sampleHistory
	// impossible counts impossible samples.
	impossible atomic.Int64
}

// historyKey is a GPU and one of its buffers.
type historyKey struct {
	id   string
	kind nvml.SamplingType
}

// maxHistories bounds the buffers that are remembered.
const maxHistories = 16 * maxGPUs

// history returns the history of a buffer.
func (l *library) history(id string, kind nvml.SamplingType) *sampleHistory {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := historyKey{id, kind}
	if known := l.histories[key]; known != nil {
		return known
	}
	if len(l.histories) >= maxHistories {
		clear(l.histories)
	}
	l.histories[key] = &sampleHistory{}
	return l.histories[key]
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

func newLibrary(path string, now func() time.Time) *library {
	return &library{
		path: path, now: now, nvml: loaderOf(path),
		symbols: make(map[string]bool), gpm: make(map[*gpmSamples]struct{}),
		histories: make(map[historyKey]*sampleHistory),
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
		s.release()
	}
	return statusOf(l.nvml.Shutdown())
}

// has reports whether the library has one of several symbols. It must be asked before
// each call, because calling a missing symbol ends the process.
func (l *library) has(symbols ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, symbol := range symbols {
		found, known := l.symbols[symbol]
		if !known {
			found = l.nvml.Extensions().LookupSymbol(symbol) == nil
			l.symbols[symbol] = found
		}
		if found {
			return true
		}
	}
	return false
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
