package mlmetricsconnector

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

const (
	// maxHeard limits the hosts that are remembered, rememberHeard is for how long
	// after their last data.
	maxHeard      = 8192
	rememberHeard = time.Hour
	// maxSilentRuns limits the runs that are named for one silent host.
	maxSilentRuns = 8
)

// hostsHeard has when hosts have sent spans or metrics, not what ml_metrics computes of
// them. It is safe for concurrent use.
type hostsHeard struct {
	mu  sync.Mutex
	all map[string]*silence.Sender
}

// see notes that a host has sent something.
func (h *hostsHeard) see(host string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(host, now)
}

// seeSources notes that the hosts of the sources of spans have.
func (h *hostsHeard) seeSources(s *sources, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, source := range s.all[:s.used] {
		if i == 0 || source.Run.Host != s.all[i-1].Run.Host {
			h.note(source.Run.Host, now)
		}
	}
}

// note is see for a caller that holds the lock.
func (h *hostsHeard) note(host string, now time.Time) {
	if host == "" {
		return
	}
	one := h.all[host]
	if one == nil {
		if len(h.all) >= maxHeard {
			return
		}
		if h.all == nil {
			h.all = make(map[string]*silence.Sender)
		}
		one = new(silence.Sender)
		h.all[strings.Clone(host)] = one
	}
	one.See(now)
}

// add adds when the hosts have sent to the facts, takes out of the silent ones those
// that still send something, and forgets hosts.
func (h *hostsHeard) add(facts *gpuFacts, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for host, one := range h.all {
		if now.Sub(one.Last) > rememberHeard {
			delete(h.all, host)
			continue
		}
		if one.Last.After(facts.heard[host]) {
			facts.heard[host] = one.Last
		}
		if _, silent := facts.silent[host]; silent && !one.Silent(now) {
			delete(facts.silent, host)
		}
	}
}

// concludeSilence adds when hosts have last sent to the store, and the silent ones on
// which somebody worked to the board. ownerOf returns the program of a run.
func (c *clocks) concludeSilence(store *streams.Store, board *problem.Board, facts *gpuFacts, ownerOf func(run, service string) streams.Resource, now time.Time) (over streams.Overflowed) {
	delete(facts.heard, "") // of GPUs without a host
	for host, last := range facts.heard {
		e := emission{source: streams.Source{Run: streams.Run{Host: host}}, now: now}
		e.at(series.HostLastData, last)
		over.Add(store.Apply(e.updates, last))
	}
	runs := make(map[string][]*runVerdict)
	if len(facts.silent) > 0 {
		for key, run := range c.runs {
			runs[key.ID] = append(runs[key.ID], run) // a workload may name another service
		}
	}
	for host, silent := range facts.silent {
		last := facts.heard[host]
		if last.IsZero() || now.Sub(last) <= c.stall {
			continue
		}
		held, holders := make(map[problem.Subject]float64), make(map[problem.Subject]gpus.Owner)
		for _, w := range silent.Workloads {
			of := problem.Subject{Run: w.Run, Host: host}
			if w.Run != "" {
				of.Resource = ownerOf(w.Run, w.Owner.Service)
			}
			if _, known := held[of]; (known || len(held) < maxSilentRuns) && c.worked(&w, &silent, runs[w.Run], now) {
				held[of]++
				holders[of] = w.Owner
			}
		}
		for of, held := range held {
			board.Report(problem.Problem{
				Kind: mlattr.ProblemHostSilent, Subject: of, Onset: last, Holder: holders[of], GPUs: held,
				Value: now.Sub(last).Seconds(), Usual: math.NaN(), Unit: "s", Telemetry: math.NaN(),
				Evidence: []string{
					"no data since " + clockTime(last),
					quantity(int(held), "GPU was", "GPUs were") + " held then",
				},
				Next: "See whether the host is up, and whether its collector runs and reaches this one.",
			})
		}
	}
	return over
}

// worked reports whether a workload worked when its host was last heard, and has
// neither ended nor been heard since. of is what is known of its run. While the other
// ranks of a run take steps, only the telemetry of the host may be cut off.
func (c *clocks) worked(w *gpus.HeldBy, host *gpus.SilentHost, of []*runVerdict, now time.Time) bool {
	if len(of) == 0 {
		return !w.Worked.IsZero() && (c.idle <= 0 || host.Since.Sub(w.Worked) < c.idle)
	}
	works, goesOn := false, false
	for _, run := range of {
		for i := range run.ranks {
			rank := &run.ranks[i]
			goesOn = goesOn || rank.stepped.After(host.Noticed)
			if w.Owner.Rank != "" && rank.rank != "" && rank.rank != w.Owner.Rank {
				continue
			}
			if rank.seen.After(host.Noticed) {
				return false
			}
			works = works || !rank.state.over()
		}
	}
	return works && (!goesOn || now.Sub(host.Since) > doubtFor*c.stall)
}

// concludeSilent reports a run that is silent and holds GPUs of which nothing is known
// any more, not before their host, which it may follow from.
func (v *runVerdict) concludeSilent(e *emission, facts *runFacts) {
	if v.state != rankSilent || facts.silent.IsZero() || e.now.Sub(facts.silent) <= facts.stall || e.now.Sub(facts.heard) <= facts.stall {
		return
	}
	p := problem.Problem{
		Kind: mlattr.ProblemRunSilent, Onset: v.since, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: e.now.Sub(v.since).Seconds(), Usual: math.NaN(), Unit: "s",
		Evidence: []string{"its GPUs were last read at " + clockTime(facts.silent)},
	}
	v.rankEvidence(&p, true)
	p.Rank, p.Host = "", facts.silentHost
	p.Next = "See whether its processes still run, and why nothing of its GPUs arrives."
	e.problem(p)
}
