// Package checkpoints compares the time since the last checkpoint of a rank with
// the rank's own usual interval.
package checkpoints

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// remembered is the number of newest intervals that are compared, least the
	// smallest number from which an interval is usual.
	remembered, least = 8, 4
	// leastExact is the smallest number if all have the same number of steps, as of a
	// program that saves every so many. Spans arrive late, so that one may count for
	// the interval before.
	leastExact, exactly = 2, 2
	// regular is how many times the median the longest interval is at most, in
	// steps or in seconds. The checkpoints of a rank that is less regular, as of
	// one that saves on demand, are never overdue.
	regular = 1.25
	// overdue is how many times the longest interval the time since the last
	// checkpoint is, in steps and in seconds, before the next one is overdue.
	overdue = 2
)

// interval is what lies between two checkpoints.
type interval struct {
	steps int64
	time  time.Duration
	// validated reports whether the rank validated once, right before the
	// checkpoint.
	validated bool
}

// Saves has the checkpoints of one rank. The zero Saves is ready to use. It is not
// safe for concurrent use.
type Saves struct {
	intervals [remembered]interval
	n         int
	// last and steps are the time and the number of steps of the last checkpoint.
	last  time.Time
	steps int64
	// cut reports whether something other than a checkpoint is at last.
	cut bool
	// validations is the number of validations since, validatedAt the number of
	// steps at the newest one.
	validations int
	validatedAt int64
}

// Save adds a checkpoint, or a part of one, that arrived at now after that many
// steps.
func (s *Saves) Save(now time.Time, steps int64) {
	if !s.last.IsZero() && steps <= s.steps {
		if steps == s.steps {
			s.last = now
		}
		return
	}
	if !s.last.IsZero() && !s.cut {
		s.intervals[s.n%remembered] = interval{
			steps: steps - s.steps, time: now.Sub(s.last),
			validated: s.validations == 1 && s.validatedAt == steps,
		}
		s.n++
	}
	s.last, s.steps, s.cut, s.validations = now, steps, false, 0
}

// Validate adds a validation after that many steps.
func (s *Saves) Validate(steps int64) {
	if s.validations == 0 || steps != s.validatedAt {
		s.validations++
		s.validatedAt = steps
	}
}

// Restart begins an attempt, or goes on after a silence: the interval begins again.
func (s *Saves) Restart(now time.Time, steps int64) {
	if !s.last.IsZero() {
		s.last, s.steps, s.cut, s.validations = now, steps, true, 0
	}
}

// Last returns when the last checkpoint arrived, or zero.
func (s *Saves) Last() time.Time {
	if s.cut {
		return time.Time{}
	}
	return s.last
}

// Overdue is a checkpoint that is missing.
type Overdue struct {
	// Since is when it was due. Last is the time since the last checkpoint, and
	// Steps the number of steps.
	Since time.Time
	Last  time.Duration
	Steps int64
	// Usual and UsualSteps are the medians of the Count newest intervals.
	Usual      time.Duration
	UsualSteps int64
	Count      int
}

// Overdue returns the checkpoint that is missing after that many steps. late is
// false if none is, and usual reports whether the rank has a usual interval.
func (s *Saves) Overdue(now time.Time, steps int64) (o Overdue, late, usual bool) {
	n := min(s.n, remembered)
	if n < leastExact {
		return o, false, false
	}
	known := s.intervals[:n]
	fewestSteps, usualSteps, mostSteps := typical(known, func(i interval) int64 { return i.steps })
	_, median, longest := typical(known, func(i interval) int64 { return int64(i.time) })
	o = Overdue{
		Since: s.last.Add(time.Duration(median)), Last: now.Sub(s.last), Steps: steps - s.steps,
		Usual: time.Duration(median), UsualSteps: usualSteps, Count: n,
	}
	isRegular := n >= least || mostSteps-fewestSteps <= exactly && mostSteps > 10*exactly
	isRegular = isRegular && (float64(mostSteps) <= regular*float64(usualSteps) || float64(longest) <= regular*float64(median))
	if !isRegular {
		return o, false, false
	}
	if o.Steps <= overdue*mostSteps || int64(o.Last) <= overdue*longest {
		return o, false, true
	}
	best := !slices.ContainsFunc(known, func(i interval) bool { return !i.validated })
	return o, !best || s.validations == 0, true
}

// typical returns the smallest, the median and the largest length of intervals.
func typical(known []interval, length func(interval) int64) (smallest, median, largest int64) {
	lengths := mlattr.Mapped(known, length)
	slices.Sort(lengths)
	return lengths[0], lengths[len(lengths)/2], lengths[len(lengths)-1]
}
