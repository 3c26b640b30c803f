package rate

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Derive adds to the facts of a span the rates that follow from them. A rate
// that the client reports is kept and marked as reported. Nothing replaces a
// rate that exists. samplesPerStep is the size of a step by the resource, or 0.
func Derive(f *vocabulary.Facts, span ptrace.Span, samplesPerStep float64, skipped Skipped) {
	if f.At(vocabulary.SlotGenAIInputTokens) == nil && f.At(vocabulary.SlotGenAIOutputTokens) == nil && f.At(vocabulary.SlotBatchSize) == nil && f.At(vocabulary.SlotTokensPerSecond) == nil && samplesPerStep == 0 {
		return // most spans of most clients
	}
	var w work
	if !w.read(f, span, samplesPerStep) {
		return
	}
	rated, basis := deriveTokens(f, &w, skipped)
	basis = deriveSamples(f, &w, skipped, rated, basis)
	if rate, reason := w.decodePerSecond(); addRate(f, vocabulary.SlotDecodePerSecond, rate, reason, skipped) && basis == "" && !rated {
		basis = mlattr.BasisDecode
	}
	if rate, reason := w.prefillPerSecond(); addRate(f, vocabulary.SlotPrefillPerSecond, rate, reason, skipped) && basis == "" && !rated {
		basis = mlattr.BasisPrefill
	}
	if basis != "" {
		f.SetText(vocabulary.SlotThroughputBasis, basis)
	}
	if whole := w.wholeInput(); whole.ok && whole != w.input {
		// It also tells a later reader that nothing is to be added.
		f.SetInt(vocabulary.SlotUsageInputTokens, whole.n)
		if sent(f, vocabulary.SlotGenAIInputTokens) {
			// The canonical attribute includes the tokens of caches.
			f.At(vocabulary.SlotGenAIInputTokens).Int = whole.n
		}
	}
}

// read reads what a span did. It returns false if no rate can follow.
func (w *work) read(f *vocabulary.Facts, span ptrace.Span, samplesPerStep float64) bool {
	w.input, w.output, w.samples = countAt(f, vocabulary.SlotGenAIInputTokens), countAt(f, vocabulary.SlotGenAIOutputTokens), countAt(f, vocabulary.SlotBatchSize)
	if whole := countAt(f, vocabulary.SlotUsageOutputTokens); whole.ok {
		w.output = whole
	}
	// A batch is one step of its process.
	if !w.samples.ok && samplesPerStep > 0 && f.TextAt(vocabulary.SlotPhase) == mlattr.PhaseBatch {
		w.samplesPerStep = samplesPerStep
	}
	if !w.input.ok && !w.output.ok && !w.samples.ok && w.samplesPerStep == 0 && f.At(vocabulary.SlotTokensPerSecond) == nil {
		return false
	}
	w.seconds = seconds(uint64(span.StartTimestamp()), uint64(span.EndTimestamp()))
	end := spanfact.EndOf(f)
	w.failed = end.Failed(span)
	w.ofInput = f.TextAt(vocabulary.SlotGenAIOperationName) == mlattr.OperationEmbeddings || !w.output.ok && trains(f.TextAt(vocabulary.SlotPhase))
	if latency := measuredAt(f, vocabulary.SlotLatency); latency.ok {
		// A producer's own latency is the better one. An unusable one is not
		// replaced by the span's length, which measures something else.
		w.seconds = latency.seconds
	}
	if w.input.ok || w.output.ok {
		w.whole = countAt(f, vocabulary.SlotUsageInputTokens)
		w.cacheRead, w.cacheCreation = countAt(f, vocabulary.SlotGenAICacheReadTokens), countAt(f, vocabulary.SlotGenAICacheCreationTokens)
		w.sequences = countAt(f, vocabulary.SlotGenAIChoices)
		w.firstToken = measuredAt(f, vocabulary.SlotGenAITimeToFirstChunk)
		w.prefill, w.decode = measuredAt(f, vocabulary.SlotPrefillTime), measuredAt(f, vocabulary.SlotDecodeTime)
		if f.Systems.Has(table.EstimatesTokens) && (sent(f, vocabulary.SlotGenAIInputTokens) || sent(f, vocabulary.SlotGenAIOutputTokens)) {
			f.SetBool(vocabulary.SlotTokensEstimated, true)
		}
	}
	return true
}

