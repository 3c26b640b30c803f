//go:build cgo && linux

package nvmlsource

import (
	"cmp"
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func raw64(value uint64) (raw [8]byte) {
	binary.NativeEndian.PutUint64(raw[:], value)
	return raw
}

func raw32(value uint32) (raw [8]byte) {
	binary.NativeEndian.PutUint32(raw[:], value)
	// What is behind a smaller value is not defined.
	binary.NativeEndian.PutUint32(raw[4:], 0xdeadbeef)
	return raw
}

func raw16(value uint16) (raw [8]byte) {
	binary.NativeEndian.PutUint64(raw[:], 0xdeadbeefdeadbeef)
	binary.NativeEndian.PutUint16(raw[:], value)
	return raw
}

func TestValueTypes(t *testing.T) {
	for name, test := range map[string]struct {
		kind     nvml.ValueType
		raw      [8]byte
		expected float64
		ok       bool
	}{
		"double":             {nvml.VALUE_TYPE_DOUBLE, raw64(math.Float64bits(1.5)), 1.5, true},
		"no number":          {nvml.VALUE_TYPE_DOUBLE, raw64(math.Float64bits(math.NaN())), 0, false},
		"infinite":           {nvml.VALUE_TYPE_DOUBLE, raw64(math.Float64bits(math.Inf(-1))), 0, false},
		"unsigned int":       {nvml.VALUE_TYPE_UNSIGNED_INT, raw32(math.MaxUint32), math.MaxUint32, true},
		"unsigned long":      {nvml.VALUE_TYPE_UNSIGNED_LONG, raw64(1 << 40), 1 << 40, true},
		"unsigned long long": {nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, raw64(1 << 50), 1 << 50, true},
		"signed long long":   {nvml.VALUE_TYPE_SIGNED_LONG_LONG, raw64(math.MaxUint64), -1, true},
		"signed int":         {nvml.VALUE_TYPE_SIGNED_INT, raw32(math.MaxUint32 - 1), -2, true},
		"unsigned short":     {nvml.VALUE_TYPE_UNSIGNED_SHORT, raw16(7), 7, true},
		"from the future":    {7, raw64(1), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			value, ok := decode(test.kind, test.raw)
			assert.Equal(t, test.ok, ok)
			if ok {
				assert.InDelta(t, test.expected, value, 0)
			}
		})
	}
}

// FuzzValueType decodes whatever a driver can write.
func FuzzValueType(f *testing.F) {
	f.Add(uint32(0), uint64(1))
	f.Add(uint32(6), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, kind uint32, bits uint64) {
		value, ok := decode(nvml.ValueType(kind), raw64(bits))
		if ok {
			require.False(t, math.IsNaN(value) || math.IsInf(value, 0))
			require.LessOrEqual(t, kind, uint32(nvml.VALUE_TYPE_UNSIGNED_SHORT))
		}
	})
}

// gpuFields answers fields like a driver.
type gpuFields struct {
	values map[fieldKey]nvml.FieldValue
	asked  [][]nvml.FieldValue
	result status
}

func (f *gpuFields) ask(answers []nvml.FieldValue) status {
	f.asked = append(f.asked, answers)
	for i := range answers {
		key := fieldKey{answers[i].FieldId, answers[i].ScopeId}
		answer, known := f.values[key]
		if !known {
			answer.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
		}
		answer.FieldId, answer.ScopeId = key.id, key.scope
		answers[i] = answer
	}
	return cmp.Or(f.result, statusSuccess)
}

func long(value uint64) nvml.FieldValue {
	return nvml.FieldValue{ValueType: uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), Value: raw64(value)}
}

func short(value uint32) nvml.FieldValue {
	return nvml.FieldValue{ValueType: uint32(nvml.VALUE_TYPE_UNSIGNED_INT), Value: raw32(value)}
}

func failing(ret nvml.Return) nvml.FieldValue {
	return nvml.FieldValue{NvmlReturn: uint32(ret)}
}

