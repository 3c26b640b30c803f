package anomalies

import (
	"math"
	"math/rand/v2"
	"time"
)

// The noise of a healthy fleet. It was chosen before anything was measured, and is no
// function of what the detectors do.
const (
	// exportWait is the longest wait of a client's batch processor.
	exportWait = 5 * time.Second
	// lost, twice and late are the shares of requests that never arrive, arrive
	// twice, and arrive after lateMean more, at most lateMost.
	lost, twice, late  = 0.0005, 0.001, 0.002
	lateMean, lateMost = 2 * time.Minute, 10 * time.Minute
	// Each host's telemetry is cut off once in cutEvery, for cutMedian with a
	// log-normal spread.
	cutEvery, cutMedian, cutSpread = 4 * 24 * time.Hour, time.Minute, 1.0
	// The collector restarts once in restartEvery and is away for up to restartMost.
	restartEvery, restartMost = 24 * time.Hour, 90 * time.Second

	// Step times: a run's median is between stepLeast and stepMost; it wanders by
	// wander (an autoregression with wanderMemory a step) and differs by jitter from
	// step to step (other lengths of sequences).
	stepLeast, stepMost          = 10 * time.Second, 60 * time.Second
	wander, wanderMemory, jitter = 0.06, 0.95, 0.04
	// A share of stall steps waits at least stallLeast more, with a Pareto tail, at
	// most stallMost: garbage collection, a network that retries, storage.
	stall                 = 0.002
	stallLeast, stallTail = 2 * time.Second, 1.5
	stallMost             = 2 * time.Minute
	// Once in contendEvery others use the same storage or network for up to
	// contendMost, and steps take 1.2 to 1.8 times as long.
	contendEvery, contendMost = 24 * time.Hour, 3 * time.Minute
	// The first step of an attempt also loads and compiles for up to loadMost; the
	// next ones are longer by 2/n.
	loadLeast, loadMost, warmSteps = 20 * time.Second, 3 * time.Minute, 10
	// A checkpoint is written every 30 to 60 minutes. A run's median is between
	// saveLeast and saveMost, with a log-normal spread; saveContended of them take up
	// to 4 times as long.
	saveLeast, saveMost, saveSpread = 5 * time.Second, time.Minute, 0.3
	saveContended                   = 0.001
	// A run is preempted once in preemptEvery and continues after preemptLeast to
	// preemptMost; it ends after runLeast to runMost.
	preemptEvery              = 48 * time.Hour
	preemptLeast, preemptMost = 5 * time.Minute, 40 * time.Minute
	runLeast, runMost         = 12 * time.Hour, 96 * time.Hour

	// Services have a day and a night, the least being nightShare of the most, and
	// weekends with weekendShare of it. Once in burstEvery there is a burst of up to
	// burstMost with 3 to 6 times the demand.
	nightShare, weekendShare = 0.35, 0.6
	burstEvery, burstMost    = 24 * time.Hour, 20 * time.Minute
	// A request takes a log-normal multiple of its system's usual time, a share
	// slowShare up to 10 times as much.
	requestSpread, slowShare = 0.35, 0.02
	// The tokens of a call have a log-normal spread; of a share uncached nothing is
	// cached, usualTruncated of the answers end at their limit, and usualToolErrors of
	// the calls of tools fail.
	tokenSpread, uncached           = 0.6, 0.15
	usualTruncated, usualToolErrors = 0.02, 0.01
	// usualErrors of the requests fail; once in blipEvery, blipErrors for up to
	// blipMost.
	usualErrors           = 0.004
	blipEvery, blipErrors = 48 * time.Hour, 0.2
	blipMost              = 30 * time.Second
)

func spread(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Float64() * float64(most))
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + spread(random, most-least)
}

// evenly returns a time between two, each doubling as likely as another.
func evenly(random *rand.Rand, least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), random.Float64()))
}

func logNormal(random *rand.Rand, median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*random.NormFloat64()))
}

func exponential(random *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(mean))
}

// stepTimes are the lengths of a run's steps.
type stepTimes struct {
	random *rand.Rand
	median time.Duration
	// state is that of the autoregression.
	state float64
	// number counts the steps of the attempt.
	number         int
	contended      float64
	contendedUntil time.Time
	save           time.Duration
	// saveEvery is the number of steps between two checkpoints.
	saveEvery int
}

func newStepTimes(random *rand.Rand) *stepTimes {
	t := &stepTimes{random: random, median: evenly(random, stepLeast, stepMost), save: evenly(random, saveLeast, saveMost)}
	t.saveEvery = int(between(random, 30*time.Minute, time.Hour) / t.median)
	return t
}

// next returns the length of the next step, and of the checkpoint before it, 0
// without one.
func (t *stepTimes) next() (step, save time.Duration) {
	t.number++
	t.state = wanderMemory*t.state + math.Sqrt(1-wanderMemory*wanderMemory)*wander*t.random.NormFloat64()
	times := math.Exp(t.state + jitter*t.random.NormFloat64())
	now := time.Now()
	if t.random.Float64() < t.median.Hours()/contendEvery.Hours() {
		t.contended, t.contendedUntil = 1.2+0.6*t.random.Float64(), now.Add(spread(t.random, contendMost))
	}
	if now.Before(t.contendedUntil) {
		times *= t.contended
	}
	if t.number > 1 && t.number <= warmSteps {
		times *= 1 + 2/float64(t.number)
	}
	step = time.Duration(times * float64(t.median))
	if t.number == 1 {
		step += between(t.random, loadLeast, loadMost)
	}
	if t.random.Float64() < stall {
		step += min(time.Duration(float64(stallLeast)*math.Pow(1-t.random.Float64(), -1/stallTail)), stallMost)
	}
	if t.number%t.saveEvery == 0 {
		save = logNormal(t.random, t.save, saveSpread)
		if t.random.Float64() < saveContended {
			save = time.Duration(float64(save) * (1 + 3*t.random.Float64()))
		}
	}
	return step, save
}

// demand returns the share of a service's greatest usual demand at a time of the
// week, without bursts.
func demand(at time.Time) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	day := (1 + math.Cos(2*math.Pi*(hour-14)/24)) / 2
	share := nightShare + (1-nightShare)*day
	if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
		share *= weekendShare
	}
	return share
}

// losses is the loss of a run that learns: a power law with noise that has a memory
// and outliers.
type losses struct {
	random *rand.Rand
	step   int
	state  float64
}

// next returns the loss of the next step.
func (l *losses) next() float64 {
	l.step++
	l.state = 0.9*l.state + 0.02*l.random.NormFloat64()
	// Student's t with 3 degrees of freedom.
	var squares float64
	for range 3 {
		x := l.random.NormFloat64()
		squares += x * x
	}
	tail := l.random.NormFloat64() / math.Sqrt(squares/3)
	return 1.6 + 3*math.Pow(float64(l.step+10), -0.35) + l.state + 0.03*tail
}