// trains reports whether a model is trained on the tokens of a phase. The
// optimizer and the loader read none, and a validation trains nothing.
func trains(phase string) bool {
	switch phase {
	case mlattr.PhaseTrain, mlattr.PhaseForward, mlattr.PhaseBackward, mlattr.PhaseForwardBackward, mlattr.PhaseBatch, mlattr.PhaseEpoch:
		return true
	default:
		return false
	}
}

// addRate adds a rate, unless there is one or a reason for none. It reports whether it did.
func addRate(f *vocabulary.Facts, slot vocabulary.Slot, rate float64, reason Reason, skipped Skipped) bool {
	if f.At(slot) != nil {
		return false
	}
	skipped.add(reason)
	if reason == "" {
		f.SetDouble(slot, rate)
	}
	return reason == ""
}

// deriveTokens derives the token rate. It reports whether there is one, and its
// basis, which is empty if only its producer knows it.
func deriveTokens(f *vocabulary.Facts, w *work, skipped Skipped) (rated bool, basis string) {
	basis = f.TextAt(vocabulary.SlotThroughputBasis)
	reported := f.At(vocabulary.SlotTokensPerSecond)
	switch {
	case reported == nil:
	case reported.Own:
		return true, basis
	default:
		rate, ok := f.DoubleAt(vocabulary.SlotTokensPerSecond)
		if !ok || rate < 0 {
			reported.ReadOnly = true
			return false, basis
		}
		if _, device := f.IntAt(vocabulary.SlotGPUIndex); device {
			f.SetText(vocabulary.SlotThroughputScope, mlattr.ScopeDevice)
		}
		return true, mlattr.BasisReported
	}
	rate, reason := w.tokensPerSecond()
	if !addRate(f, vocabulary.SlotTokensPerSecond, rate, reason, skipped) {
		return false, basis
	}
	if share, wanted := w.perSequence(rate); wanted {
		f.SetDouble(vocabulary.SlotSequencePerSecond, share)
	}
	return true, mlattr.BasisSpan
}

// deriveSamples derives the sample rate, and returns the basis of the span's
// rates.
func deriveSamples(f *vocabulary.Facts, w *work, skipped Skipped, rated bool, basis string) string {
	// A loader's batch is not trained on yet.
	if f.TextAt(vocabulary.SlotPhase) == mlattr.PhaseDataLoad {
		return basis
	}
	if rate, reason := w.samplesPerSecond(); !addRate(f, vocabulary.SlotSamplesPerSecond, rate, reason, skipped) {
		return basis
	}
	switch {
	case !rated:
		return mlattr.BasisSpan
	case basis != mlattr.BasisSpan:
		f.SetText(vocabulary.SlotSamplesBasis, mlattr.BasisSpan)
	}
	return basis
}

func countAt(f *vocabulary.Facts, slot vocabulary.Slot) count {
	n, ok := f.IntAt(slot)
	return count{n, ok && n <= mlattr.MaxCount}
}

// measuredAt reads a time. One that exists and is no number becomes NaN.
func measuredAt(f *vocabulary.Facts, slot vocabulary.Slot) measured {
	if f.At(slot) == nil {
		return measured{}
	}
	value, ok := f.DoubleAt(slot)
	if !ok {
		value = math.NaN()
	}
	return measured{value, true}
}

// sent reports whether a fact came under the client's own name.
func sent(f *vocabulary.Facts, slot vocabulary.Slot) bool {
	fact := f.At(slot)
	return fact != nil && !fact.Own
}
