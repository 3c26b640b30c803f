package model

import (
	"cmp"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/words"
)

// slowerThan is how much longer than before a phase must take to be named.
const slowerThan = 1.3

// durations are the time of a phase and the number of steps that have it, before
// a run became slow and since then.
type durations struct{ before, stepsBefore, since, steps float64 }

func (d *durations) add(other durations) {
	d.before, d.stepsBefore = d.before+other.before, d.stepsBefore+other.stepsBefore
	d.since, d.steps = d.since+other.since, d.steps+other.steps
}

// grew reports whether the mean is larger than before.
func (d *durations) grew() bool {
	return d.steps > 0 && d.stepsBefore > 0 && d.since/d.steps > slowerThan*d.before/d.stepsBefore
}

// growth is what became of a phase when its run became slow.
type growth struct {
	durations
	// slower are the ranks whose phase takes longer than before, of all ranks.
	slower, ranks int
}

// who says which ranks are slower, if there are several.
func (g *growth) who() string {
	switch g.ranks {
	case 0, 1:
		return ""
	case g.slower:
		return ", all ranks"
	default:
		return ", " + strconv.Itoa(g.slower) + " of " + words.Counted(g.ranks, "rank", "ranks")
	}
}

// becomesSlow keeps what the steps of a run took until now, if it was not slow
// since about that time already.
func becomesSlow(r *runs.Run, since, now time.Time) {
	if since.Sub(r.SlowSince).Abs() < time.Minute || now.Sub(r.SlowNoted).Abs() < time.Minute {
		return
	}
	r.SlowSince, r.SlowNoted = since, now
	for _, one := range r.Durations {
		one.Before = &series.Sample{Value: one.Value, Count: one.Count}
	}
}

// growths returns what became of each phase, and of the whole step. A rank that
// has moved to another host is one rank.
func growths(r *runs.Run) map[string]*growth {
	type phaseOfRank struct{ phase, rank string }
	ofRanks := make(map[phaseOfRank]*durations)
	start := startOfSlowness(r)
	for one := range r.StepDurations() {
		before := start(one)
		at := phaseOfRank{one.Labels.Own[0], cmp.Or(one.Labels.Rank, one.Labels.Host)}
		if ofRanks[at] == nil {
			ofRanks[at] = new(durations)
		}
		ofRanks[at].add(durations{before.Value, before.Count, one.Value - before.Value, one.Count - before.Count})
	}
	all := make(map[string]*growth)
	for at, of := range ofRanks {
		if all[at.phase] == nil {
			all[at.phase] = new(growth)
		}
		g := all[at.phase]
		g.add(*of)
		g.ranks++
		if of.grew() {
			g.slower++
		}
	}
	return all
}

// startOfSlowness returns what has the value of a stream from when the run became
// slow. Until another step has ended, it is that of five minutes ago.
func startOfSlowness(r *runs.Run) func(*series.Stream) series.Sample {
	kept := func(one *series.Stream) series.Sample {
		if one.Before == nil {
			return series.Sample{}
		}
		return *one.Before
	}
	for one := range r.StepDurations() {
		if one.Count > kept(one).Count {
			return kept
		}
	}
	return func(one *series.Stream) series.Sample {
		first, ok := one.Recent.First(one.Time)
		if !ok {
			return series.Sample{Value: one.Value, Count: one.Count}
		}
		return first
	}
}
