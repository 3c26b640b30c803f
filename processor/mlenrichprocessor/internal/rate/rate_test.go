package rate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// rateCase is what one rule makes of one span's work.
type rateCase struct {
	work   work
	want   float64
	wanted bool
	reason Reason
}

// some is a count that is there, and took a time that is.
func some(n int64) count            { return count{n: n, ok: true} }
func took(seconds float64) measured { return measured{seconds: seconds, ok: true} }
func (c rateCase) of(rule func(*work) (float64, Reason)) rateCase {
	got := rateCase{work: c.work}
	rate, reason := rule(&c.work)
	if got.want = rate; reason != unwanted {
		got.wanted, got.reason = true, reason
	}
	return got
}

func checkRates(t *testing.T, rule func(*work) (float64, Reason), tests map[string]rateCase) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.of(rule)
			assert.InDelta(t, tt.want, got.want, 1e-9)
			assert.Equal(t, tt.wanted, got.wanted)
			assert.Equal(t, tt.reason, got.reason)
		})
	}
}

// goldenVector is the design's golden vector.
func goldenVector() work {
	return work{seconds: 3, input: some(100), output: some(51), firstToken: took(0.5)}
}

func TestTokensPerSecond(t *testing.T) {
	checkRates(t, (*work).tokensPerSecond, map[string]rateCase{
		"golden vector: 51 output tokens in 3 s": {work: goldenVector(), want: 17, wanted: true},
		"a first token after the end":            {work: work{seconds: 3, output: some(51), firstToken: took(4)}, wanted: true, reason: firstTokenOutside},
		"a first token at the end":               {work: work{seconds: 3, output: some(1), firstToken: took(3)}, want: 1. / 3, wanted: true},
		"an embedding's work is its input":       {work: work{seconds: 2, ofInput: true, input: some(200)}, want: 100, wanted: true},
		"an embedding reads what a cache gave":   {work: work{seconds: 2, ofInput: true, input: some(10), cacheRead: some(190)}, want: 100, wanted: true},
		"nothing to derive":                      {work: work{seconds: 1}},
		"tokens missing: input alone":            {work: work{seconds: 1, input: some(5)}, wanted: true, reason: missingTokens},
		"tokens missing: an embedding's input":   {work: work{seconds: 1, ofInput: true, output: some(5)}, wanted: true, reason: missingTokens},
		"no output of a success is a rate of 0":  {work: work{seconds: 1, output: some(0)}, want: 0, wanted: true},
		"no output of a failure is no rate":      {work: work{seconds: 1, failed: true, output: some(0)}, wanted: true, reason: failedWithoutOutput},
		"some output of a failure is a rate":     {work: work{seconds: 2, failed: true, output: some(4)}, want: 2, wanted: true},
		"no time":                                {work: work{output: some(4)}, wanted: true, reason: negativeDuration},
		"a clock that went back":                 {work: work{seconds: -1, output: some(4)}, wanted: true, reason: negativeDuration},
		"NaN seconds":                            {work: work{seconds: math.NaN(), output: some(4)}, wanted: true, reason: negativeDuration},
		"endless":                                {work: work{seconds: math.Inf(1), output: some(4)}, wanted: true, reason: negativeDuration},
		"below 1 ms":                             {work: work{seconds: 0.000999, output: some(4)}, wanted: true, reason: shortDuration},
		"1 ms":                                   {work: work{seconds: 0.001, output: some(4)}, want: 4000, wanted: true},
	})
}

func TestDecodePerSecond(t *testing.T) {
	after := func(first float64) work {
		w := goldenVector()
		w.firstToken = took(first)
		return w
	}
	measured := func(seconds float64) work {
		w := goldenVector()
		w.decode = took(seconds)
		return w
	}
	one := goldenVector()
	one.output = some(1)
	unknown := goldenVector()
	unknown.firstToken = measuredNothing
	noTime := goldenVector()
	noTime.seconds = 0
	checkRates(t, (*work).decodePerSecond, map[string]rateCase{
		"golden vector: 50 tokens in 2.5 s":             {work: goldenVector(), want: 20, wanted: true},
		"golden vector: one token was not decoded":      {work: one},
		"the producer's time of decoding is the better": {work: measured(2), want: 25, wanted: true},
		"a broken time of decoding is not replaced":     {work: measured(math.NaN()), wanted: true, reason: negativeDuration},
		"decoding of no time":                           {work: measured(0), wanted: true, reason: negativeDuration},
		"decoding below 1 ms":                           {work: measured(0.0005), wanted: true, reason: shortDuration},
		"not streaming: no first token":                 {work: unknown},
		"a first token before the request":              {work: after(-0.1), wanted: true, reason: firstTokenOutside},
		"a first token at the end":                      {work: after(3), wanted: true, reason: firstTokenOutside},
		"a first token after the end":                   {work: after(4), wanted: true, reason: firstTokenOutside},
		"a first token at NaN":                          {work: after(math.NaN()), wanted: true, reason: firstTokenOutside},
		"a first token at once":                         {work: after(0), want: 50.0 / 3, wanted: true},
		"less than 1 ms after the first token":          {work: after(2.9995), wanted: true, reason: shortDuration},
		"a span without a duration, which has no parts": {work: noTime, wanted: true, reason: negativeDuration},
		"no output": {work: work{seconds: 3, input: some(5), firstToken: took(1)}},
		"an output below 2 of a failure is not left out": {work: work{seconds: 3, failed: true, output: some(0), firstToken: took(1)}},
	})
}

