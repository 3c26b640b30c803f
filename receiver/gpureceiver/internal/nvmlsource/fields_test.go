package nvmlsource

import (
	"encoding/binary"
	"math"
	"testing"

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
		kind     valueType
		raw      [8]byte
		expected float64
		ok       bool
	}{
		"double":             {typeDouble, raw64(math.Float64bits(1.5)), 1.5, true},
		"no number":          {typeDouble, raw64(math.Float64bits(math.NaN())), 0, false},
		"infinite":           {typeDouble, raw64(math.Float64bits(math.Inf(-1))), 0, false},
		"unsigned int":       {typeUnsignedInt, raw32(math.MaxUint32), math.MaxUint32, true},
		"unsigned long":      {typeUnsignedLong, raw64(1 << 40), 1 << 40, true},
		"unsigned long long": {typeUnsignedLongLong, raw64(1 << 50), 1 << 50, true},
		"signed long long":   {typeSignedLongLong, raw64(math.MaxUint64), -1, true},
		"signed int":         {typeSignedInt, raw32(math.MaxUint32 - 1), -2, true},
		"unsigned short":     {typeUnsignedShort, raw16(7), 7, true},
		"from the future":    {7, raw64(1), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			value, ok := test.kind.number(test.raw)
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
		value, ok := valueType(kind).number(raw64(bits))
		if ok {
			require.False(t, math.IsNaN(value) || math.IsInf(value, 0))
			require.LessOrEqual(t, kind, uint32(typeUnsignedShort))
		}
	})
}

// gpuFields answers fields like a driver.
type gpuFields struct {
	values map[fieldKey]fieldAnswer
	asked  [][]fieldKey
	result status
}

func (f *gpuFields) ask(keys []fieldKey) ([]fieldAnswer, status) {
	f.asked = append(f.asked, keys)
	var answers []fieldAnswer
	for _, key := range keys {
		answer, known := f.values[key]
		if !known {
			answer.result = statusNotSupported
		}
		answer.key = key
		answers = append(answers, answer)
	}
	if f.result != "" {
		return nil, f.result
	}
	return answers, statusSuccess
}

func long(value uint64) fieldAnswer {
	return fieldAnswer{result: statusSuccess, kind: typeUnsignedLongLong, raw: raw64(value)}
}

func short(value uint32) fieldAnswer {
	return fieldAnswer{result: statusSuccess, kind: typeUnsignedInt, raw: raw32(value)}
}

func TestFieldsAreAskedForAtOnce(t *testing.T) {
	fields := &gpuFields{values: map[fieldKey]fieldAnswer{
		{82, 0}:  short(66),
		{94, 0}:  {result: statusSuccess, kind: 99},
		{230, 0}: {result: statusInvalidArgument},
		{74, 0}:  {result: statusGPUIsLost},
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
	_, result := batch.longNumber(fieldKey{269, 0})
	assert.Equal(t, statusNotSupported, result, "another driver's setting is no counter")
	value, result := batch.longNumber(fieldKey{270, 0})
	assert.Equal(t, statusSuccess, result)
	assert.InDelta(t, 5, value, 0)

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
	fields := &gpuFields{values: map[fieldKey]fieldAnswer{
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
		answer   fieldAnswer
		expected status
	}{
		"some":    {short(18), statusSuccess},
		"none":    {short(0), statusNotSupported},
		"garbage": {short(math.MaxUint32), statusNotSupported},
		"unknown": {fieldAnswer{result: statusUnknown}, statusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			batch := &fieldBatch{ask: (&gpuFields{values: map[fieldKey]fieldAnswer{{91, 0}: test.answer}}).ask}
			batch.want(linkCount, allLinksSent)
			batch.fetch()
			_, result := batch.links()
			assert.Equal(t, test.expected, result)
			assert.LessOrEqual(t, len(batch.perLink), 2*maxLinks)
		})
	}
}
