package identity

import (
	"hash/maphash"
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxDepth is the nesting to which values are hashed. Values that differ only
// below it are equal.
const maxDepth = 16

// hasher hashes with a random seed, so that clients cannot craft collisions.
type hasher struct{ seed maphash.Seed }

func (h hasher) text(s string) uint64 { return maphash.String(h.seed, s) }

// value hashes a value of any type. The order of map entries does not matter.
func (h hasher) value(v pcommon.Value) uint64 { return h.nested(v, 0) }

func (h hasher) nested(v pcommon.Value, depth int) uint64 {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return h.text(v.Str())
	case pcommon.ValueTypeInt:
		return h.number(1, uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return h.number(2, math.Float64bits(v.Double()))
	case pcommon.ValueTypeBool:
		if v.Bool() {
			return h.number(3, 1)
		}
		return h.number(3, 0)
	case pcommon.ValueTypeBytes:
		return mix(4, maphash.Bytes(h.seed, v.Bytes().AsRaw())) // differs from that of a text
	}
	sum := uint64(v.Type())
	if depth == maxDepth {
		return sum
	}
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			sum = mix(sum, h.nested(element, depth+1))
		}
	case pcommon.ValueTypeMap:
		for key, element := range v.Map().All() {
			sum += mix(h.text(key), h.nested(element, depth+1))
		}
	}
	return sum
}

func (h hasher) number(kind, n uint64) uint64 {
	return maphash.Comparable(h.seed, [2]uint64{kind, n})
}

// mix combines two hashes; their order matters.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return high ^ low
}
