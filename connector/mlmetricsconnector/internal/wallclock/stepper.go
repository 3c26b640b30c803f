package wallclock

import "slices"

// medianOf is how many of the newest steps the usual time of a step is taken
// from.
const medianOf = 31

// Step is how long the phases of one step took.
type Step struct {
	// Phases are nanoseconds, the union of the spans of each phase; 0 where
	// there was none.
	Phases [phases]int64
	// Other is the rest of the step, in nanoseconds.
	Other int64
	// Whole is all of it, from the end of the step before to its own, in
	// nanoseconds.
	Whole int64
}

// stepper divides time into steps.
type stepper struct {
	// forwards is true once the program has shown a forward pass. An optimizer
	// that ends then may be one of several of the step: the step is over with
	// the next forward.
	forwards bool
	// under is the step that is under way, start when it began, lost whether it
	// cannot be told.
	under Step
	start int64
	lost  bool
	// held is the step whose optimizer has ended last at heldEnd; 0 is none.
	held     Step
	heldEnd  int64
	heldLost bool

	lastEnd int64
	usual   usual
}

// usual are the times of the newest steps, in nanoseconds.
type usual struct {
	times [medianOf]int64
	seen  int
}

// learn adds the time of a step, in nanoseconds, to those that the median is
// taken from.
func (s *stepper) learn(duration int64) {
	if duration > 0 {
		s.usual.times[s.usual.seen%medianOf] = duration
		s.usual.seen++
	}
}

// median is the usual time of a step, in nanoseconds, and 0 before there is
// one.
func (s *stepper) median() int64 {
	n := min(s.usual.seen, medianOf)
	if n == 0 {
		return 0
	}
	sorted := s.usual.times
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

// spend gives a piece of time to the phases of the step.
func (s *stepper) spend(open *moment, length int64) {
	timed := false
	for phase := range phases {
		if open.phases[phase] > 0 {
			s.under.Phases[phase] += length
			timed = true
		}
	}
	if !timed {
		s.under.Other += length
	}
}

// end notes that a step ended, or an optimizer of it while no other one went
// on.
func (s *stepper) end(at int64, whole bool, into *Totals) {
	for phase := range s.held.Phases {
		s.held.Phases[phase] += s.under.Phases[phase]
	}
	s.held.Other += s.under.Other
	s.heldLost = s.heldLost || s.lost
	s.heldEnd = at
	s.under, s.lost = Step{}, false
	if whole || !s.forwards {
		s.settle(into)
	}
}

// settle ends the step whose optimizer has ended, if there is one.
func (s *stepper) settle(into *Totals) {
	if s.heldEnd == 0 {
		return
	}
	if !s.heldLost {
		s.held.Whole = s.heldEnd - s.start
		into.Steps = append(into.Steps, s.held)
		s.learn(s.held.Whole)
	}
	s.start = s.heldEnd
	s.held, s.heldEnd, s.heldLost = Step{}, 0, false
}
