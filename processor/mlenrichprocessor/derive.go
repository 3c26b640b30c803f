package mlenrichprocessor

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The slots that rates are derived from and go to.
var (
	slotInput          = mlattr.SlotOf(mlattr.GenAIInputTokens)
	slotOutput         = mlattr.SlotOf(mlattr.GenAIOutputTokens)
	slotWholeInput     = mlattr.SlotOf(mlattr.UsageInputTokens)
	slotCacheRead      = mlattr.SlotOf(mlattr.GenAICacheReadTokens)
	slotCacheCreation  = mlattr.SlotOf(mlattr.GenAICacheCreationTokens)
	slotSequences      = mlattr.SlotOf(mlattr.GenAIChoices)
	slotFirstToken     = mlattr.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotSamples        = mlattr.SlotOf(mlattr.BatchSize)
	slotLatency        = mlattr.SlotOf(mlattr.Latency)
	slotPrefillTime    = mlattr.SlotOf(mlattr.PrefillTime)
	slotDecodeTime     = mlattr.SlotOf(mlattr.DecodeTime)
	slotGenAIOperation = mlattr.SlotOf(mlattr.GenAIOperationName)
	slotGPUIndex       = mlattr.SlotOf(mlattr.GPUIndex)
	slotTokenRate      = mlattr.SlotOf(mlattr.TokensPerSecond)
	slotDecodeRate     = mlattr.SlotOf(mlattr.DecodePerSecond)
	slotPrefillRate    = mlattr.SlotOf(mlattr.PrefillPerSecond)
	slotSequenceRate   = mlattr.SlotOf(mlattr.SequencePerSecond)
	slotSampleRate     = mlattr.SlotOf(mlattr.SamplesPerSecond)
	slotBasis          = mlattr.SlotOf(mlattr.ThroughputBasis)
	slotSamplesBasis   = mlattr.SlotOf(mlattr.SamplesBasis)
	slotScope          = mlattr.SlotOf(mlattr.ThroughputScope)
	slotEstimated      = mlattr.SlotOf(mlattr.TokensEstimated)
)

// spanTimes are what rates need of a span besides its facts.
type spanTimes struct {
	start, end uint64
	failed     bool
}

// rateRules are what the configuration says about rates.
type rateRules struct {
	// shortest is work.shortest.
	shortest float64
	// withoutCache is work.withoutCache, for one scope.
	withoutCache bool
	// samplesPerStep is what the resource says of a step, and zero where it
	// says nothing.
	samplesPerStep float64
}

