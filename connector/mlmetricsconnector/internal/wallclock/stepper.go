package wallclock

import "slices"

// medianOf is the number of newest steps whose median is the typical step.
const medianOf = 31

// Step has the durations of one step.
type Step struct {
	// Phases are nanoseconds, the union of the spans of each phase; 0 if there
	// is none.
	Phases [phases]int64
	// Other is the rest of the step, in nanoseconds.
	Other int64
	// Whole is the duration of the step, from the end of the previous one, in
	// nanoseconds.
	Whole int64
}

// stepper divides time into steps.
type stepper struct {
	// forwards reports whether the program has shown a forward pass. If so, an
	// optimizer may be one of several of the step, which is over with the next
	// forward pass.
	forwards bool
	// under is the current step, start its start, lost whether its time is
	// incomplete.
	under Step
	start int64
	lost  bool
	// held is the step whose optimizer last ended at heldEnd; 0 means none.
	held     Step
	heldEnd  int64
	heldLost bool

	lastEnd int64
	usual   usual
}

// usual has the durations of the newest steps, in nanoseconds.
type usual struct {
	times [medianOf]int64
	seen  int
}

// learn adds the duration of a step, in nanoseconds, to those of the median.
func (s *stepper) learn(duration int64) {
	if duration > 0 {
		s.usual.times[s.usual.seen%medianOf] = duration
		s.usual.seen++
	}
}

// median returns the duration of a typical step, in nanoseconds, 0 if there is
// none yet.
func (s *stepper) median() int64 {
	n := min(s.usual.seen, medianOf)
	if n == 0 {
		return 0
	}
	sorted := s.usual.times
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

// spend attributes an interval to the phases of the step.
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

// end records the end of a step, or of an optimizer while no other one runs.
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
