package streams

import (
	"math"
	"slices"
)

const (
	// exponentialScale gives eight buckets for each doubling, so that a
	// quantile has an error of at most a tenth.
	exponentialScale = 3
	// leastExponent and mostExponent limit the buckets: a value up to
	// 2^leastExponent, a millionth, counts as zero, and one above
	// 2^mostExponent in the last bucket.
	leastExponent, mostExponent = -20, 40
)

// exponential are the buckets of a histogram whose bounds are the powers of
// 2^(1/8). They span the smallest to the largest value, at most 480.
type exponential struct {
	zeros uint64
	// first is the index of the first bucket; bucket i has the values above
	// 2^(i/8) up to 2^((i+1)/8).
	first   int32
	buckets []uint64
}

// add counts a value and returns the index of its bucket.
func (e *exponential) add(value float64) int {
	if !(value > math.Exp2(leastExponent)) {
		e.zeros++
		return math.MinInt32
	}
	index := int32(mostExponent<<exponentialScale - 1)
	if value < math.Exp2(mostExponent) {
		index = int32(math.Ceil(math.Log2(value)*(1<<exponentialScale))) - 1
	}
	switch {
	case len(e.buckets) == 0:
		e.first, e.buckets = index, append(e.buckets, 0)
	case index < e.first:
		e.buckets = slices.Insert(e.buckets, 0, make([]uint64, e.first-index)...)
		e.first = index
	case int(index-e.first) >= len(e.buckets):
		e.buckets = append(e.buckets, make([]uint64, int(index-e.first)-len(e.buckets)+1)...)
	}
	e.buckets[index-e.first]++
	return int(index)
}

// clone returns an independent copy.
func (e *exponential) clone() *exponential {
	if e == nil {
		return nil
	}
	return &exponential{zeros: e.zeros, first: e.first, buckets: slices.Clone(e.buckets)}
}
