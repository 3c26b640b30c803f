package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var (
	slotInput         = SlotOf(mlattr.GenAIInputTokens)
	slotCacheRead     = SlotOf(mlattr.GenAICacheReadTokens)
	slotCacheCreation = SlotOf(mlattr.GenAICacheCreationTokens)
	slotUsageInput    = SlotOf(mlattr.UsageInputTokens)
)

// completeInput adds the whole input where the counts show that the producer
// leaves cached tokens out.
func completeInput(f *Facts) {
	input, ok := f.IntAt(slotInput)
	if !ok {
		return
	}
	read, _ := f.IntAt(slotCacheRead)
	creation, _ := f.IntAt(slotCacheCreation)
	if whole := mlattr.WholeInput(input, read, creation); whole != input {
		f.SetInt(slotUsageInput, whole)
	}
}
