// Package rate answers one question: how many tokens or samples a second, and
// what does the rate rest on?
//
// A span's rates come from its own attributes. A metric's rates come from the
// difference of two points of a stream, which Streams remembers. A rate that
// would mislead is left out and counted in Skipped with its reason.
package rate

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Reason is why a rate was left out: the value of reason in a metric.
type Reason string

const (
	missingTokens       Reason = "missing_tokens"
	failedWithoutOutput Reason = "failed_without_output"
	negativeDuration    Reason = "negative_duration"
	shortDuration       Reason = "short_duration"
	// firstTokenOutside is a first token before the request or after its end.
	firstTokenOutside Reason = "first_token"
	// invalidValue is a rate that no number holds, and a point without a time
	// or with a value that no counter can have.
	invalidValue Reason = "invalid_value"
	// counterReset is a counter that began again.
	counterReset Reason = "counter_reset"
	// outOfOrder is a point that is older than the stream's newest.
	outOfOrder Reason = "out_of_order"
	// unwanted says that there is nothing to derive a rate from. It is not counted.
	unwanted Reason = "unwanted"
)

// Skipped counts the rates that were left out.
type Skipped map[Reason]int64

// add counts a reason, if there is one that a rate was left out for.
func (s Skipped) add(reason Reason) {
	if reason != "" && reason != unwanted {
		s[reason]++
	}
}

// shortest is the shortest duration in seconds that a rate is derived from.
// Below it the resolution of the client's clock decides, and an event that was
// sent as a span has no duration at all.
const shortest = 0.001

// work is what a span did, for deriving its rates.
type work struct {
	// seconds is the duration of the work.
	seconds float64
	// failed is true if the span failed.
	failed bool
	// ofInput is true if the input is what was worked on: for an embedding, and
	// for training that reports an input and no output.
	ofInput bool

	input, output, samples count
	// whole is the input with the tokens of caches, if the span reports it.
	whole count
	// samplesPerStep is the size of a batch that does not report its own, or 0.
	samplesPerStep float64
	// cacheRead and cacheCreation are the input tokens read from a cache and
	// written to one.
	cacheRead, cacheCreation count
	// sequences is how many answers were generated in parallel.
	sequences count

	// firstToken is the time from the span's start to its first token.
	firstToken measured
	// prefill and decode are the parts of the duration in which the model read
	// the input, and generated the tokens after the first.
	prefill, decode measured
}

// count is a number that may be missing.
type count struct {
	n  int64
	ok bool
}

// measured is a time in seconds that may be missing. NaN is an unusable one.
type measured struct {
	seconds float64
	ok      bool
}

// tokensPerSecond is output ÷ duration, or input ÷ duration if the work is the
// input. There is no rate if it returns a reason.
func (w *work) tokensPerSecond() (float64, Reason) {
	if !w.input.ok && !w.output.ok || w.seconds == 0 && w.decode.ok {
		// A record of the end of a stream knows only how long the answer took.
		return 0, unwanted
	}
	tokens := w.output
	if w.ofInput {
		tokens = w.wholeInput()
	}
	if !tokens.ok {
		return 0, missingTokens
	}
	if w.firstToken.ok && w.firstToken.seconds > w.seconds && positive(w.seconds) {
		// A client may end the span of a stream when the stream begins.
		return 0, firstTokenOutside
	}
	return w.rate(tokens.n, w.seconds)
}

// decodePerSecond is (output − 1) ÷ (duration − time to first token), or
// (output − 1) ÷ the decode time if the producer measured that. A single token
// was not decoded after another.
func (w *work) decodePerSecond() (float64, Reason) {
	if !w.output.ok || w.output.n < 2 {
		return 0, unwanted
	}
	var took float64
	switch {
	case w.decode.ok:
		took = w.decode.seconds
	case !w.firstToken.ok:
		return 0, unwanted
	case !positive(w.seconds):
		return 0, negativeDuration
	case !(w.firstToken.seconds >= 0) || w.firstToken.seconds >= w.seconds:
		return 0, firstTokenOutside
	default:
		took = w.seconds - w.firstToken.seconds
	}
	return w.rate(w.output.n-1, took)
}

// prefillPerSecond is the input that was not read from a cache ÷ the time in
// which the model read it.
func (w *work) prefillPerSecond() (float64, Reason) {
	if !w.prefill.ok || !w.input.ok {
		return 0, unwanted
	}
	read := w.wholeInput().n
	if w.cacheRead.ok {
		read -= w.cacheRead.n
	}
	if read <= 0 {
		return 0, unwanted
	}
	return w.rate(read, w.prefill.seconds)
}

// samplesPerSecond is the batch size ÷ duration. The size is the batch's own,
// or else that of a step of its job.
func (w *work) samplesPerSecond() (float64, Reason) {
	switch {
	case w.samples.ok:
		return w.rate(w.samples.n, w.seconds)
	case w.samplesPerStep == 0:
		return 0, unwanted
	default:
		return divide(w.samplesPerStep, w.seconds)
	}
}

// perSequence is the share of each of several answers in a rate.
func (w *work) perSequence(rate float64) (share float64, wanted bool) {
	if !w.sequences.ok || w.sequences.n < 2 || w.ofInput {
		return 0, false
	}
	return rate / float64(w.sequences.n), true
}

// wholeInput is the input with the tokens of caches.
func (w *work) wholeInput() count {
	if !w.input.ok || w.whole.ok {
		return w.whole
	}
	return count{n: mlattr.WholeInput(w.input.n, w.cacheRead.n, w.cacheCreation.n), ok: true}
}

// rate divides. A rate of 0 needs an attempt that succeeded.
func (w *work) rate(n int64, seconds float64) (float64, Reason) {
	if n == 0 && w.failed {
		return 0, failedWithoutOutput
	}
	return divide(float64(n), seconds)
}

// divide returns n ÷ seconds, or why there is no such rate.
func divide(n, seconds float64) (float64, Reason) {
	switch {
	case !positive(seconds):
		return 0, negativeDuration
	case seconds < shortest:
		return 0, shortDuration
	}
	rate := n / seconds
	if math.IsInf(rate, 0) {
		return 0, invalidValue
	}
	return rate, ""
}

// positive reports whether a duration is above 0, finite and a number.
func positive(seconds float64) bool { return seconds > 0 && !math.IsInf(seconds, 0) }

// seconds is the time between two timestamps in nanoseconds, negative if the
// end is before the start, and zero if the start is unknown.
func seconds(start, end uint64) float64 {
	if start == 0 {
		return 0
	}
	if end < start {
		return -float64(start-end) / 1e9
	}
	return float64(end-start) / 1e9
}
