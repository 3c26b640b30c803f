package serving

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

var (
	// slowRule is that of a page. Smaller shifts come and go with load.
	slowRule = shift.Rule{Least: math.Log(1.75), Blocks: 5, Demand: true}
	// throughputRule is that of a mark.
	throughputRule = shift.Rule{Least: math.Log(1.5), Blocks: 5, Demand: true}
	// lengthRule is that of a ticket, for the tokens of an answer.
	lengthRule = shift.Rule{Least: math.Log(1.7), Blocks: 5}
	// cacheRule is that of a share, which its detector completes.
	cacheRule = shift.Rule{Least: 0.15, Blocks: 3, Mean: true}
)

const (
	// cacheable is the smallest input in tokens that providers of models cache,
	// by the documentation of OpenAI and Anthropic.
	cacheable = 1024
	// leastGenerated is the least output whose rate is measured: of a shorter one
	// the duration is that of its input.
	leastGenerated = 16
)

// Model has what is known about the requests of a service to one model.
type Model struct {
	Outcomes
	fit                          fit
	PerToken, FirstToken, Queued shift.Level
	// Length grows as answers become shorter.
	Length, Cached shift.Level
	Truncated      shift.Proportion
	// Unusable are answers that are empty, or were withheld or refused.
	Unusable shift.Proportion
	Answers  Answers
	// Dimensions are those of embeddings, as names.
	Dimensions            Answers
	Finished, Caches, All Share
	Newest                time.Time
}

// Outcomes are which requests have failed, and how long those took that have not.
type Outcomes struct {
	Failures shift.Proportion
	Times    shift.Level
	Tail     shift.Tail
	// traces are those of the newest requests that Tail has, at the index newest the oldest.
	traces [16][16]byte
	newest int
}

// took adds the logarithm of the time of a request that has not failed. Of a trace the tail
// has one: what makes one request of a task slow does so with all.
func (o *Outcomes) took(now time.Time, trace [16]byte, of shift.Observation) {
	o.Times.Add(now, of, &slowRule)
	if trace == [16]byte{} || !slices.Contains(o.traces[:], trace) {
		o.traces[o.newest], o.newest = trace, (o.newest+1)%len(o.traces)
		o.Tail.Add(now, of.Value, of.Version)
	}
}

// Share counts how much of the telemetry has an attribute.
type Share struct{ known, all float64 }

// add adds a request.
func (s *Share) add(known bool) {
	// What came long ago fades.
	const memory = 1 - 1.0/1000
	s.known, s.all = s.known*memory+shared.OneIf[float64](known), s.all*memory+1
}

// Ratio returns the fraction, NaN without requests.
func (s *Share) Ratio() float64 { return s.known / s.all }

// add adds a request to the model.
func (m *Model) add(now time.Time, s *Span, version uint8) {
	m.Newest = now
	m.Failures.Add(now, s.is(Failed), version)
	if s.is(Failed) {
		return // how long it took says nothing about those that succeed
	}
	timed, seconds, input, output := s.Seconds > 0, math.Log(s.Seconds), logTokens(s.Input), logTokens(s.Output)
	m.All.add(timed)
	if timed && m.fit.learn(seconds, output) {
		m.took(now, s.Trace, m.fit.duration(seconds, input, output, version))
	}
	if s.FirstToken > 0 {
		m.FirstToken.Add(now, observed(math.Log(s.FirstToken), version, input), &slowRule)
	}
	if s.Queued > 0 {
		m.Queued.Add(now, observed(math.Log(s.Queued), version, input), &slowRule)
	}
	if timed && s.Output >= leastGenerated {
		// A shorter answer has a lower rate.
		m.PerToken.Add(now, observed(seconds-math.Log(float64(s.Output)), version, input, -output), &throughputRule)
	}
	if s.Output > 0 {
		// It grows as answers become shorter.
		m.Length.Add(now, observed(-output, version), &lengthRule)
	}
	m.Finished.add(s.is(Finished))
	if s.is(Finished) {
		m.Truncated.Add(now, s.is(Cut), version)
	}
	if s.Input >= cacheable {
		m.Caches.add(s.Cached >= 0)
		if s.Cached >= 0 {
			// It grows as the share falls.
			m.Cached.Add(now, observed(-min(float64(s.Cached)/float64(s.Input), 1), version), &cacheRule)
		}
	}
	if s.Output >= 0 || s.is(Finished) {
		m.Unusable.Add(now, s.is(Filtered) || s.Output == 0 || s.Output == 1, version)
	}
	m.Answers.add(now, s.Answered)
	if s.Dimensions > 0 {
		m.Dimensions.add(now, strconv.FormatInt(s.Dimensions, 10))
	}
}

// observed returns an observation, and how much work it took, as far as that is known.
func observed(value float64, version uint8, work ...float64) shift.Observation {
	o := shift.Observation{Value: value, Work: [shift.Works]float64{math.NaN(), math.NaN()}, Version: version}
	copy(o.Work[:], work)
	return o
}

// fitted is the number of requests from which the effect of the output on the
// duration is estimated, once.
const fitted = 256

// fit is the least-squares line of the logarithm of the duration over that of the
// output tokens. What remains is the duration at the typical output: the analysis
// of covariance (Fisher, Statistical Methods for Research Workers, 1932).
type fit struct {
	n                        int
	sumX, sumY, sumXX, sumXY float64
	slope, typical           float64
}

