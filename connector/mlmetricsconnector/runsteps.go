package mlmetricsconnector

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// longerThan is how many times the usual time the steps of a run take from which
	// on they do not become usual, and asUsual the time from which on they do.
	longerThan, asUsual = 1.1, 1.05
	// slowerThan is how many times the usual time a slow run takes, notSlow the
	// time at which it is slow no longer.
	slowerThan, notSlow = 1.3, 1.2
	// throttledBefore and throttledAfter limit when a GPU throttles whose run takes
	// longer: a GPU that always reaches its power limit slows nothing down.
	throttledBefore, throttledAfter = 15 * time.Minute, 5 * time.Minute
)

// concludeSteps adds the step times of the median rank, and reports a run whose
// steps have taken longer than usual for stall_timeout.
func (v *runVerdict) concludeSteps(e *emission, facts *runFacts) {
	times := v.stepTimes()
	if times.Recent > 0 {
		e.value(series.RunStepTime, times.Recent, mlattr.WindowRecent)
	}
	if times.Usual > 0 {
		e.value(series.RunStepTime, times.Usual, mlattr.WindowUsual)
	}
	if tokens := v.tokensPerStep(); tokens > 0 && times.Recent > 0 {
		e.value(series.RunTokenThroughput, tokens/times.Recent, mlattr.BasisSteps)
	}
	v.compareSteps(times)
	if !v.staysSlow(times, facts.stall, e.now) {
		return
	}
	p := problem.Problem{
		Kind: mlattr.ProblemSlow, Onset: v.slow, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: times.Recent, Usual: times.Usual, Unit: "s", Count: pace.RecentSteps,
		Window: time.Duration(times.Recent * pace.RecentSteps * float64(time.Second)),
		Next:   "Compare the phases of the ranks.", Excluded: v.excluded(),
	}
	p.Evidence = append(p.Evidence, fmt.Sprintf("%.3g s a step, usually %.3g (%+.0f %%)", times.Recent, times.Usual, 100*(times.Recent/times.Usual-1)))
	v.phaseEvidence(&p)
	e.problem(p)
}

// tokensPerStep returns the number of tokens of a step of all ranks, 0 if none of
// them states it.
func (v *runVerdict) tokensPerStep() (tokens float64) {
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved {
			tokens = max(tokens, rank.tokens)
		}
	}
	return tokens
}

// compareSteps determines since when the steps of a run take longer, and since when
// it is slow.
func (v *runVerdict) compareSteps(times pace.StepTimes) {
	switch {
	case v.state != rankRunning || !v.longer.IsZero() && times.Recent <= asUsual*times.Usual:
		v.longer, v.slow = time.Time{}, time.Time{}
		return
	case v.longer.IsZero() && !times.Longer(longerThan):
		return
	case v.longer.IsZero():
		v.usual = times.Usual
		v.longer = v.longerSince(times.Usual, longerThan)
	}
	switch {
	case v.slow.IsZero() && times.Recent > slowerThan*times.Usual:
		v.slow = v.longerSince(times.Usual, slowerThan)
	case times.Recent <= notSlow*times.Usual:
		v.slow = time.Time{}
	}
}

// staysSlow reports whether the run has been slow for stall. Then the newest steps must
// be slow too, once: the median of 20 stays high for up to 10 steps after others have
// used the storage or the network for a short time.
func (v *runVerdict) staysSlow(times pace.StepTimes, stall time.Duration, now time.Time) bool {
	v.slowReported = !v.slow.IsZero() &&
		(v.slowReported || now.Sub(v.slow) >= stall && times.Newest > slowerThan*times.Usual)
	return v.slowReported
}

// stepTimes returns the step times of the median rank. While steps take longer,
// they do not become usual. Ranks that have moved have the usual time of where they
// were until they have one.
func (v *runVerdict) stepTimes() pace.StepTimes {
	var recents, newests, usuals, shifts, earlier []float64
	for i := range v.ranks {
		rank := &v.ranks[i]
		switch {
		case rank.missing:
		case rank.moved && rank.steps.Usual > 0:
			earlier = append(earlier, rank.steps.Usual)
		case rank.moved:
		case rank.steps.Recent > 0:
			recents, newests = append(recents, rank.steps.Recent), append(newests, rank.steps.Newest)
			if rank.steps.Usual > 0 {
				usuals = append(usuals, rank.steps.Usual)
				shifts = append(shifts, rank.steps.Shift)
			}
		}
	}
	times := pace.StepTimes{Recent: pace.Median(recents), Newest: pace.Median(newests), Usual: pace.Median(usuals), Shift: pace.Median(shifts)}
	if len(usuals) == 0 && len(earlier) > 0 {
		times.Usual, times.Shift = pace.Median(earlier), math.Inf(1)
	}
	if !v.longer.IsZero() {
		times.Usual = v.usual
	}
	return times
}