// measuredNothing is a time that is missing.
var measuredNothing measured

func TestPrefillPerSecond(t *testing.T) {
	prefill := func(seconds float64, input, read, creation count) work {
		return work{seconds: 3, input: input, output: some(51), cacheRead: read, cacheCreation: creation, prefill: took(seconds)}
	}
	none := count{}
	checkRates(t, (*work).prefillPerSecond, map[string]rateCase{
		"input in the time of prefilling":      {work: prefill(0.5, some(100), none, none), want: 200, wanted: true},
		"what a cache gave was not read":       {work: prefill(0.5, some(100), some(40), some(20)), want: 120, wanted: true},
		"a producer that leaves the cache out": {work: prefill(0.5, some(10), some(40), some(20)), want: 60, wanted: true},
		"all from the cache: nothing was read": {work: prefill(0.5, some(100), some(100), none)},
		"no input at all":                      {work: prefill(0.5, none, some(40), none)},
		"no time of prefilling":                {work: goldenVector()},
		"a time of prefilling of zero":         {work: prefill(0, some(100), none, none), wanted: true, reason: negativeDuration},
		"a broken time of prefilling":          {work: prefill(math.NaN(), some(100), none, none), wanted: true, reason: negativeDuration},
		"prefilling below 1 ms":                {work: prefill(0.0009, some(100), none, none), wanted: true, reason: shortDuration},
	})
}

func TestSamplesPerSecond(t *testing.T) {
	checkRates(t, (*work).samplesPerSecond, map[string]rateCase{
		"a batch":                            {work: work{seconds: 2, samples: some(8)}, want: 4, wanted: true},
		"no batch":                           {work: work{seconds: 2}},
		"a batch of no time":                 {work: work{samples: some(8)}, wanted: true, reason: negativeDuration},
		"a batch that does not say its size": {work: work{seconds: 2, samplesPerStep: 7.5}, want: 3.75, wanted: true},
		"a batch that does":                  {work: work{seconds: 2, samples: some(8), samplesPerStep: 7.5}, want: 4, wanted: true},
		"one without a size, and of no time": {work: work{samplesPerStep: 7.5}, wanted: true, reason: negativeDuration},
		"one without a size, and below 1 ms": {work: work{seconds: 0.0005, samplesPerStep: 7.5}, wanted: true, reason: shortDuration},
		"a failed empty one":                 {work: work{seconds: 2, failed: true, samples: some(0)}, wanted: true, reason: failedWithoutOutput},
	})
}

func TestPerSequence(t *testing.T) {
	for name, tt := range map[string]struct {
		work   work
		want   float64
		wanted bool
	}{
		"n > 1: a share each":           {work{sequences: some(4)}, 5, true},
		"n = 1 is the rate itself":      {work{sequences: some(1)}, 0, false},
		"n = 0 is no request":           {work{sequences: some(0)}, 0, false},
		"nobody says n":                 {work{}, 0, false},
		"an embedding has no sequences": {work{sequences: some(4), ofInput: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, wanted := tt.work.perSequence(20)
			assert.InDelta(t, tt.want, got, 0)
			assert.Equal(t, tt.wanted, wanted)
		})
	}
}

func TestWholeInput(t *testing.T) {
	for name, tt := range map[string]struct {
		work work
		want count
	}{
		"no cache":                          {work{input: some(10)}, some(10)},
		"said already":                      {work{input: some(60), cacheRead: some(60), whole: some(120)}, some(120)},
		"said already, without an input":    {work{cacheRead: some(60), whole: some(120)}, some(120)},
		"the conventions count it in":       {work{input: some(100), cacheRead: some(60), cacheCreation: some(40)}, some(100)},
		"more than the input: left out":     {work{input: some(100), cacheRead: some(60), cacheCreation: some(41)}, some(201)},
		"no input is not made of the cache": {work{cacheRead: some(60)}, count{}},
		"a sum beyond what can be counted":  {work{input: some(5), cacheRead: some(math.MaxInt64), cacheCreation: some(9)}, some(math.MaxInt64)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.work.wholeInput())
		})
	}
}

func TestRateThatNoNumberHolds(t *testing.T) {
	w := work{seconds: 0.5, samplesPerStep: math.MaxFloat64}
	_, reason := w.samplesPerSecond()
	assert.Equal(t, invalidValue, reason)
}

func TestSeconds(t *testing.T) {
	assert.InDelta(t, 1.5, seconds(1e9, 25e8), 1e-12)
	assert.InDelta(t, -1.5, seconds(25e8, 1e9), 1e-12)
	assert.InDelta(t, 0, seconds(7, 7), 0)
	assert.Negative(t, seconds(math.MaxUint64, 0), "no overflow")
	assert.Zero(t, seconds(0, 3e9), "the start is unknown")
}
