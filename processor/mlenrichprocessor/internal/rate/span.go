package rate

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// The slots of the facts that rates are derived from, and of the rates.
var (
	slotInput          = vocabulary.SlotOf(mlattr.GenAIInputTokens)
	slotOutput         = vocabulary.SlotOf(mlattr.GenAIOutputTokens)
	slotWholeInput     = vocabulary.SlotOf(mlattr.UsageInputTokens)
	slotWholeOutput    = vocabulary.SlotOf(mlattr.UsageOutputTokens)
	slotCacheRead      = vocabulary.SlotOf(mlattr.GenAICacheReadTokens)
	slotCacheCreation  = vocabulary.SlotOf(mlattr.GenAICacheCreationTokens)
	slotSequences      = vocabulary.SlotOf(mlattr.GenAIChoices)
	slotFirstToken     = vocabulary.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotSamples        = vocabulary.SlotOf(mlattr.BatchSize)
	slotLatency        = vocabulary.SlotOf(mlattr.Latency)
	slotPrefillTime    = vocabulary.SlotOf(mlattr.PrefillTime)
	slotDecodeTime     = vocabulary.SlotOf(mlattr.DecodeTime)
	slotGenAIOperation = vocabulary.SlotOf(mlattr.GenAIOperationName)
	slotGPUIndex       = vocabulary.SlotOf(mlattr.GPUIndex)
	slotTokenRate      = vocabulary.SlotOf(mlattr.TokensPerSecond)
	slotDecodeRate     = vocabulary.SlotOf(mlattr.DecodePerSecond)
	slotPrefillRate    = vocabulary.SlotOf(mlattr.PrefillPerSecond)
	slotSequenceRate   = vocabulary.SlotOf(mlattr.SequencePerSecond)
	slotSampleRate     = vocabulary.SlotOf(mlattr.SamplesPerSecond)
	slotBasis          = vocabulary.SlotOf(mlattr.ThroughputBasis)
	slotSamplesBasis   = vocabulary.SlotOf(mlattr.SamplesBasis)
	slotScope          = vocabulary.SlotOf(mlattr.ThroughputScope)
	slotEstimated      = vocabulary.SlotOf(mlattr.TokensEstimated)
	slotPhase          = vocabulary.SlotOf(mlattr.Phase)
)

// SamplesPerStep returns the size of a step of a process by its resource, or 0.
func SamplesPerStep(resource *vocabulary.Facts) float64 {
	samples, _ := resource.DoubleAt(slotSamplesPerStep)
	return samples
}

// Derive adds to the facts of a span the rates that follow from them. A rate
// that the client reports is kept and marked as reported. Nothing replaces a
// rate that exists. samplesPerStep is that of the resource.
func Derive(f *vocabulary.Facts, span ptrace.Span, samplesPerStep float64, skipped Skipped) {
	if f.At(slotInput) == nil && f.At(slotOutput) == nil && f.At(slotSamples) == nil && f.At(slotTokenRate) == nil && samplesPerStep == 0 {
		return // most spans of most clients
	}
	var w work
	if !w.read(f, span, samplesPerStep) {
		return
	}
	rated, basis := deriveTokens(f, &w, skipped)
	basis = deriveSamples(f, &w, skipped, rated, basis)
	rate, wanted, reason := w.decodePerSecond()
	if addRate(f, slotDecodeRate, rate, wanted, reason, skipped) && basis == "" && !rated {
		basis = mlattr.BasisDecode
	}
	rate, wanted, reason = w.prefillPerSecond()
	if addRate(f, slotPrefillRate, rate, wanted, reason, skipped) && basis == "" && !rated {
		basis = mlattr.BasisPrefill
	}
	if basis != "" {
		f.SetText(slotBasis, basis)
	}
	if whole := w.wholeInput(); whole.ok && whole != w.input {
		// It also tells a later reader that nothing is to be added.
		f.SetInt(slotWholeInput, whole.n)
		if sent(f, slotInput) {
			// The canonical attribute includes the tokens of caches.
			f.At(slotInput).Int = whole.n
		}
	}
}