func TestFieldsAreAskedForAtOnce(t *testing.T) {
	fields := &gpuFields{values: map[fieldKey]nvml.FieldValue{
		{82, 0}:  short(66),
		{94, 0}:  {ValueType: 99},
		{230, 0}: failing(nvml.ERROR_INVALID_ARGUMENT),
		{74, 0}:  failing(nvml.ERROR_GPU_IS_LOST),
		{269, 0}: short(1),
		{270, 0}: long(5),
	}}
	batch := &fieldBatch{ask: fields.ask}
	expected := map[fieldKey]status{
		{82, 0}: statusSuccess, {94, 0}: statusUnexpectedType, {230, 0}: statusNotSupported,
		{74, 0}: statusGPUIsLost, {38, 0}: statusNotSupported,
	}
	for key := range expected {
		batch.want(key, key)
	}
	batch.want(fieldKey{269, 0}, fieldKey{270, 0})
	require.Equal(t, statusSuccess, batch.fetch())
	require.Len(t, fields.asked, 1)
	assert.Len(t, fields.asked[0], 7, "each once")
	for key, status := range expected {
		_, result := batch.number(key)
		assert.Equal(t, status, result, key)
	}
	_, result := batch.long(269).read()
	assert.Equal(t, statusNotSupported, result, "another driver's setting is no counter")
	value, result := batch.long(270).read()
	assert.Equal(t, statusSuccess, result)
	assert.InDelta(t, 5*nano, value, 0)

	// What was told before is no answer to a call that failed.
	fields.result = statusUnknown
	require.Equal(t, statusUnknown, batch.fetch())
	_, result = batch.number(fieldKey{82, 0})
	assert.Equal(t, statusNotSupported, result)
}

func TestNothingWantedIsNotAsked(t *testing.T) {
	fields := &gpuFields{}
	batch := &fieldBatch{ask: fields.ask}
	assert.Equal(t, statusNotSupported, batch.fetch())
	assert.Empty(t, fields.asked)
}

// NVLink 5 has no sums over the links. Their sum does not fall when a link
// goes down or begins again.
func TestBytesOfSingleLinks(t *testing.T) {
	fields := &gpuFields{values: map[fieldKey]nvml.FieldValue{
		{91, 0}:  short(2),
		{202, 0}: long(1000), {202, 1}: long(500),
		{204, 0}: long(10), {204, 1}: long(20),
	}}
	batch := &fieldBatch{ask: fields.ask}
	batch.want(linkCount, allLinksSent)
	sum := func(id uint32) float64 {
		value, result := batch.linkSum(id)
		require.Equal(t, statusSuccess, result)
		return value
	}
	require.Equal(t, statusSuccess, batch.fetch())
	assert.InDelta(t, 1500, sum(202), 0)
	assert.InDelta(t, 30, sum(204), 0)
	require.Len(t, fields.asked, 2, "once to learn that there are no sums")

	fields.values[fieldKey{202, 0}] = long(7)
	delete(fields.values, fieldKey{202, 1})
	require.Equal(t, statusSuccess, batch.fetch())
	assert.InDelta(t, 1507, sum(202), 0)
	assert.Len(t, fields.asked, 3)

	clear(fields.values)
	require.Equal(t, statusSuccess, batch.fetch())
	_, result := batch.linkSum(202)
	assert.Equal(t, statusNotSupported, result, "no link tells anything")
}

func TestNumbersOfLinks(t *testing.T) {
	for name, test := range map[string]struct {
		answer   nvml.FieldValue
		expected status
	}{
		"some":    {short(18), statusSuccess},
		"none":    {short(0), statusNotSupported},
		"garbage": {short(math.MaxUint32), statusNotSupported},
		"unknown": {failing(nvml.ERROR_UNKNOWN), statusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			batch := &fieldBatch{ask: (&gpuFields{values: map[fieldKey]nvml.FieldValue{{91, 0}: test.answer}}).ask}
			batch.want(linkCount, allLinksSent)
			batch.fetch()
			_, result := batch.links()
			assert.Equal(t, test.expected, result)
			assert.LessOrEqual(t, len(batch.perLink), 2*maxLinks)
		})
	}
}
