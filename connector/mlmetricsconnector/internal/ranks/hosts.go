package ranks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxHosts limits the hosts that are remembered, maxRunsOfHost the runs of each.
	maxHosts, maxRunsOfHost = 8192, 16
	// slowRatio is how many times the time of three quarters of the other hosts the
	// ranks of a slow host take, so that hosts of two kinds are not slow;
	// partOfStep the least fraction of a step that they take longer, slowSpreads by
	// how many spreads of the other hosts.
	slowRatio, partOfStep, slowSpreads = 1.5, 0.05, 6
	// manyHosts are so many that the others are, nearly, all.
	manyHosts = 128
	// severalRuns is the number of runs in which a slow host is slow, within
	// rememberRuns.
	severalRuns  = 2
	rememberRuns = 24 * time.Hour
	// presently is the time within which a run was compared that still runs.
	presently = 5 * time.Minute
)

// Timed is how long a rank takes for work of its own, which does not wait for other
// ranks: a phase of its steps.
type Timed struct {
	Host string
	pace.Typical
}

// Hosts compares hosts over runs. The zero Hosts is ready to use. It is not safe
// for concurrent use.
type Hosts struct{ all map[string]map[string]*ofRun }

// ofRun is how slow a host is in a run. Hosts has them by host and run.
type ofRun struct {
	// onset is when the steps began that show that the host is slow, since when this
	// was first seen, both zero if it is not. held reports whether it has been seen
	// for long enough.
	onset, since time.Time
	held         bool
	// at is when the run was last compared.
	at time.Time
	// seconds and usual are the times of the host and of the others.
	seconds, usual float64
	ranks          int
}

// Compare compares the hosts of a run: a host is slow while the median of its ranks
// is clearly above that of the other hosts, for at least hold. Ranks are compared
// by work of their own, because collectives make all ranks equally late. The onset is the
// median of their Since.
func (h *Hosts) Compare(run string, ranks []Timed, hold time.Duration, now time.Time) {
	byHost := make(map[string][]float64)
	var steps, sinces []float64
	for i := range ranks {
		if ranks[i].Host != "" {
			byHost[ranks[i].Host] = append(byHost[ranks[i].Host], ranks[i].Phase)
			steps, sinces = append(steps, ranks[i].Step), append(sinces, ranks[i].Since)
		}
	}
	if len(byHost) < 2 {
		return
	}
	step := shared.Median(steps)
	onset := now.Add(-time.Duration(shared.Median(sinces) * float64(time.Second)))
	times := make(map[string]float64, len(byHost))
	for name, seconds := range byHost {
		times[name] = shared.Median(seconds)
	}
	all := slices.Sorted(maps.Values(times))
	upper, usual, spread := spreadOf(all)
	for name, seconds := range times {
		if len(times) <= manyHosts {
			i, _ := slices.BinarySearch(all, seconds)
			upper, usual, spread = spreadOf(slices.Concat(all[:i], all[i+1:]))
		}
		longer := seconds - usual
		slow := seconds > slowRatio*upper && longer > partOfStep*step && longer > slowSpreads*spread
		h.note(name, run, slow, hold, ofRun{at: now, onset: onset, seconds: seconds, usual: usual, ranks: len(byHost[name])})
	}
}

// spreadOf returns the upper quartile, the median and the spread of the times of hosts, in
// order.
func spreadOf(times []float64) (upper, usual, spread float64) {
	usual, spread = pace.Spread(slices.Clone(times))
	return times[len(times)*3/4], usual, spread
}

// note keeps what a run shows about a host, which is slow since is.onset if it is.
func (h *Hosts) note(name, run string, slow bool, hold time.Duration, is ofRun) {
	runs := h.all[name]
	if runs == nil {
		if !slow || len(h.all) >= maxHosts {
			return // most hosts are never slow
		}
		runs = make(map[string]*ofRun)
		mlattr.Put(&h.all, strings.Clone(name), runs)
	}
	known := shared.Bounded(&runs, run, maxRunsOfHost, strings.Clone)
	switch {
	case known == nil:
		return
	case !slow:
		is.onset = time.Time{}
	case known.since.IsZero():
		is.since = is.at
	default:
		is.onset, is.since = known.onset, known.since
	}
	is.held = slow && is.at.Sub(is.since) >= hold
	*known = is
}

// Slow is a host that is slow in several runs.
type Slow struct {
	Host string
	// Since is when the steps began that showed it in the second of these runs.
	Since time.Time
	// Seconds is the time of its ranks and Usual that of ranks on other hosts, in
	// the newest run.
	Seconds, Usual float64
	// Ranks is the number of its ranks in that run, Runs the runs in which it is
	// slow, and Others the number of its runs in which it is not.
	Ranks  int
	Runs   []string
	Others int
}

// Slow returns the hosts that were slow in at least two runs within a day, and in
// more than half of those that were compared, if one of these still runs. It
// forgets runs of other days.
func (h *Hosts) Slow(now time.Time) (slow []Slow) {
	for name, runs := range h.all {
		s := Slow{Host: name}
		present := false
		var sinces []time.Time
		var newest time.Time
		maps.DeleteFunc(runs, func(_ string, is *ofRun) bool { return now.Sub(is.at) > rememberRuns })
		for run, is := range runs {
			if !is.held {
				s.Others++
				continue
			}
			present = present || now.Sub(is.at) <= presently
			sinces = append(sinces, is.onset)
			s.Runs = append(s.Runs, run)
			if is.at.After(newest) {
				newest, s.Seconds, s.Usual, s.Ranks = is.at, is.seconds, is.usual, is.ranks
			}
		}
		if len(runs) == 0 {
			delete(h.all, name)
		}
		if len(s.Runs) < severalRuns || s.Others >= len(s.Runs) || !present {
			continue
		}
		slices.SortFunc(sinces, time.Time.Compare)
		slices.Sort(s.Runs)
		s.Since = sinces[severalRuns-1]
		slow = append(slow, s)
	}
	slices.SortFunc(slow, func(a, b Slow) int { return cmp.Compare(a.Host, b.Host) })
	return slow
}
