// Package pace compares how long the steps of a run and their phases take now with
// how long they usually do.
package pace

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// RecentSteps is the number of newest steps that are recent.
	RecentSteps = 20
	// newestSteps is the number of these that show whether what was recent lasts.
	newestSteps = RecentSteps / 2
	// usualSteps is the number of steps before these that are usual, and
	// leastUsualSteps the smallest number from which a usual time is known.
	usualSteps, leastUsualSteps = 500, 50
	// clearly is the least z of the rank-sum test of Mann and Whitney (1947) of
	// recent steps against usual ones: by chance once in 3 million windows,
	// whatever the distribution of step times is. A run of one step a second has
	// 4 320 windows a day.
	clearly = 5.0
)

// Steps has the durations of the newest steps of one rank. The zero Steps is
// ready to use. It is not safe for concurrent use.
type Steps struct {
	// seconds are at most RecentSteps+usualSteps durations, the newest last.
	seconds []float32
	// usual has the durations of those that are not recent, in order of their size.
	usual []float32
	// times is the result of Times, known while changed is false.
	times   StepTimes
	changed bool
}

// StepTimes are typical durations of steps, in seconds; 0 means unknown.
type StepTimes struct {
	// Recent is the median of the last 20 steps, or of all if there are fewer, and
	// Newest that of the last 10.
	Recent, Newest float64
	// Usual is the median of the up to 500 steps before these, at least 50.
	Usual float64
	// Shift is how clearly the recent steps take longer than the usual ones: the z
	// of the Mann-Whitney test. 5 and more is no chance.
	Shift float64
}

// Longer reports whether recent steps take clearly, and more than times the usual
// time.
func (t StepTimes) Longer(times float64) bool {
	return t.Usual > 0 && t.Shift >= clearly && t.Recent > times*t.Usual
}

// Add adds the duration of a step.
func (s *Steps) Add(d time.Duration) {
	if d <= 0 {
		return
	}
	s.changed = true
	if len(s.seconds) == RecentSteps+usualSteps {
		i, _ := slices.BinarySearch(s.usual, s.seconds[0])
		s.usual = slices.Delete(s.usual, i, i+1)
		s.seconds = slices.Delete(s.seconds, 0, 1)
	}
	s.seconds = append(s.seconds, float32(d.Seconds()))
	if n := len(s.seconds) - RecentSteps; n > 0 {
		one := s.seconds[n-1] // which is no longer recent
		i, _ := slices.BinarySearch(s.usual, one)
		s.usual = slices.Insert(s.usual, i, one)
	}
}

// Known reports whether a usual time is known.
func (s *Steps) Known() bool { return len(s.seconds) >= RecentSteps+leastUsualSteps }

// at returns the duration of the step that ended before age others.
func (s *Steps) at(age int) float64 { return float64(s.seconds[len(s.seconds)-1-age]) }

// Times returns the typical durations.
func (s *Steps) Times() StepTimes {
	if !s.changed {
		return s.times
	}
	s.changed, s.times = false, StepTimes{}
	var newest [RecentSteps]float64
	recent := newest[:min(RecentSteps, len(s.seconds))]
	for age := range recent {
		recent[age] = s.at(age)
	}
	// Sorting the newest ones leaves the others where they are.
	s.times.Newest = shared.Median(recent[:min(newestSteps, len(recent))])
	s.times.Recent = shared.Median(recent)
	if n := len(s.usual); n >= leastUsualSteps {
		s.times.Usual = (float64(s.usual[(n-1)/2]) + float64(s.usual[n/2])) / 2
		s.times.Shift = rankSum(recent, s.usual)
	}
	return s.times
}

// rankSum returns the z of the Mann-Whitney test that values tend to be larger
// than others, which are in order. Equal values count as a half.
func rankSum(values []float64, others []float32) float64 {
	larger := 0.0
	for _, v := range values {
		below, _ := slices.BinarySearch(others, float32(v))
		equal := sort.Search(len(others)-below, func(i int) bool { return float64(others[below+i]) > v })
		larger += float64(below) + float64(equal)/2
	}
	n, m := float64(len(values)), float64(len(others))
	return (larger - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
}

// SlowFor returns how long, and for how many steps, the recent ones have been
// longer than usual: since the start of the step from which on those that take
// more than times the usual seconds outnumber the others most.
func (s *Steps) SlowFor(usual, times float64) (lasted time.Duration, steps int) {
	var sum, since float64
	surplus, most := 0, 0
	for age := range min(RecentSteps, len(s.seconds)) {
		step := s.at(age)
		sum += step
		if step <= times*usual {
			surplus--
			continue
		}
		if surplus++; surplus > most {
			most, since, steps = surplus, sum, age+1
		}
	}
	return time.Duration(since * float64(time.Second)), steps
}

// normal makes the median absolute deviation of normally distributed values
// their standard deviation (Hampel 1974).
const normal = 1.4826

// Spread returns the median of values, and their median absolute deviation times
// 1.4826, which is the standard deviation of normally distributed values and
// ignores outliers. It changes values.
func Spread(values []float64) (median, spread float64) {
	median = shared.Median(values)
	for i := range values {
		values[i] = math.Abs(values[i] - median)
	}
	return median, normal * shared.Median(values)
}
