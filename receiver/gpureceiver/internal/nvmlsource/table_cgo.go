//go:build cgo && linux

package nvmlsource

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// milli is the scale of NVML's milliwatts and millijoules.
	milli = 1e-3
	nano  = 1e-9
	mega  = 1e6
)

// Calls implements gpu. The quick calls that matter most come first, GPM last.
func (g *boundGPU) Calls(id string, wants func(*device.Quantity) bool) []call {
	if g.parent != nil {
		return g.migCalls(wants)
	}
	fields := &fieldBatch{ask: g.askFields}
	var calls, parts []call
	for _, group := range [][]call{
		g.activityCalls(id), g.memoryCalls(), g.powerCalls(id, fields), g.thermalCalls(fields), g.clockCalls(fields),
		g.errorCalls(fields), g.linkCalls(fields),
	} {
		for _, c := range group {
			switch {
			case !c.wanted(wants):
			case c.fields == nil:
				calls = append(calls, c)
			default:
				fields.want(c.fields...)
				parts = append(parts, c)
			}
		}
	}
	if len(parts) > 0 {
		calls = append(calls, call{name: "fields", read: func() (func(*device.Readings), status) {
			return func(*device.Readings) {}, fields.fetch()
		}})
	}
	calls = append(calls, parts...)
	if gpm := g.gpmCall(); gpm.wanted(wants) {
		calls = append(calls, gpm)
	}
	return calls
}

// migCalls are the calls about a GPU instance, and one that every MIG device
// answers.
func (g *boundGPU) migCalls(wants func(*device.Quantity) bool) []call {
	answered := call{name: "compute_instance", read: func() (func(*device.Readings), status) {
		_, _, result := g.Instances()
		return func(*device.Readings) {}, result
	}}
	return slices.DeleteFunc([]call{answered, g.memoryCall(), g.gpmCall()}, func(c call) bool {
		return len(c.yields) > 0 && !c.wanted(wants)
	})
}

// whole32 reads a 32-bit number in a unit.
func (g *boundGPU) whole32(symbol string, get func() (uint32, nvml.Return), unit float64) func() (float64, status) {
	return func() (float64, status) {
		if !g.has(symbol) {
			return 0, statusFunctionNotFound
		}
		value, ret := get()
		return float64(value) * unit, statusOf(ret)
	}
}

// wholeInt is whole32 for the binding's ints.
func (g *boundGPU) wholeInt(symbol string, get func() (int, nvml.Return)) func() (float64, status) {
	return func() (float64, status) {
		if !g.has(symbol) {
			return 0, statusFunctionNotFound
		}
		value, ret := get()
		return float64(value), statusOf(ret)
	}
}
