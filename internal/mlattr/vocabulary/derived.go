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
	if first := f.At(SlotGenAITimeToFirstChunk); first != nil {
		if stream := f.At(SlotGenAIStream); stream != nil && !stream.Bool && !first.Own {
			first.Unreadable = true
		}
		return
	}
	var came pcommon.Timestamp
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if at := f.At(SlotFirstTokenAt); at != nil {
		came = pcommon.Timestamp(at.Int)
	} else if f.Systems&r.streams != 0 {
		came = r.firstTokenEvent(span, f.Systems)
		end = max(end, came)
	}
	if came == 0 || start == 0 || came < start || came > end {
		return
	}
	f.set(SlotGenAITimeToFirstChunk, rankDerived, Fact{Kind: table.KindSeconds, Double: float64(came-start) / 1e9})
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

// completeUsage adds the whole input and output where the counts show that the producer
// leaves parts out. A total that it states goes before what the counts alone say.
func completeUsage(f *Facts) {
	input, hasInput := f.IntAt(SlotGenAIInputTokens)
	output, hasOutput := f.IntAt(SlotGenAIOutputTokens)
	if !hasInput && !hasOutput {
		return
	}
	total, hasTotal := f.IntAt(SlotTotalTokens)
	read, _ := f.IntAt(SlotGenAICacheReadTokens)
	creation, _ := f.IntAt(SlotGenAICacheCreationTokens)
	apart := f.Systems.Has(table.CachesApart)
	// Where the tokens of caches are apart, as those must be that exceed the input, a total of
	// input and output alone is without them.
	without := apart || hasInput && mlattr.WholeInput(input, read, creation) != input
	if hasTotal && total > 0 && total <= mlattr.MaxCount && (!without || total != input+output) {
		switch missing := total - input - output; {
		case missing < 0:
		case !hasInput:
			f.SetInt(SlotGenAIInputTokens, missing)
			return
		case !hasOutput:
			if missing > 0 {
				f.SetInt(SlotGenAIOutputTokens, missing)
			}
			return
		case missing == 0 && read+creation <= input:
			return
		default:
			reasoning, _ := f.IntAt(SlotGenAIReasoningTokens)
			for _, caches := range [...]int64{0, read, read + creation} {
				switch missing - caches {
				case 0:
					f.SetInt(SlotUsageInputTokens, input+caches)
				case reasoning:
					if caches > 0 {
						f.SetInt(SlotUsageInputTokens, input+caches)
					}
					f.SetInt(SlotUsageOutputTokens, output+reasoning)
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
		f.SetInt(SlotUsageInputTokens, whole)
	}
}

var slotsOfCost = [...]Slot{SlotUsageCost, SlotUsageInputCost, SlotUsageOutputCost}

// checkCurrency makes costs unreadable that are stated in another currency than
// US dollars: rates of exchange are not known.
func checkCurrency(f *Facts) {
	currency := f.TextAt(SlotUsageCurrency)
	if currency == "" || strings.EqualFold(currency, "USD") {
		return
	}
	for _, slot := range slotsOfCost {
		if cost := f.At(slot); cost != nil {
			cost.Unreadable = true
		}
	}
}
