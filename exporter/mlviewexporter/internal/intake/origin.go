package intake

import (
	"hash/maphash"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// hash computes the Origin of points: a hash of all that their labels are read from,
// with a seed of this process. The probability that any two of 100,000 streams have the
// same one is below 1 in 100 million.
type hash struct {
	seed   maphash.Seed
	secret uint64
}

func newHash() hash {
	seed := maphash.MakeSeed()
	return hash{seed, maphash.String(seed, "") | 1}
}

// number returns the hash of what h has, and of a number.
func (h *hash) number(of, n uint64) uint64 {
	high, low := bits.Mul64(of^n, h.secret)
	return high ^ low
}

// text returns the hash of a text.
func (h *hash) text(of string) uint64 { return maphash.String(h.seed, of) }

// attributes returns the hash of what h has, and of attributes. Values that are no
// labels are told apart by their types alone.
func (h *hash) attributes(of uint64, attrs pcommon.Map) uint64 {
	for key, v := range attrs.All() {
		of = h.number(of, maphash.String(h.seed, key))
		switch kind := v.Type(); kind {
		case pcommon.ValueTypeStr:
			of = h.number(of, maphash.String(h.seed, v.Str()))
		case pcommon.ValueTypeInt:
			of = h.number(bits.RotateLeft64(of, int(kind)), uint64(v.Int()))
		case pcommon.ValueTypeBool:
			of = h.number(bits.RotateLeft64(of, int(kind)), uint64(len(text(v))))
		default:
			of = h.number(of, uint64(kind))
		}
	}
	return of
}
