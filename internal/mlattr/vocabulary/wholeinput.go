package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

var (
	slotInput         = SlotOf(mlattr.GenAIInputTokens)
	slotCacheRead     = SlotOf(mlattr.GenAICacheReadTokens)
	slotCacheCreation = SlotOf(mlattr.GenAICacheCreationTokens)
	slotUsageInput    = SlotOf(mlattr.UsageInputTokens)
	slotUsageOutput   = SlotOf(mlattr.UsageOutputTokens)
	slotOutput        = SlotOf(mlattr.GenAIOutputTokens)
	slotTotal         = SlotOf(mlattr.TotalTokens)
	slotReasoning     = SlotOf(mlattr.GenAIReasoningTokens)
)

// completeUsage adds the whole input and output where the counts show that the producer
// leaves parts out. A total that it states goes before what the counts alone say.
func completeUsage(f *Facts) {
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	if !hasInput && !hasOutput {
		return
	}
	total, hasTotal := f.IntAt(slotTotal)
	read, _ := f.IntAt(slotCacheRead)
	creation, _ := f.IntAt(slotCacheCreation)
	if hasTotal && total > 0 && total <= mlattr.MaxCount {
		switch missing := total - input - output; {
		case missing < 0:
		case !hasInput:
			f.SetInt(slotInput, missing)
			return
		case !hasOutput:
			if missing > 0 {
				f.SetInt(slotOutput, missing)
			}
			return
		case missing == 0 && read+creation <= input:
			return
		default:
			reasoning, _ := f.IntAt(slotReasoning)
			for _, caches := range [...]int64{0, read, read + creation} {
				switch missing - caches {
				case 0:
					f.SetInt(slotUsageInput, input+caches)
				case reasoning:
					if caches > 0 {
						f.SetInt(slotUsageInput, input+caches)
					}
					f.SetInt(slotUsageOutput, output+reasoning)
				default:
					continue
				}
				return
			}
		}
	}
	if !hasInput {
		return
	}
	whole := mlattr.WholeInput(input, read, creation)
	if f.Systems.Has(table.CachesApart) {
		whole = mlattr.WholeInput(0, input, mlattr.WholeInput(0, read, creation))
	}
	if whole != input {
		f.SetInt(slotUsageInput, whole)
	}
}