// longerSince returns since when the steps of the median rank take more than times the
// usual time, and keeps what their phases took before.
func (v *runVerdict) longerSince(usual, times float64) time.Time {
	lasted := make([]float64, 0, len(v.ranks))
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved && rank.steps.Recent > 0 {
			lasted = append(lasted, rank.clock.slowFor(usual, times, times == longerThan).Seconds())
		}
	}
	return v.seen.Add(-time.Duration(pace.Median(lasted) * float64(time.Second)))
}

// slowFor returns how long the rank's steps have taken more than times the usual
// seconds. keep reports whether to keep what their phases took before.
func (c *runClock) slowFor(usual, times float64, keep bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasted, steps := c.pace.SlowFor(usual, times)
	if keep {
		c.phases.Keep(steps)
	}
	return lasted
}

// growths returns what became of the rank's phases.
func (c *runClock) growths() ([pace.MaxPhases]pace.Growth, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phases.Growths()
}

// grownPhase is a phase that takes longer on some ranks.
type grownPhase struct {
	usual, recent []float64
	hosts         map[string]bool
}

// phaseEvidence names the phases that take longer, and on how many ranks.
func (v *runVerdict) phaseEvidence(p *problem.Problem) {
	var grown [pace.MaxPhases]grownPhase
	compared, hosts := 0, make(map[string]bool)
	for i := range v.ranks {
		rank := &v.ranks[i]
		growths, ok := rank.clock.growths()
		if rank.moved || !ok {
			continue
		}
		compared++
		hosts[rank.host] = true
		for phase := range growths {
			if g := &growths[phase]; g.Grew {
				to := &grown[phase]
				if to.hosts == nil {
					to.hosts = make(map[string]bool)
				}
				to.usual, to.recent = append(to.usual, g.Usual), append(to.recent, g.Recent)
				to.hosts[rank.host] = true
			}
		}
	}
	for phase := range grown {
		g := &grown[phase]
		n := len(g.recent)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%s %.3g → %.3g s", phaseName(phase), pace.Median(g.usual), pace.Median(g.recent))
		if compared > 1 {
			text += fmt.Sprintf(", %d of %d ranks", n, compared)
		}
		host := ""
		if all := slices.Collect(maps.Keys(g.hosts)); len(all) == 1 && len(hosts) > 1 {
			host = all[0]
			text += ", all on " + host
		}
		if phase != int(wallclock.DataLoad) {
			p.Evidence = append(p.Evidence, text)
			continue
		}
		// The one phase that does not wait for other ranks.
		p.Evidence = slices.Insert(p.Evidence, 1, text)
		p.Host = host
		p.Next = "Look at the input: storage, network and the workers of the data loader."
	}
}

// phaseName returns the name of a phase that is compared.
func phaseName(phase int) string {
	if phase < int(wallclock.NoPhase) {
		return wallclock.Phase(phase).String() // #nosec G115 -- the index of a phase
	}
	return phaseOther
}

// excluded returns what was left out of the comparison of steps.
func (v *runVerdict) excluded() (names []string) {
	var all exclusions
	for i := range v.ranks {
		one := &v.ranks[i].without
		all.checkpoints = all.checkpoints || one.checkpoints
		all.validations = all.validations || one.validations
		all.demand = all.demand || one.demand
		all.restarts = all.restarts || one.restarts
	}
	for _, each := range []struct {
		is   bool
		name string
	}{
		{all.checkpoints, "checkpoint"}, {all.validations, "validation"}, {all.demand, "lower demand"}, {all.restarts, "restart"},
	} {
		if each.is {
			names = append(names, each.name)
		}
	}
	return names
}

// concludeThrottle reports a GPU whose clocks are lowered since about the time from
// which on the steps of its run take longer.
func (v *runVerdict) concludeThrottle(e *emission, facts *runFacts) {
	var found *gpus.State
	others := 0
	if !v.longer.IsZero() && e.now.Sub(v.longer) >= facts.stall {
		for i := range facts.gpus {
			g := &facts.gpus[i]
			since := g.ThrottledSince.Sub(v.longer)
			if len(g.Throttled) == 0 || since < -throttledBefore || since > throttledAfter {
				continue
			}
			others++
			if found == nil || g.Key == v.throttled || found.Key != v.throttled && g.ThrottledSince.Before(found.ThrottledSince) {
				found = g
			}
		}
	}
	if found == nil {
		v.throttled = gpus.Key{}
		return
	}
	v.throttled = found.Key
	times := v.stepTimes()
	p := problem.Problem{
		Kind: mlattr.ProblemThrottled, Onset: v.longer, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: times.Recent, Usual: times.Usual, Unit: "s", Rank: found.Rank, Excluded: v.excluded(),
		Evidence: []string{
			"clocks are lowered since " + clockTime(found.ThrottledSince) + ": " + listed(found.Throttled, func(s string) string { return s }),
			fmt.Sprintf("%.3g s a step, usually %.3g", times.Recent, times.Usual),
		},
		Next: "Look at the temperature and the power of the host: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER.",
	}
	if others > 1 {
		p.Evidence = append(p.Evidence, quantity(others-1, "other GPU", "other GPUs")+" of the run too")
	}
	p.Subject = problem.Subject{Resource: e.source.Resource, Run: e.source.Run.ID, Host: found.Host, GPU: found.ID}
	p.Evident, p.Interval = e.shown, e.interval
	e.board.Report(p)
}

