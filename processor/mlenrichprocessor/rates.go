package mlenrichprocessor

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// skip is why a rate was left out; empty is not.
type skip string

const (
	skipMissingTokens       skip = "missing_tokens"
	skipFailedWithoutOutput skip = "failed_without_output"
	skipNegativeDuration    skip = "negative_duration"
	skipShortDuration       skip = "short_duration"
	// skipFirstToken is a first token before the request or after its end.
	skipFirstToken skip = "first_token"
	// skipInvalidValue is a rate that no number holds, and a point without a
	// time, or with a value that no counter can have.
	skipInvalidValue skip = "invalid_value"
)

// work is what a span did, for deriving its rates.
type work struct {
	// seconds is the duration that the rates are taken over.
	seconds float64
	// shortest is the shortest duration in seconds that a rate is derived
	// from. Below it the clock's resolution decides, and an event that was
	// sent as a span has no duration at all.
	shortest float64
	// failed is true where the span's status is an error.
	failed bool
	// ofInput is true for an embedding, and for training that says what went in
	// and nothing that came out: the work is the input.
	ofInput bool
	// withoutCache is true where the producer is known not to count what
	// caches gave and took as input.
	withoutCache bool

	input, output, samples count
	// whole is the input with what caches gave and took, where the span says it.
	whole count
	// samplesPerStep is the size of a batch that does not say its own, and zero
	// for none.
	samplesPerStep float64
	// cacheRead and cacheCreation are input tokens that a cache gave, and
	// that went into one.
	cacheRead, cacheCreation count
	// sequences is how many answers were made side by side.
	sequences count

	// firstToken is the time from the span's start to its first token.
	firstToken measured
	// prefill and decode are the parts of the duration in which the model
	// read the input, and made the tokens after the first.
	prefill, decode measured
}

// count is a number that may be missing.
type count struct {
	n  int64
	ok bool
}

// measured is a time in seconds that may be missing; NaN is a broken one.
type measured struct {
	seconds float64
	ok      bool
}

// tokensPerSecond is output ÷ duration, and input ÷ duration where that is the work.
// Where it returns a reason, or wanted is false, there is no rate.
func (w *work) tokensPerSecond() (rate float64, wanted bool, reason skip) {
	if !w.input.ok && !w.output.ok {
		return 0, false, ""
	}
	tokens := w.output
	if w.ofInput {
		tokens = w.wholeInput()
	}
	if !tokens.ok {
		return 0, true, skipMissingTokens
	}
	rate, reason = w.rate(tokens.n, w.seconds)
	return rate, true, reason
}

// decodePerSecond is (output − 1) ÷ (duration − time to first token). One
// token alone was not decoded after another. A producer that measured the
// decoding itself did so better.
func (w *work) decodePerSecond() (rate float64, wanted bool, reason skip) {
	if !w.output.ok || w.output.n < 2 {
		return 0, false, ""
	}
	var took float64
	switch {
	case w.decode.ok:
		took = w.decode.seconds
	case !w.firstToken.ok:
		return 0, false, ""
	case !positive(w.seconds):
		return 0, true, skipNegativeDuration
	case !(w.firstToken.seconds >= 0) || w.firstToken.seconds >= w.seconds:
		return 0, true, skipFirstToken
	default:
		took = w.seconds - w.firstToken.seconds
	}
	rate, reason = w.rate(w.output.n-1, took)
	return rate, true, reason
}

// prefillPerSecond is the input that no cache gave ÷ the time that the model
// took to read it.
func (w *work) prefillPerSecond() (rate float64, wanted bool, reason skip) {
	if !w.prefill.ok || !w.input.ok {
		return 0, false, ""
	}
	read := w.wholeInput().n
	if w.cacheRead.ok {
		read -= w.cacheRead.n
	}
	if read <= 0 {
		return 0, false, ""
	}
	rate, reason = w.rate(read, w.prefill.seconds)
	return rate, true, reason
}

// samplesPerSecond is the batch size ÷ duration. The size is the batch's own, or
// else what is known of its job.
func (w *work) samplesPerSecond() (rate float64, wanted bool, reason skip) {
	if !w.samples.ok {
		if w.samplesPerStep == 0 {
			return 0, false, ""
		}
		rate, reason = divide(w.samplesPerStep, w.seconds, w.shortest)
		return rate, true, reason
	}
	rate, reason = w.rate(w.samples.n, w.seconds)
	return rate, true, reason
}

// perSequence is the share of each of several answers in a rate.
func (w *work) perSequence(rate float64) (share float64, wanted bool) {
	if !w.sequences.ok || w.sequences.n < 2 || w.ofInput {
		return 0, false
	}
	return rate / float64(w.sequences.n), true
}

// wholeInput is the input with what caches gave and took.
func (w *work) wholeInput() count {
	if !w.input.ok || w.whole.ok {
		return w.whole
	}
	return count{n: mlattr.WholeInput(w.input.n, w.cacheRead.n, w.cacheCreation.n, w.withoutCache), ok: true}
}

// rate divides. Nothing at all is a rate of 0 only if the attempt succeeded.
func (w *work) rate(n int64, seconds float64) (float64, skip) {
	if n == 0 && w.failed {
		return 0, skipFailedWithoutOutput
	}
	return divide(float64(n), seconds, w.shortest)
}

// divide is what there was of something in a second, where the duration is
// right and not below the shortest.
func divide(n, seconds, shortest float64) (float64, skip) {
	switch {
	case !positive(seconds):
		return 0, skipNegativeDuration
	case seconds < shortest:
		return 0, skipShortDuration
	}
	rate := n / seconds
	if math.IsInf(rate, 0) {
		return 0, skipInvalidValue
	}
	return rate, ""
}

// positive says whether a duration is one: above 0, finite and a number.
func positive(seconds float64) bool { return seconds > 0 && !math.IsInf(seconds, 0) }

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