// learn reports whether the duration of a request can be compared, by the logarithms of its
// seconds and of its output. A request with output adds to the line as long as that is unknown.
func (f *fit) learn(seconds, output float64) bool {
	switch {
	case !(output > 0):
		// It has no output, as an embedding, or does not say.
		return f.n == 0
	case f.n >= fitted:
		return true
	}
	x, y := output, seconds
	f.sumX, f.sumY, f.sumXX, f.sumXY = f.sumX+x, f.sumY+y, f.sumXX+x*x, f.sumXY+x*y
	if f.n++; f.n < fitted {
		return false
	}
	f.typical = f.sumX / fitted
	if variance := f.sumXX/fitted - f.typical*f.typical; variance > 1e-6 {
		// Time does not shrink with the output, nor grow faster than it.
		f.slope = min(max((f.sumXY/fitted-f.typical*f.sumY/fitted)/variance, 0), 1)
	}
	return false
}

// duration returns the observation of the duration of a request that can be compared.
func (f *fit) duration(seconds, input, output float64, version uint8) shift.Observation {
	o := observed(seconds, version, input)
	if output > 0 {
		o.Value -= f.slope * (output - f.typical)
		o.Work[1] = (1 - f.slope) * output
	}
	return o
}

// typicalCalls is the number of calls whose mean duration is typical of a function.
const typicalCalls = 30

// typical is the mean logarithm of the durations of a function's first calls.
type typical struct {
	n   int
	sum float64
}

// relative returns the logarithm of a duration less what is typical. ok is false as
// long as that is unknown.
func (t *typical) relative(value float64) (relative float64, ok bool) {
	if t.n < typicalCalls {
		t.n++
		t.sum += value
		return 0, false
	}
	return value - t.sum/typicalCalls, true
}

// logTokens returns the logarithm of a number of tokens, NaN if it is unknown.
func logTokens(n int64) float64 {
	if n < 0 {
		return math.NaN()
	}
	return math.Log(1 + float64(n))
}

const (
	// learned is the number of answers after which other models than those that
	// gave them are unusual.
	learned = 100
	// maxNames limits the names of models that answer for one. With more they are
	// a router's, and none is unusual.
	maxNames = 8
	// leastAnswers is the least number of answers of unusual models, and
	// unlikely the greatest probability that these are chance.
	leastAnswers, unlikely = 5, 1e-7
	// recentAnswers are looked at to see whether an unusual model still answers.
	recentAnswers = 100
	// usualAfter is how long another model answers until it is usual.
	usualAfter = 24 * time.Hour
)

// Answers has the models that answer for a requested one.
type Answers struct {
	names []answering
	// all is the number of answers that are usual.
	all int
	// Since is when the first answer of an unusual model came, zero without one;
	// of and others are the numbers of its answers and of all since then.
	Since      time.Time
	Of, Others int
	// usualSince is the number of answers since the last unusual one.
	usualSince  int
	Substituted bool
}

// answering is a model that answers.
type answering struct {
	name    string
	count   int
	unusual bool
}

// add adds an answer of a model; "" is unknown.
func (a *Answers) add(now time.Time, name string) {
	if name == "" || len(a.names) > maxNames {
		return
	}
	at := slices.IndexFunc(a.names, func(one answering) bool { return one.name == name })
	if at < 0 {
		at = len(a.names)
		a.names = append(a.names, answering{name: strings.Clone(name), unusual: a.all >= learned})
	}
	known := &a.names[at]
	known.count++
	if known.unusual && a.Since.IsZero() {
		a.Since, a.Of, a.Others, a.usualSince = now, 0, 0, 0
	}
	if a.Since.IsZero() {
		a.all++
		return
	}
	a.Others++
	a.usualSince++
	if known.unusual {
		a.Of++
		a.usualSince = 0
	}
	a.settle(now)
}

// settle concludes whether an unusual model answers, and makes it usual when it
// has for a day, or when so few of many answers are its own that it always may
// have been there.
func (a *Answers) settle(now time.Time) {
	if !a.Substituted && a.Of >= leastAnswers {
		a.Substituted = shift.Binomial(a.Of, a.Others, a.novelty()) < unlikely
	}
	usual := now.Sub(a.Since) >= usualAfter || !a.Substituted && a.Others >= 10*recentAnswers
	for i := range a.names {
		a.names[i].unusual = a.names[i].unusual && !usual
	}
	if usual || a.usualSince >= recentAnswers {
		a.all += a.Others
		a.Since, a.Substituted = time.Time{}, false
	}
}

// novelty returns the probability that an answer is of a model that never
// answered before: by Good and Turing, the share of models with one answer (Good,
// The Population Frequencies of Species, 1953), and at least one answer.
func (a *Answers) novelty() float64 {
	once := 1
	for i := range a.names {
		once += shared.OneIf[int](!a.names[i].unusual && a.names[i].count == 1)
	}
	return float64(once) / float64(a.all+1)
}

// Most returns the usual and the unusual model that answer most, or "".
func (a *Answers) Most() (usual, unusual string) {
	var most [2]answering
	for _, n := range a.names {
		of := &most[shared.OneIf[int](n.unusual)]
		if n.count > of.count {
			*of = n
		}
	}
	return most[0].name, most[1].name
}
