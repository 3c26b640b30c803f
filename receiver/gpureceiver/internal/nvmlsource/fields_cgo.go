//go:build cgo && linux

package nvmlsource

import "github.com/NVIDIA/go-nvml/pkg/nvml"

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
