package mlattr

import "math"

// WholeInput is how many tokens a request had that says input, with those that
// a cache gave it and that it put into one. The conventions count these in. A
// producer that says more of them than of input does not, nor one that is known
// to leave them out; of others it cannot be seen. No number is negative, and a
// sum that is too great is the greatest.
func WholeInput(input, read, creation int64, leftOut bool) int64 {
	cached := addCounts(read, creation)
	if cached == 0 || !leftOut && cached <= input {
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

var (
	slotInput         = SlotOf(GenAIInputTokens)
	slotCacheRead     = SlotOf(GenAICacheReadTokens)
	slotCacheCreation = SlotOf(GenAICacheCreationTokens)
	slotUsageInput    = SlotOf(UsageInputTokens)
)

// completeInput adds the whole input where it is seen that the producer leaves
// the tokens of caches out.
func completeInput(f *Facts) {
	input, ok := f.IntAt(slotInput)
	if !ok {
		return
	}
	read, _ := f.IntAt(slotCacheRead)
	creation, _ := f.IntAt(slotCacheCreation)
	if whole := WholeInput(input, read, creation, false); whole != input {
		f.SetInt(slotUsageInput, whole)
	}
}
