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

// guarded makes a call if the library has its symbol.
func guarded[T any](b *binding, symbol string, get func() (T, nvml.Return)) (T, status) {
	if !b.has(symbol) {
		var none T
		return none, statusFunctionNotFound
	}
	value, ret := get()
	return value, statusOf(ret)
}

// whole returns a function that reads a whole number in a unit.
func whole[T int | uint32 | uint64](g *boundGPU, symbol string, get func() (T, nvml.Return), unit float64) func() (float64, status) {
	return func() (float64, status) {
		value, result := guarded(g.binding, symbol, get)
		return float64(value) * unit, result
	}
}

// askFields makes the call for all fields. It succeeds as a whole also where a
// field failed.
func (g *boundGPU) askFields(keys []fieldKey) ([]fieldAnswer, status) {
	if !g.has("nvmlDeviceGetFieldValues") {
		return nil, statusFunctionNotFound
	}
	values := make([]nvml.FieldValue, len(keys))
	for i, key := range keys {
		values[i].FieldId, values[i].ScopeId = key.id, key.scope
	}
	if ret := g.device.GetFieldValues(values); ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	answers := make([]fieldAnswer, len(keys))
	for i := range values {
		answers[i] = fieldAnswer{
			key: keys[i], result: statusOf(nvml.Return(values[i].NvmlReturn)),
			kind: valueType(values[i].ValueType), raw: values[i].Value,
		}
	}
	return answers, statusSuccess
}
