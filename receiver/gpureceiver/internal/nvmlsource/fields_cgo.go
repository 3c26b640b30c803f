//go:build cgo && linux

package nvmlsource

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// decode returns an untyped value of NVML. It reports false for an unknown type, and
// for NaN and infinity. Long has 64 bits on every platform that this package supports.
func decode(kind nvml.ValueType, raw [8]byte) (float64, bool) {
	order := binary.NativeEndian
	switch kind {
	case nvml.VALUE_TYPE_DOUBLE:
		value := math.Float64frombits(order.Uint64(raw[:]))
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(order.Uint32(raw[:])), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(order.Uint64(raw[:])), true
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(order.Uint64(raw[:]))), true
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(order.Uint32(raw[:]))), true
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(order.Uint16(raw[:])), true
	}
	return 0, false
}

const (
	// allLinks is the scope of a sum over all NVLinks.
	allLinks = math.MaxUint32
	// maxLinks bounds the NVLinks of a GPU: NVML knows 36.
	maxLinks = 36
	// moduleScope is the scope of the power of GPU and CPU together.
	moduleScope = 1
)

// fieldKey is a field and its scope.
type fieldKey struct {
	id, scope uint32
}

// linkCount is the number of NVLinks, and allLinksSent the bytes that left over
// all of them.
var (
	linkCount    = fieldKey{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}
	allLinksSent = fieldKey{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks}
)

// fieldBatch reads all fields of a GPU with one call, and keeps the answers until
// the next one.
type fieldBatch struct {
	// ask makes the call for at least one field. It succeeds as a whole also where a
	// field failed.
	ask func([]nvml.FieldValue) status
	// keys are the fields that are always read.
	keys []fieldKey
	// perLink are the fields of single NVLinks. It is nil unless the GPU
	// reports no sums.
	perLink []fieldKey

	answers  map[fieldKey]nvml.FieldValue
	counters map[fieldKey]device.Monotonic
}

// want adds fields.
func (b *fieldBatch) want(keys ...fieldKey) {
	for _, key := range keys {
		if !slices.Contains(b.keys, key) {
			b.keys = append(b.keys, key)
		}
	}
}

// fieldNumber is a number that is made of the answers of a batch.
type fieldNumber struct {
	// keys are the fields that the batch has to read.
	keys []fieldKey
	read func() (float64, status)
}

// field is one field, in a unit.
func (b *fieldBatch) field(id, scope uint32, unit float64) fieldNumber {
	key := fieldKey{id, scope}
	return fieldNumber{[]fieldKey{key}, func() (float64, status) {
		value, result := b.number(key)
		return value * unit, result
	}}
}

// long is a field of nanoseconds whose number depends on the driver's header: in CUDA
// 12.9 and 13.0 those of throttling are 251 to 253, and 269 to 271 are settings of power
// smoothing. Earlier headers have none of them. A counter of nanoseconds has 64 bits
// and a setting has fewer, which distinguishes them. 251 to 253 are never used, because
// newer drivers answer them with settings.
func (b *fieldBatch) long(id uint32) fieldNumber {
	number := b.field(id, 0, nano)
	return fieldNumber{number.keys, func() (float64, status) {
		value, result := number.read()
		kind := nvml.ValueType(b.answers[number.keys[0]].ValueType)
		if result == statusSuccess && kind != nvml.VALUE_TYPE_UNSIGNED_LONG && kind != nvml.VALUE_TYPE_UNSIGNED_LONG_LONG {
			return 0, statusNotSupported // it is another driver's
		}
		return value, result
	}}
}

// sum is the sum of a field over the NVLinks.
func (b *fieldBatch) sum(id uint32) fieldNumber {
	return fieldNumber{[]fieldKey{linkCount}, func() (float64, status) { return b.linkSum(id) }}
}

// sensor leaves out 0 °C, which GPUs without the sensor answer.
func sensor(number fieldNumber) fieldNumber {
	return fieldNumber{number.keys, func() (float64, status) {
		value, result := number.read()
		if result == statusSuccess && value == 0 {
			return 0, statusNotSupported
		}
		return value, result
	}}
}

// either is the second number where the first is not supported.
func either(first, second fieldNumber) fieldNumber {
	return fieldNumber{slices.Concat(first.keys, second.keys), func() (float64, status) {
		if value, result := first.read(); !result.unsupported() {
			return value, result
		}
		return second.read()
	}}
}

// fetch reads all fields.
func (b *fieldBatch) fetch() status {
	clear(b.answers)
	result := b.add(append(slices.Clip(b.keys), b.perLink...))
	if result != statusSuccess || b.perLink != nil || !slices.Contains(b.keys, allLinksSent) {
		return result
	}
	links, counted := b.links()
	if _, sums := b.number(allLinksSent); !sums.unsupported() || counted != statusSuccess {
		return result
	}
	// NVLink 5 reports the bytes of single links only.
	for link := range links {
		b.perLink = append(b.perLink, fieldKey{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}, fieldKey{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, link})
	}
	return b.add(b.perLink)
}

func (b *fieldBatch) add(keys []fieldKey) status {
	if len(keys) == 0 {
		return statusNotSupported
	}
	answers := make([]nvml.FieldValue, len(keys))
	for i, key := range keys {
		answers[i].FieldId, answers[i].ScopeId = key.id, key.scope
	}
	if result := b.ask(answers); result != statusSuccess {
		return result
	}
	for i, key := range keys {
		mlattr.Put(&b.answers, key, answers[i])
	}
	return statusSuccess
}

// askFields makes the call for fields.
func (g *gpu) askFields(answers []nvml.FieldValue) status {
	if !g.has("nvmlDeviceGetFieldValues") {
		return statusFunctionNotFound
	}
	return statusOf(g.device.GetFieldValues(answers))
}

// number returns a field's value. If the whole batch failed, which is counted
// once, every field is unsupported.
func (b *fieldBatch) number(key fieldKey) (float64, status) {
	answer, found := b.answers[key]
	result := statusOf(nvml.Return(answer.NvmlReturn))
	switch {
	case !found, result == statusInvalidArgument:
		// Drivers return this for a field that is newer than themselves, and
		// for a scope that the GPU does not have.
		return 0, statusNotSupported
	case result != statusSuccess:
		return 0, result
	}
	value, ok := decode(nvml.ValueType(answer.ValueType), answer.Value)
	if !ok {
		return 0, statusUnexpectedType
	}
	return value, statusSuccess
}

// links is the number of NVLinks that the GPU has.
func (b *fieldBatch) links() (uint32, status) {
	value, result := b.number(linkCount)
	if result == statusSuccess && (value < 1 || value > maxLinks) {
		return 0, statusNotSupported
	}
	return uint32(value), result
}

// linkSum is the sum of a counter over the NVLinks. It never falls: a link that
// is down keeps its last value, and a counter that restarts continues from its
// last value.
func (b *fieldBatch) linkSum(id uint32) (float64, status) {
	var sum float64
	result := statusNotSupported
	for _, key := range b.perLink {
		if key.id != id {
			continue
		}
		counter := b.counters[key]
		value, answer := b.number(key)
		if answer == statusSuccess {
			counter.Add(value)
			mlattr.Put(&b.counters, key, counter)
			result = statusSuccess
		} else if result != statusSuccess && !answer.unsupported() {
			result = answer
		}
		sum += counter.Total()
	}
	return sum, result
}
