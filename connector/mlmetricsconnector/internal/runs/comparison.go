package runs

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// warmupSteps are the steps of an attempt after a restart that are not compared
	// with others: kernels are compiled and caches filled again.
	warmupSteps = 10
	// longerThan is how many times the usual time the steps of a run take from which
	// on they do not become usual, and asUsual the time from which on they do.
	longerThan, asUsual = 1.1, 1.05
)

// comparison compares the steps of a rank with those before.
type comparison struct {
	pace   pace.Steps
	level  pace.Level
	phases pace.Phases
	// warmup is the number of steps until steps are compared again, without what
	// was left out.
	warmup  int
	without Exclusions
}

// Exclusions is what was left out of the comparison of steps, by exclusionNames.
type Exclusions [4]bool

var exclusionNames = [...]string{"checkpoint", "validation", "lower demand", "restart"}

// compare adds a step to those that are compared, without the time of checkpoints
// and validations in it, and without the time in which a program that works on
// demand has nothing to do.
func (c *comparison) compare(step wallclock.Step, onDemand bool) {
	if c.warmup > 0 && c.pace.Known() {
		c.warmup--
		c.without[3] = true
		return
	}
	left := [...]wallclock.Phase{wallclock.Checkpoint, wallclock.Validation, wallclock.NoPhase}
	for i, is := range [...]bool{step.Phases[left[0]] > 0, step.Phases[left[1]] > 0, onDemand} {
		if is {
			c.without[i] = true
			step.Whole -= step.Phases[left[i]]
			step.Phases[left[i]] = 0
		}
	}
	if step.Whole > 0 {
		c.pace.Add(time.Duration(step.Whole))
		c.level.Add(time.Duration(step.Whole))
		c.phases.Add(step.Phases[:], step.Whole, step.Phases[wallclock.DataLoad]+step.Phases[wallclock.Forward])
	}
}

// speed returns how long the steps take.
func (c *comparison) speed() Speed {
	s := Speed{Steps: c.pace.Times(), Shift: c.level.Shift(), Drift: c.level.Drift(), Without: c.without}
	sum := 0.0
	for i, phase := range [...]wallclock.Phase{wallclock.DataLoad, wallclock.Forward, wallclock.Backward} {
		s.Own[i], _ = c.phases.Typical(int(phase))
		sum += s.Own[i].Phase
		s.Own[i].Phase = sum
	}
	return s
}

// slowFor returns how long the rank's steps have taken more than times the usual
// seconds. keep reports whether to keep what their phases took before.
func (c *clock) slowFor(usual, times float64, keep bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasted, steps := c.pace.SlowFor(usual, times)
	if keep {
		c.phases.Keep(steps)
	}
	return lasted
}

// Growths returns what became of the rank's phases since the steps of its run take
// longer.
func (r *Rank) Growths() ([pace.MaxPhases]pace.Growth, bool) {
	r.clock.mu.Lock()
	defer r.clock.mu.Unlock()
	return r.clock.phases.Growths()
}

// Steps is how long the steps of a run take.
type Steps struct {
	// Times are those of the median rank.
	Times pace.StepTimes
	// Longer is since when they take clearly longer than usual, zero if they do not.
	Longer time.Time
	// Shift is how the level of most ranks has changed, and Drift how it has wandered.
	Shift, Drift pace.Shift
	// usual is what was usual then.
	usual float64
}

// compareSteps determines since when the steps of a run take longer.
func (r *Run) compareSteps() {
	r.Steps.Times = r.stepTimes()
	r.Steps.Shift = r.shift(func(rank *Rank) *pace.Shift { return &rank.Shift })
	r.Steps.Drift = r.shift(func(rank *Rank) *pace.Shift { return &rank.Drift })
	switch times := r.Steps.Times; {
	case r.State != Running || !r.Steps.Longer.IsZero() && times.Recent <= asUsual*times.Usual:
		r.Steps.Longer = time.Time{}
	case r.Steps.Longer.IsZero() && times.Longer(longerThan):
		r.Steps.usual = times.Usual
		r.Steps.Longer = r.longerSince(longerThan, true)
	}
}

// stepTimes returns the step times of the median rank. While steps take longer,
// they do not become usual. Ranks that have moved have the usual time of where they
// were until they have one.
func (r *Run) stepTimes() pace.StepTimes {
	var recents, newests, usuals, shifts, earlier []float64
	for _, rank := range r.Ranks {
		switch {
		case rank.Missing:
		case rank.Moved && rank.Steps.Usual > 0 && (r.Members.World == 0 || rank.Program.World == int64(r.Members.World)):
			earlier = append(earlier, rank.Steps.Usual)
		case rank.Moved:
		case rank.Steps.Recent > 0:
			recents, newests = append(recents, rank.Steps.Recent), append(newests, rank.Steps.Newest)
			if rank.Steps.Usual > 0 {
				usuals = append(usuals, rank.Steps.Usual)
				shifts = append(shifts, rank.Steps.Shift)
			}
		}
	}
	times := pace.StepTimes{Recent: shared.Median(recents), Newest: shared.Median(newests), Usual: shared.Median(usuals), Shift: shared.Median(shifts)}
	if len(usuals) == 0 && len(earlier) > 0 {
		times.Usual, times.Shift = shared.Median(earlier), math.Inf(1)
	}
	if !r.Steps.Longer.IsZero() {
		times.Usual = r.Steps.usual
	}
	return times
}

// shift returns a change of the level of the median rank, if that of more than half of
// the ranks has changed.
func (r *Run) shift(change func(*Rank) *pace.Shift) (of pace.Shift) {
	if r.State != Running {
		return of
	}
	var usual, now, lasted []float64
	ranks := 0
	for _, rank := range r.Ranks {
		if rank.Missing || rank.Moved || rank.Steps.Recent == 0 {
			continue
		}
		ranks++
		if s := change(rank); s.Steps > 0 {
			usual, now, lasted = append(usual, s.Usual), append(now, s.Now), append(lasted, float64(s.Lasted))
			of.Steps = max(of.Steps, s.Steps)
		}
	}
	if 2*len(usual) <= ranks {
		return pace.Shift{}
	}
	of.Usual, of.Now, of.Lasted = shared.Median(usual), shared.Median(now), time.Duration(shared.Median(lasted))
	return of
}

// LongerSince returns since when the steps of the median rank take more than times the
// usual time.
func (r *Run) LongerSince(times float64) time.Time { return r.longerSince(times, false) }

// longerSince does so. keep reports whether to keep what their phases took before.
func (r *Run) longerSince(times float64, keep bool) time.Time {
	lasted := make([]float64, 0, len(r.Ranks))
	for _, rank := range r.Ranks {
		if !rank.Moved && rank.Steps.Recent > 0 {
			lasted = append(lasted, rank.clock.slowFor(r.Steps.Times.Usual, times, keep).Seconds())
		}
	}
	return r.Seen.Add(-time.Duration(shared.Median(lasted) * float64(time.Second)))
}

// Excluded returns what was left out of the comparison of steps.
func (r *Run) Excluded() (names []string) {
	for i, name := range exclusionNames {
		if slices.ContainsFunc(r.Ranks, func(rank *Rank) bool { return rank.Without[i] }) {
			names = append(names, name)
		}
	}
	return names
}
