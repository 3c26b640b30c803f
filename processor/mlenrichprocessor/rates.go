package mlenrichprocessor

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// minDuration is the shortest duration in seconds that a rate is derived
// from. Below it the clock's resolution decides, and an event that was sent
// as a span has no duration at all.
const minDuration = 0.001

// skip is why a rate was left out; empty is not.
type skip string

const (
	skipMissingTokens       skip = "missing_tokens"
	skipFailedWithoutOutput skip = "failed_without_output"
	skipNegativeDuration    skip = "negative_duration"
	skipShortDuration       skip = "short_duration"
)

// work is what a span did, for deriving its rates.
type work struct {
	// seconds is the duration that the rates are taken over.
	seconds float64
	// failed is true where the span's status is an error.
	failed bool
	// embedding is true for an embedding, whose work is its input.
	embedding bool

	input, output, samples count
}

// count is a number that may be missing.
type count struct {
	n  int64
	ok bool
}

// tokensPerSecond is output ÷ duration, and for embeddings input ÷ duration.
// Where it returns a reason, or wanted is false, there is no rate.
func (w work) tokensPerSecond() (rate float64, wanted bool, reason skip) {
	if !w.input.ok && !w.output.ok {
		return 0, false, ""
	}
	tokens := w.output
	if w.embedding {
		tokens = w.input
	}
	if !tokens.ok {
		return 0, true, skipMissingTokens
	}
	rate, reason = w.rate(tokens.n)
	return rate, true, reason
}

// samplesPerSecond is the batch size ÷ duration.
func (w work) samplesPerSecond() (rate float64, wanted bool, reason skip) {
	if !w.samples.ok {
		return 0, false, ""
	}
	rate, reason = w.rate(w.samples.n)
	return rate, true, reason
}

// rate divides. Nothing at all is a rate of 0 only if the attempt succeeded.
func (w work) rate(n int64) (float64, skip) {
	switch {
	case n == 0 && w.failed:
		return 0, skipFailedWithoutOutput
	// The comparison is negated so that NaN is caught by it.
	case !(w.seconds > 0) || math.IsInf(w.seconds, 0):
		return 0, skipNegativeDuration
	case w.seconds < minDuration:
		return 0, skipShortDuration
	}
	return float64(n) / w.seconds, ""
}

// seconds is a span's duration by its timestamps in nanoseconds, negative
// where it ends before it starts.
func seconds(start, end uint64) float64 {
	if end < start {
		return -float64(start-end) / 1e9
	}
	return float64(end-start) / 1e9
}

// skipped collects the rates that were left out of one batch.
type skipped map[skip]int64

func (s skipped) add(reason skip) {
	if reason != "" {
		s[reason]++
	}
}

// The slots that rates are derived from and go to.
var (
	slotInput          = mlattr.SlotOf(mlattr.GenAIInputTokens)
	slotOutput         = mlattr.SlotOf(mlattr.GenAIOutputTokens)
	slotSamples        = mlattr.SlotOf(mlattr.BatchSize)
	slotLatency        = mlattr.SlotOf(mlattr.Latency)
	slotGenAIOperation = mlattr.SlotOf(mlattr.GenAIOperationName)
	slotTokenRate      = mlattr.SlotOf(mlattr.TokensPerSecond)
	slotSampleRate     = mlattr.SlotOf(mlattr.SamplesPerSecond)
	slotBasis          = mlattr.SlotOf(mlattr.ThroughputBasis)
	slotSamplesBasis   = mlattr.SlotOf(mlattr.SamplesBasis)
	slotEstimated      = mlattr.SlotOf(mlattr.TokensEstimated)
)

// derive adds to the facts of a span what can be derived from them. The rate
// that a client reports is kept and marked as such; nothing replaces a rate
// that is there.
func derive(f *mlattr.Facts, start, end uint64, failed bool, left skipped) {
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	samples, hasSamples := f.IntAt(slotSamples)
	reported := f.At(slotTokenRate)
	if !hasInput && !hasOutput && !hasSamples && reported == nil {
		return
	}
	w := work{
		seconds:   seconds(start, end),
		failed:    failed,
		embedding: f.TextAt(slotGenAIOperation) == mlattr.OperationEmbeddings,
		input:     count{input, hasInput},
		output:    count{output, hasOutput},
		samples:   count{samples, hasSamples},
	}
	if latency := f.At(slotLatency); latency != nil {
		// A producer's own latency is the better one; a broken one is not
		// replaced by a span's length, which measures something else.
		var ok bool
		if w.seconds, ok = f.DoubleAt(slotLatency); !ok {
			w.seconds = math.NaN()
		}
	}
	if f.Systems&mlattr.TaskWeaver != 0 && (sent(f, slotInput) || sent(f, slotOutput)) {
		f.SetBool(slotEstimated, true)
	}

	rated, basis := reported != nil, f.TextAt(slotBasis)
	switch {
	case rated && reported.Own:
	case rated:
		rate, ok := f.DoubleAt(slotTokenRate)
		if rated = ok && rate >= 0; rated {
			basis = mlattr.BasisReported
		} else {
			reported.ReadOnly = true
		}
	default:
		rate, wanted, reason := w.tokensPerSecond()
		left.add(reason)
		if rated = wanted && reason == ""; rated {
			f.SetDouble(slotTokenRate, rate)
			basis = mlattr.BasisSpan
		}
	}
	// A loader's batch is not yet work done.
	if f.TextAt(slotPhase) != mlattr.PhaseDataLoad && f.At(slotSampleRate) == nil {
		rate, wanted, reason := w.samplesPerSecond()
		left.add(reason)
		if wanted && reason == "" {
			f.SetDouble(slotSampleRate, rate)
			switch {
			case !rated:
				basis = mlattr.BasisSpan
			case basis != mlattr.BasisSpan:
				f.SetText(slotSamplesBasis, mlattr.BasisSpan)
			}
		}
	}
	if basis != "" {
		f.SetText(slotBasis, basis)
	}
}

// sent says whether a fact came under the client's own name.
func sent(f *mlattr.Facts, slot mlattr.Slot) bool {
	fact := f.At(slot)
	return fact != nil && !fact.Own
}