// concludeCheckpoints reports a run that takes steps and whose checkpoint is
// overdue on each rank that saves at a usual interval.
func (v *runVerdict) concludeCheckpoints(e *emission) {
	if v.state != rankRunning {
		return
	}
	var last *rankReport
	for i := range v.ranks {
		rank := &v.ranks[i]
		switch {
		case rank.moved || rank.missing || !rank.saves:
		case !rank.late:
			return
		case last == nil || rank.missed.Last < last.missed.Last:
			last = rank
		}
	}
	if last == nil {
		return
	}
	o := last.missed
	e.problem(problem.Problem{
		Kind: mlattr.ProblemCheckpoint, Onset: o.Since, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: o.Last.Seconds(), Usual: o.Usual.Seconds(), Unit: "s", Count: int64(o.Count),
		Rank: last.rank, Host: last.host, Excluded: v.excluded(),
		Evidence: []string{
			fmt.Sprintf("%d steps and %s since the last checkpoint", o.Steps, o.Last.Round(time.Second)),
			fmt.Sprintf("usually after %d steps and %s", o.UsualSteps, o.Usual.Round(time.Second)),
		},
		Next: "See whether " + placeOf(last) + " can write to the checkpoints' storage.",
	})
}

// concludeMemory reports the GPU of a run whose memory reaches its limit first.
func (v *runVerdict) concludeMemory(e *emission, facts *runFacts) {
	var first *gpus.State
	if v.state == rankRunning {
		for i := range facts.gpus {
			if g := &facts.gpus[i]; g.Grows && (first == nil || g.Memory.Left < first.Memory.Left) {
				first = g
			}
		}
	}
	if first == nil {
		return
	}
	f := &first.Memory
	e.problem(problem.Problem{
		Kind: mlattr.ProblemMemoryGrowth, Onset: f.Since, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: f.To, Usual: f.From, Unit: "By", Window: f.Window, Count: int64(f.Count),
		Rank: first.Rank, Host: first.Host, GPU: first.ID,
		Evidence: []string{
			fmt.Sprintf("GPU memory grows by %s an hour", gib(f.PerHour)),
			fmt.Sprintf("%s of %s are used: full in %s", gib(f.To), gib(first.Limit), f.Left.Round(time.Minute)),
		},
		Next: "Record a snapshot of the allocator's memory: torch.cuda.memory._record_memory_history.",
	})
}

// gib returns bytes as text.
func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }

// loads returns how long each rank of a running run loads data.
func (v *runVerdict) loads() (timed []ranks.Timed) {
	if v.state != rankRunning {
		return nil
	}
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved && !rank.missing && rank.timed && rank.state == rankRunning {
			timed = append(timed, ranks.Timed{Host: rank.host, Typical: rank.load})
		}
	}
	return timed
}

// concludeHosts reports hosts that are slow in several runs.
func (c *clocks) concludeHosts(board *problem.Board, now time.Time) {
	for _, slow := range c.hosts.Slow(now) {
		board.Report(problem.Problem{
			Kind: mlattr.ProblemSlowHost, Onset: slow.Since, Telemetry: math.NaN(),
			Subject: problem.Subject{Host: slow.Host}, Value: slow.Seconds, Usual: slow.Usual, Unit: "s",
			Count: int64(len(slow.Runs)), GPUs: float64(slow.Ranks),
			Evidence: []string{
				fmt.Sprintf("%s load data for %.3g s a step, those on other hosts for %.3g", quantity(slow.Ranks, "rank", "ranks"), slow.Seconds, slow.Usual),
				fmt.Sprintf("in %d runs: %s", len(slow.Runs), listed(slow.Runs, func(s string) string { return s })),
			},
			Next: "Look at the storage, the network and the CPUs of " + slow.Host + ", or leave it out of the next run.",
		})
	}
}
