package nvmlsource

import (
	"encoding/binary"
	"math"
	"slices"
)

// valueType is NVML's type of an untyped value.
type valueType uint32

// The types of values, with NVML's numbers.
const (
	typeDouble           valueType = 0
	typeUnsignedInt      valueType = 1
	typeUnsignedLong     valueType = 2
	typeUnsignedLongLong valueType = 3
	typeSignedLongLong   valueType = 4
	typeSignedInt        valueType = 5
	typeUnsignedShort    valueType = 6
)

// number decodes a value. It reports false for an unknown type, and for NaN and
// infinity. Long has 64 bits on every platform that this package supports.
func (t valueType) number(raw [8]byte) (float64, bool) {
	order := binary.NativeEndian
	switch t {
	case typeDouble:
		value := math.Float64frombits(order.Uint64(raw[:]))
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	case typeUnsignedInt:
		return float64(order.Uint32(raw[:])), true
	case typeUnsignedLong, typeUnsignedLongLong:
		return float64(order.Uint64(raw[:])), true
	case typeSignedLongLong:
		return float64(int64(order.Uint64(raw[:]))), true
	case typeSignedInt:
		return float64(int32(order.Uint32(raw[:]))), true
	case typeUnsignedShort:
		return float64(order.Uint16(raw[:])), true
	}
	return 0, false
}

// long reports whether the type has 64 bits.
func (t valueType) long() bool {
	return t == typeUnsignedLong || t == typeUnsignedLongLong
}

// The fields with NVML's numbers.
const (
	fieldNVLinkCRCFlit    = 38
	fieldNVLinkCRCData    = 45
	fieldNVLinkReplay     = 52
	fieldNVLinkRecovery   = 59
	fieldThrottlePower    = 74
	fieldThrottleThermal  = 75
	fieldThrottleBoost    = 76
	fieldMemoryTemp       = 82
	fieldNVLinkCount      = 91
	fieldRetiredSingleBit = 29
	fieldRetiredDoubleBit = 30
	fieldPCIeReplays      = 94
	fieldNVLinkDataTX     = 138
	fieldNVLinkDataRX     = 139
	fieldNVLinkECC        = 160
	fieldPowerInstant     = 186
	fieldSlowdownMargin   = 194
	fieldNVLink5TX        = 202
	fieldNVLink5RX        = 204
	fieldRecoveryAction   = 230
	// The numbers of these three depend on the header: in CUDA 12.9 and 13.0
	// they are 251 to 253, and 269 to 271 are settings of power smoothing.
	// Earlier headers have none of them. A counter of nanoseconds has 64 bits
	// and a setting has fewer, which distinguishes them. 251 to 253 are never
	// used, because newer drivers answer them with settings.
	fieldThrottleSWThermal  = 269
	fieldThrottleHWThermal  = 270
	fieldThrottlePowerBrake = 271
)

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
	linkCount    = fieldKey{fieldNVLinkCount, 0}
	allLinksSent = fieldKey{fieldNVLinkDataTX, allLinks}
)

// fieldAnswer is NVML's answer for one field.
type fieldAnswer struct {
	key    fieldKey
	result status
	kind   valueType
	raw    [8]byte
}

// number returns the field's value.
func (a *fieldAnswer) number() (float64, status) {
	if a.result == statusInvalidArgument {
		// Drivers return this for a field that is newer than themselves, and
		// for a scope that the GPU does not have.
		return 0, statusNotSupported
	}
	if a.result != statusSuccess {
		return 0, a.result
	}
	value, ok := a.kind.number(a.raw)
	if !ok {
		return 0, statusUnexpectedType
	}
	return value, statusSuccess
}

// fieldBatch reads all fields of a GPU with one call, and keeps the answers until
// the next one.
type fieldBatch struct {
	// ask makes the call for at least one field.
	ask func(keys []fieldKey) ([]fieldAnswer, status)
	// keys are the fields that are always read.
	keys []fieldKey
	// perLink are the fields of single NVLinks. It is nil unless the GPU
	// reports no sums.
	perLink []fieldKey

	answers  map[fieldKey]fieldAnswer
	result   status
	counters map[fieldKey]linkCounter
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

// long is a field whose number other drivers use for something else, which has
// 32 bits.
func (b *fieldBatch) long(id uint32, unit float64) fieldNumber {
	key := fieldKey{id, 0}
	return fieldNumber{[]fieldKey{key}, func() (float64, status) {
		value, result := b.longNumber(key)
		return value * unit, result
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
	b.result = b.add(append(slices.Clip(b.keys), b.perLink...))
	if b.result != statusSuccess || b.perLink != nil || !slices.Contains(b.keys, allLinksSent) {
		return b.result
	}
	if _, result := b.number(allLinksSent); !result.unsupported() {
		return b.result
	}
	// NVLink 5 reports the bytes of single links only.
	links, result := b.links()
	if result != statusSuccess {
		return b.result
	}
	for link := range links {
		b.perLink = append(b.perLink, fieldKey{fieldNVLink5TX, link}, fieldKey{fieldNVLink5RX, link})
	}
	return b.add(b.perLink)
}

func (b *fieldBatch) add(keys []fieldKey) status {
	if len(keys) == 0 {
		return statusNotSupported
	}
	answers, result := b.ask(keys)
	if result != statusSuccess {
		return result
	}
	if b.answers == nil {
		b.answers = make(map[fieldKey]fieldAnswer, len(keys))
	}
	for _, answer := range answers {
		b.answers[answer.key] = answer
	}
	return statusSuccess
}

// number returns a field's value. If the whole batch failed, which is counted
// once, every field is unsupported.
func (b *fieldBatch) number(key fieldKey) (float64, status) {
	answer, found := b.answers[key]
	if !found {
		return 0, statusNotSupported
	}
	return answer.number()
}

// longNumber is number for a field of 64 bits. One of 32 bits is another
// driver's.
func (b *fieldBatch) longNumber(key fieldKey) (float64, status) {
	value, result := b.number(key)
	if result == statusSuccess && !b.answers[key].kind.long() {
		return 0, statusNotSupported
	}
	return value, result
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
		switch value, answer := b.number(key); {
		case answer == statusSuccess:
			result = statusSuccess
			if value < counter.last {
				counter.before += counter.last
			}
			counter.last = value
			if b.counters == nil {
				b.counters = make(map[fieldKey]linkCounter, len(b.perLink))
			}
			b.counters[key] = counter
		case result != statusSuccess && !answer.unsupported():
			result = answer
		}
		sum += counter.before + counter.last
	}
	return sum, result
}

// linkCounter is the counter of one NVLink.
type linkCounter struct {
	// before is the sum of the counts before each restart.
	before, last float64
}