// derive adds to the facts of a span what can be derived from them. The rate
// that a client reports is kept and marked as such; nothing replaces a rate
// that is there.
func derive(f *mlattr.Facts, times spanTimes, rules rateRules, left skipped) {
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	samples, hasSamples := f.IntAt(slotSamples)
	// A batch is one step of its process.
	unsized := !hasSamples && rules.samplesPerStep > 0 && f.TextAt(slotPhase) == mlattr.PhaseBatch
	if !hasInput && !hasOutput && !hasSamples && !unsized && f.At(slotTokenRate) == nil {
		return
	}
	w := work{
		seconds:  seconds(times.start, times.end),
		shortest: rules.shortest,
		failed:   times.failed,
		ofInput:  f.TextAt(slotGenAIOperation) == mlattr.OperationEmbeddings || !hasOutput && trains(f.TextAt(slotPhase)),
		input:    count{input, hasInput},
		output:   count{output, hasOutput},
		samples:  count{samples, hasSamples},
	}
	if unsized {
		w.samplesPerStep = rules.samplesPerStep
	}
	if latency := measuredAt(f, slotLatency); latency.ok {
		// A producer's own latency is the better one; a broken one is not
		// replaced by a span's length, which measures something else.
		w.seconds = latency.seconds
	}
	if hasInput || hasOutput {
		w.withoutCache = rules.withoutCache
		w.whole = countAt(f, slotWholeInput)
		w.cacheRead, w.cacheCreation = countAt(f, slotCacheRead), countAt(f, slotCacheCreation)
		w.sequences = countAt(f, slotSequences)
		w.firstToken = measuredAt(f, slotFirstToken)
		w.prefill, w.decode = measuredAt(f, slotPrefillTime), measuredAt(f, slotDecodeTime)
		if f.Systems&mlattr.TaskWeaver != 0 && (sent(f, slotInput) || sent(f, slotOutput)) {
			f.SetBool(slotEstimated, true)
		}
	}

	rated, basis := deriveTokens(f, &w, left)
	basis = deriveSamples(f, &w, left, rated, basis)
	if rate, wanted, reason := w.decodePerSecond(); wanted && f.At(slotDecodeRate) == nil {
		left.add(reason)
		if reason == "" {
			f.SetDouble(slotDecodeRate, rate)
			if basis == "" && !rated {
				basis = mlattr.BasisDecode
			}
		}
	}
	if rate, wanted, reason := w.prefillPerSecond(); wanted && f.At(slotPrefillRate) == nil {
		left.add(reason)
		if reason == "" {
			f.SetDouble(slotPrefillRate, rate)
			if basis == "" && !rated {
				basis = mlattr.BasisPrefill
			}
		}
	}
	if basis != "" {
		f.SetText(slotBasis, basis)
	}
	if whole := w.wholeInput(); whole.ok && whole != w.input {
		// It also tells whoever comes next that nothing is to be added.
		f.SetInt(slotWholeInput, whole.n)
		if sent(f, slotInput) {
			// The canonical attribute includes what caches gave and took.
			f.At(slotInput).Int = whole.n
		}
	}
}

// trains says whether the tokens of a phase are those that a model was trained on.
// The optimizer and the loader read none, and a validation trains nothing.
func trains(phase string) bool {
	switch phase {
	case mlattr.PhaseTrain, mlattr.PhaseForward, mlattr.PhaseBackward, mlattr.PhaseForwardBackward, mlattr.PhaseBatch, mlattr.PhaseEpoch:
		return true
	default:
		return false
	}
}

// deriveTokens sees to the token rate, and says whether there is one and what
// its basis is, empty where only its producer could say.
func deriveTokens(f *mlattr.Facts, w *work, left skipped) (rated bool, basis string) {
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
	left.add(reason)
	if !wanted || reason != "" {
		return false, basis
	}
	f.SetDouble(slotTokenRate, rate)
	if share, wanted := w.perSequence(rate); wanted {
		f.SetDouble(slotSequenceRate, share)
	}
	return true, mlattr.BasisSpan
}

// deriveSamples sees to the sample rate, and returns the basis of the span's
// rates.
func deriveSamples(f *mlattr.Facts, w *work, left skipped, rated bool, basis string) string {
	// A loader's batch is not yet work done.
	if f.TextAt(slotPhase) == mlattr.PhaseDataLoad || f.At(slotSampleRate) != nil {
		return basis
	}
	rate, wanted, reason := w.samplesPerSecond()
	left.add(reason)
	if !wanted || reason != "" {
		return basis
	}
	f.SetDouble(slotSampleRate, rate)
	switch {
	case !rated:
		return mlattr.BasisSpan
	case basis != mlattr.BasisSpan:
		f.SetText(slotSamplesBasis, mlattr.BasisSpan)
	}
	return basis
}

func countAt(f *mlattr.Facts, slot mlattr.Slot) count {
	n, ok := f.IntAt(slot)
	return count{n, ok}
}

// measuredAt reads a time. One that is there and is no number is broken.
func measuredAt(f *mlattr.Facts, slot mlattr.Slot) measured {
	if f.At(slot) == nil {
		return measured{}
	}
	value, ok := f.DoubleAt(slot)
	if !ok {
		value = math.NaN()
	}
	return measured{value, true}
}

// sent says whether a fact came under the client's own name.
func sent(f *mlattr.Facts, slot mlattr.Slot) bool {
	fact := f.At(slot)
	return fact != nil && !fact.Own
}
