// Package otlpnest encodes deeply nested OTLP for tests. Nothing in it
// recurses, so it can encode what no OTLP decoder can read.
package otlpnest

import (
	"encoding/binary"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Field numbers of OTLP's messages.
const (
	anyArray, anyMap    = 5, 6
	keyName, keyValue   = 1, 2
	inRequest, inGroup  = 1, 2 // resource_spans of a request; scope_spans, spans
	ofResource          = 1
	logBody, logDetails = 5, 6
	spanDetails         = 9
)

// Arrays returns the encoding of an AnyValue of that many nested arrays, the
// innermost one empty.
func Arrays(levels int) []byte {
	return nest(levels, func(e *encoder) {
		e.enclose(1)
		e.enclose(anyArray)
	})
}

// Maps returns the encoding of an AnyValue of that many nested maps with one
// entry "k" each, the innermost one empty.
func Maps(levels int) []byte {
	return nest(levels, func(e *encoder) {
		e.enclose(keyValue)
		e.prepend(Field(keyName, []byte("k")))
		e.enclose(1)
		e.enclose(anyMap)
	})
}

// Value nests v in place: that many alternating arrays and maps, with "x" in
// the innermost.
func Value(v pcommon.Value, levels int) {
	for level := range levels {
		if level%2 == 0 {
			v = v.SetEmptySlice().AppendEmpty()
		} else {
			v = v.SetEmptyMap().PutEmpty("k")
		}
	}
	v.SetStr("x")
}

// Attributes nests every value of m in place, unless levels is 0.
func Attributes(m pcommon.Map, levels int) {
	if levels == 0 {
		return
	}
	for _, v := range m.All() {
		Value(v, levels)
	}
}

// JSON returns an AnyValue of nested arrays as OTLP/JSON.
func JSON(levels int) string {
	return strings.Repeat(`{"arrayValue":{"values":[`, levels) + strings.Repeat(`]}}`, levels)
}

// Attribute returns the encoding of an attribute.
func Attribute(key string, value []byte) []byte {
	return append(Field(keyName, []byte(key)), Field(keyValue, value)...)
}

// Logs returns the encoding of a request with one log record. attributes are
// encodings by Attribute, body is an AnyValue.
func Logs(resource, record [][]byte, body []byte) []byte {
	return request(resource, append(Field(logBody, body), fields(logDetails, record)...))
}

// Traces returns the encoding of a request with one span.
func Traces(resource, span [][]byte) []byte {
	ids := append(Field(1, slices.Repeat([]byte{1}, 16)), Field(2, slices.Repeat([]byte{2}, 8))...)
	return request(resource, append(ids, fields(spanDetails, span)...))
}

func request(resource [][]byte, item []byte) []byte {
	group := append(Field(ofResource, fields(1, resource)), Field(inGroup, Field(inGroup, item))...)
	return Field(inRequest, group)
}

func fields(number int, contents [][]byte) (out []byte) {
	for _, content := range contents {
		out = append(out, Field(number, content)...)
	}
	return out
}

// Field returns the encoding of a length-delimited field, whose number must be
// less than 16.
func Field(number int, content []byte) []byte {
	out := binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(content)))
	return append(out, content...)
}

// encoder writes from the last byte to the first, so the length of what a level
// encloses is known when its prefix is written.
type encoder struct {
	buffer []byte
	start  int
}

func nest(levels int, enclose func(*encoder)) []byte {
	const mostPerLevel = 24
	size := (levels + 1) * mostPerLevel
	e := &encoder{buffer: make([]byte, size), start: size}
	for range levels {
		enclose(e)
	}
	return e.buffer[e.start:]
}

func (e *encoder) prepend(b []byte) {
	e.start -= len(b)
	copy(e.buffer[e.start:], b)
}

// enclose puts everything written so far into a field.
func (e *encoder) enclose(number int) {
	var prefix [1 + binary.MaxVarintLen64]byte
	prefix[0] = byte(number<<3 | 2)
	n := binary.PutUvarint(prefix[1:], uint64(len(e.buffer)-e.start))
	e.prepend(prefix[:1+n])
}
