package mlattr

import "math"

// WholeInput returns how many input tokens a request had, including those that
// were read from a cache and written to one. input, read and creation are the
// counts that the producer reports. The conventions include cached tokens in
// input. A producer that reports more cached tokens than input leaves them out;
// otherwise input is returned. No count is negative. A sum that overflows is the
// largest int64.
func WholeInput(input, read, creation int64) int64 {
	cached := addCounts(read, creation)
	if cached <= input {
		return input
	}
	return addCounts(input, cached)
}

func addCounts(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