// read reads what a span did. It returns false if no rate can follow.
func (w *work) read(f *vocabulary.Facts, span ptrace.Span, samplesPerStep float64) bool {
	w.input, w.output, w.samples = countAt(f, slotInput), countAt(f, slotOutput), countAt(f, slotSamples)
	if whole := countAt(f, slotWholeOutput); whole.ok {
		w.output = whole
	}
	// A batch is one step of its process.
	if !w.samples.ok && samplesPerStep > 0 && f.TextAt(slotPhase) == mlattr.PhaseBatch {
		w.samplesPerStep = samplesPerStep
	}
	if !w.input.ok && !w.output.ok && !w.samples.ok && w.samplesPerStep == 0 && f.At(slotTokenRate) == nil {
		return false
	}
	w.seconds = seconds(uint64(span.StartTimestamp()), uint64(span.EndTimestamp()))
	end := spanfact.EndOf(f)
	w.failed = end.Failed(span)
	w.ofInput = f.TextAt(slotGenAIOperation) == mlattr.OperationEmbeddings || !w.output.ok && trains(f.TextAt(slotPhase))
	if latency := measuredAt(f, slotLatency); latency.ok {
		// A producer's own latency is the better one. An unusable one is not
		// replaced by the span's length, which measures something else.
		w.seconds = latency.seconds
	}
	if w.input.ok || w.output.ok {
		w.whole = countAt(f, slotWholeInput)
		w.cacheRead, w.cacheCreation = countAt(f, slotCacheRead), countAt(f, slotCacheCreation)
		w.sequences = countAt(f, slotSequences)
		w.firstToken = measuredAt(f, slotFirstToken)
		w.prefill, w.decode = measuredAt(f, slotPrefillTime), measuredAt(f, slotDecodeTime)
		if f.Systems.Has(table.EstimatesTokens) && (sent(f, slotInput) || sent(f, slotOutput)) {
			f.SetBool(slotEstimated, true)
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

// addRate adds a rate that is wanted, unless there is one or a reason for none. It reports
// whether it did.
func addRate(f *vocabulary.Facts, slot vocabulary.Slot, rate float64, wanted bool, reason Reason, skipped Skipped) bool {
	if !wanted || f.At(slot) != nil {
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
	basis = f.TextAt(slotBasis)
	reported := f.At(slotTokenRate)
	switch {
	case reported == nil:
	case reported.Own:
		return true, basis
	default:
		rate, ok := f.DoubleAt(slotTokenRate)
		if !ok || rate < 0 {
			reported.ReadOnly = true
			return false, basis
		}
		if _, device := f.IntAt(slotGPUIndex); device {
			f.SetText(slotScope, mlattr.ScopeDevice)
		}
		return true, mlattr.BasisReported
	}
	rate, wanted, reason := w.tokensPerSecond()
	if !addRate(f, slotTokenRate, rate, wanted, reason, skipped) {
		return false, basis
	}
	if share, wanted := w.perSequence(rate); wanted {
		f.SetDouble(slotSequenceRate, share)
	}
	return true, mlattr.BasisSpan
}

// deriveSamples derives the sample rate, and returns the basis of the span's
// rates.
func deriveSamples(f *vocabulary.Facts, w *work, skipped Skipped, rated bool, basis string) string {
	// A loader's batch is not trained on yet.
	if f.TextAt(slotPhase) == mlattr.PhaseDataLoad {
		return basis
	}
	rate, wanted, reason := w.samplesPerSecond()
	if !addRate(f, slotSampleRate, rate, wanted, reason, skipped) {
		return basis
	}
	switch {
	case !rated:
		return mlattr.BasisSpan
	case basis != mlattr.BasisSpan:
		f.SetText(slotSamplesBasis, mlattr.BasisSpan)
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
