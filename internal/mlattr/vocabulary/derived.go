package vocabulary

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// maxEvents bounds the events of a span that are read. SDKs send at most 128.
const maxEvents = 128

// timeFirstToken adds the time to the first token where the span has the
// instant of the first token instead. It adds nothing if the instant is outside
// the span: two clocks differ. An event may come after the end of the span: its
// clock is that of the span, and some clients end the span of a stream when the
// stream begins. The time that a client reports of an answer that was not
// streamed is that of the whole answer, so it is no usable fact.
func (r *Reader) timeFirstToken(span ptrace.Span, f *Facts) {
	if first := f.At(slotFirstChunk); first != nil {
		if stream := f.At(slotStream); stream != nil && !stream.Bool && !first.Own {
			first.Unreadable = true
		}
		return
	}
	var came pcommon.Timestamp
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if at := f.At(slotFirstTokenAt); at != nil {
		came = pcommon.Timestamp(at.Int)
	} else if f.Systems&r.streams != 0 {
		came = r.firstTokenEvent(span, f.Systems)
		end = max(end, came)
	}
	if came == 0 || start == 0 || came < start || came > end {
		return
	}
	if fact := f.reserve(slotFirstChunk, "", rankDerived); fact != nil {
		fact.Kind, fact.Double = table.KindSeconds, float64(came-start)/1e9
	}
}

// firstTokenEvent returns the time of the first event that a known client
// writes at a first token, or zero.
func (r *Reader) firstTokenEvent(span ptrace.Span, known System) pcommon.Timestamp {
	dropped := span.DroppedEventsCount() > 0
	events := span.Events()
	for i := range min(events.Len(), maxEvents) {
		event := events.At(i)
		for j := range r.firstTokens {
			rule := &r.firstTokens[j]
			if event.Name() == rule.Event && rule.system&known != 0 && (!rule.Repeated || !dropped) {
				return event.Timestamp()
			}
		}
	}
	return 0
}

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
	apart := f.Systems.Has(table.CachesApart)
	// Where the tokens of caches are apart, a total of input and output alone is without them.
	if hasTotal && total > 0 && total <= mlattr.MaxCount && !(apart && total == input+output) {
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
	if apart {
		whole = mlattr.WholeInput(0, input, mlattr.WholeInput(0, read, creation))
	}
	if whole != input {
		f.SetInt(slotUsageInput, whole)
	}
}

var (
	slotCurrency = SlotOf(mlattr.UsageCurrency)
	slotsOfCost  = [...]Slot{SlotOf(mlattr.UsageCost), SlotOf(mlattr.UsageInputCost), SlotOf(mlattr.UsageOutputCost)}
)

// checkCurrency makes costs unreadable that are stated in another currency than
// US dollars: rates of exchange are not known.
func checkCurrency(f *Facts) {
	currency := f.TextAt(slotCurrency)
	if currency == "" || strings.EqualFold(currency, "USD") {
		return
	}
	for _, slot := range slotsOfCost {
		if cost := f.At(slot); cost != nil {
			cost.Unreadable = true
		}
	}
}
