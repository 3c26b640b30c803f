// Package pace compares what a program does now with what it usually does: how
// long its steps take, and how many of its requests fail.
package pace

import (
	"slices"
	"time"
)

const (
	// recentSteps is the number of newest steps that are recent.
	recentSteps = 20
	// usualSteps is the number of steps before these that are usual, and
	// leastUsualSteps the smallest number from which a usual time is known.
	usualSteps, leastUsualSteps = 500, 50
	// slower is how many times the usual time a slow run takes for a step.
	slower = 1.3
)

// Steps has the durations of the newest steps of one rank. The zero Steps is
// ready to use. It is not safe for concurrent use.
type Steps struct {
	// seconds is a ring of at most recentSteps+usualSteps durations; oldest is
	// the index of its first one.
	seconds []float32
	oldest  int
	// times is the result of Times, known while changed is false.
	times   StepTimes
	changed bool
}

// StepTimes are typical durations of steps, in seconds; 0 means unknown.
type StepTimes struct {
	// Recent is the median of the last 20 steps, or of all if there are fewer.
	Recent float64
	// Usual is the median of the up to 500 steps before these, at least 50.
	Usual float64
}

// Slow reports whether recent steps take more than 1.3 times the usual time.
func (t StepTimes) Slow() bool { return t.Usual > 0 && t.Recent > slower*t.Usual }

// Add adds the duration of a step.
func (s *Steps) Add(d time.Duration) {
	if d <= 0 {
		return
	}
	s.changed = true
	if len(s.seconds) < recentSteps+usualSteps {
		s.seconds = append(s.seconds, float32(d.Seconds()))
		return
	}
	s.seconds[s.oldest] = float32(d.Seconds())
	s.oldest = (s.oldest + 1) % len(s.seconds)
}

// at returns the duration of the step that ended before age others.
func (s *Steps) at(age int) float64 {
	return float64(s.seconds[(s.oldest+len(s.seconds)-1-age)%len(s.seconds)])
}

// Times returns the typical durations.
func (s *Steps) Times() StepTimes {
	if !s.changed {
		return s.times
	}
	s.changed, s.times = false, StepTimes{}
	newest := make([]float64, len(s.seconds))
	for age := range newest {
		newest[age] = s.at(age)
	}
	recent := min(recentSteps, len(newest))
	s.times.Recent = Median(newest[:recent])
	if usual := newest[recent:]; len(usual) >= leastUsualSteps {
		s.times.Usual = Median(usual)
	}
	return s.times
}

// SlowFor returns how long the recent steps have been slow: the time since the
// start of the slow step from which on the slow ones outnumber the others most.
// usual is in seconds.
func (s *Steps) SlowFor(usual float64) time.Duration {
	var lasted, since float64
	surplus, most := 0, 0
	for age := range min(recentSteps, len(s.seconds)) {
		step := s.at(age)
		lasted += step
		if step <= slower*usual {
			surplus--
			continue
		}
		if surplus++; surplus > most {
			most, since = surplus, lasted
		}
	}
	return time.Duration(since * float64(time.Second))
}

// Median returns the median of values, the mean of the two in the middle if their
// number is even, and 0 if there are none. It sorts values.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
