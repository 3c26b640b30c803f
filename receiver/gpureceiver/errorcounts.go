package gpureceiver

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// maxErrorSeries bounds the error series of one GPU, and those of all NVSwitches. A GPU
// has fewer than 200 codes, so that only one with MIG devices can reach it.
const maxErrorSeries = 256

// otherErrors is the code of the series that counts the errors beyond
// maxErrorSeries.
const otherErrors = -1

// errorCounts counts errors when they arrive, so that none is lost between two
// readings or before a GPU's first reading.
type errorCounts struct {
	// dropped is called for each error that has no series of its own.
	dropped func()

	mu sync.Mutex
	// gpus are the errors by the GPU's ID, and those of all NVSwitches under ofSwitches.
	gpus map[string]gpuErrors
}

// ofSwitches stands for all NVSwitches in the place of a GPU's ID.
const ofSwitches = ""

type gpuErrors struct {
	counts map[errorSeries]int64
	// last is the time of the last error of each code and effect. It has no more
	// codes than counts.
	last map[health.Error]time.Time
}

// errorSeries identifies a series of the errors of a GPU, or of an NVSwitch, which has
// an address.
type errorSeries struct {
	code                         int64
	gpuInstance, computeInstance workload.Number
	address                      string
	fatal                        bool
}

func newErrorCounts(dropped func()) *errorCounts {
	return &errorCounts{dropped: dropped, gpus: make(map[string]gpuErrors)}
}

// add counts an event.
func (c *errorCounts) add(event device.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, series := event.GPU.ID, errorSeries{code: codeValue(event.Code)}
	if of := event.Switch; of != nil {
		id, series.address, series.fatal = ofSwitches, of.PCIBusID, of.Fatal
	} else if series.gpuInstance = event.GPUInstance; series.gpuInstance.Known {
		// A compute instance is a number within a GPU instance.
		series.computeInstance = event.ComputeInstance
	}
	gpu, ok := c.gpu(id)
	if !ok {
		c.dropped()
		return
	}
	if _, found := gpu.counts[series]; !found && len(gpu.counts) >= maxErrorSeries {
		c.dropped()
		if event.Switch == nil {
			gpu.counts[errorSeries{code: otherErrors}]++
		}
		return
	}
	gpu.counts[series]++
	if event.Switch != nil {
		return
	}
	meaning, _ := xid.Explain(event.Code, event.Text)
	if event.Code == xid.RecoveryChanged {
		// What the driver asks for now replaces what it asked for before.
		maps.DeleteFunc(gpu.last, func(of health.Error, _ time.Time) bool { return of.Code == event.Code })
	}
	gpu.last[health.Error{Code: uint64(series.code), Effect: meaning.Effect}] = event.Time // #nosec G115 -- the code of an event is never negative
}

// gpu returns a GPU's counts, or false if there are too many GPUs.
func (c *errorCounts) gpu(id string) (found gpuErrors, ok bool) {
	if found, ok = c.gpus[id]; !ok && len(c.gpus) < maxTracked {
		found, ok = gpuErrors{counts: make(map[errorSeries]int64), last: make(map[health.Error]time.Time)}, true
		c.gpus[id] = found
	}
	return found, ok
}

// seed gives a GPU a series at 0 for each common code, so that its first error
// is an increase.
func (c *errorCounts) seed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gpu, ok := c.gpu(id); ok {
		for _, code := range xid.Common {
			gpu.counts[errorSeries{code: codeValue(code)}] += 0
		}
	}
}

// of returns the counts of a GPU.
func (c *errorCounts) of(id string) map[errorSeries]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.gpus[id].counts)
}

// since returns a GPU's errors after a time.
func (c *errorCounts) since(id string, after time.Time) []health.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.gpus[id].last
	return mlattr.Where(maps.Keys(last), func(of health.Error) bool { return last[of].After(after) })
}

// forgetTimes forgets when a GPU's errors occurred, so that they no longer count
// for its health. The counts stay.
func (c *errorCounts) forgetTimes(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.gpus[id].last)
}

// codeValue is the attribute value of a code. Real codes are small.
func codeValue(code uint64) int64 { return int64(min(code, math.MaxInt64)) }
