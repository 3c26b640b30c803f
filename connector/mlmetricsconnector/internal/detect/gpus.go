package detect

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// recoveries say what the driver asks for, and what to do.
var recoveries = map[int]string{
	mlattr.RecoveryReset:         "The driver asks for a reset. Stop what uses the GPU, then reset it.",
	mlattr.RecoveryReboot:        "The driver asks for a reboot. Drain the host, then reboot it.",
	mlattr.RecoveryDrainPeers:    "The driver asks to end peer-to-peer work. Stop the runs that use this GPU together with others.",
	mlattr.RecoveryDrainAndReset: "The driver asks to drain and reset the GPU. Let its run end, then reset it.",
	mlattr.RecoveryIMEX:          "The driver asks to restart the IMEX domain of the GPU.",
}

// failedGPUs reports failed GPUs, once for each run that held one, else for one workload.
func failedGPUs(s *State, report func(problem.Problem)) {
	for key, g := range s.GPUs.GPUs {
		failure := g.Failure
		if failure == nil {
			continue
		}
		held := slices.DeleteFunc(slices.Clone(failure.Held), func(v gpus.Holding) bool { return v.Run == "" })
		if len(held) == 0 {
			held = append(failure.Held, gpus.Holding{})[:1]
		}
		for _, by := range held {
			report(problem.Problem{
				Kind: mlattr.ProblemGPUFailed, Onset: failure.Since, Evident: failure.Seen, GPUs: 1,
				Subject: problem.Subject{Resource: s.Owners.Of(by.Run, by.Owner.Service), Run: by.Run, Host: key.Host, GPU: key.ID},
				Holder:  by.Owner, Measure: measured(math.NaN(), ""),
				Held: []gpus.Key{key}, GPUIndex: failure.Index, Recovery: failure.Recovery,
				Evidence: []string{"the driver reports the state failed"},
				Next:     recoveries[failure.Recovery],
			})
		}
	}
}

// holding is a workload on a host.
type holding struct {
	host string
	gpus.Holding
}

// heldIdle reports GPUs that workloads hold and that have done nothing for idle_timeout.
// The evidence is that of all GPUs of the workload on the host.
func heldIdle(s *State, report func(problem.Problem)) {
	held := make(map[holding][]gpus.Key)
	for key, g := range s.GPUs.GPUs {
		if idle := g.Idle; idle != nil && s.Limits.Idle > 0 && idle.For >= s.Limits.Idle {
			by := holding{key.Host, idle.Holding}
			by.Owner.Rank = ""
			held[by] = append(held[by], key)
		}
	}
	for by, keys := range held {
		evidence := s.idleEvidence(keys)
		for _, key := range keys {
			idle := s.GPUs.GPUs[key].Idle
			report(problem.Problem{
				Kind: mlattr.ProblemHeldIdle, Onset: idle.Since, GPUs: 1, Measure: measured(idle.For.Seconds(), "s"),
				Subject: problem.Subject{Host: key.Host, GPU: key.ID}, Evident: idle.Seen, Holder: by.Owner, HolderRun: by.Run,
				Held: []gpus.Key{key}, Evidence: evidence,
			})
		}
	}
}

// idleEvidence says what memory of GPUs is held, and since when they do nothing.
func (s *State) idleEvidence(keys []gpus.Key) (evidence []string) {
	measured, memory, since := 0, 0.0, s.Now
	for _, key := range keys {
		idle := s.GPUs.GPUs[key].Idle
		if idle.Memory > 0 {
			measured, memory = measured+1, memory+idle.Memory
		}
		since = shared.Earlier(since, idle.Since)
	}
	if measured > 0 {
		text := gib(memory/float64(measured)) + " held"
		if len(keys) > 1 {
			text = strconv.Itoa(len(keys)) + " × " + text
		}
		evidence = append(evidence, text)
	}
	return append(evidence, quantity(len(keys), "GPU", "GPUs")+" at 0 % since "+clock(since))
}

// throttledBefore and throttledAfter limit when a GPU throttles whose run takes
// longer: a GPU that always reaches its power limit slows nothing down.
const throttledBefore, throttledAfter = 15 * time.Minute, 5 * time.Minute

// throttled finds a GPU of each run whose clocks are lowered since about the time from
// which on the steps of its run take longer. It has those that are reported.
type throttled struct{ known map[streams.RunKey]gpus.Key }

// detect reports the throttled GPUs.
func (d *throttled) detect(s *State, report func(problem.Problem)) {
	was := d.known
	d.known = make(map[streams.RunKey]gpus.Key)
	for _, r := range s.Runs {
		before, reported := was[r.Key]
		if silent := !r.GPUs.Silent.IsZero(); silent && reported {
			d.known[r.Key] = before
		} else if found, all := throttles(s, r, before); found != nil && !silent {
			d.known[r.Key] = found.Key
			report(describeThrottled(r, found, all))
		}
	}
}

// throttles returns the GPU that was reported before, else the one that has been
// throttled for the longest time, and the number of all. It returns nil if none is.
func throttles(s *State, r *runs.Run, before gpus.Key) (found *gpus.State, all int) {
	if r.Steps.Longer.IsZero() || s.Now.Sub(r.Steps.Longer) < s.Limits.Stall {
		return nil, 0
	}
	for _, g := range r.GPUs.All {
		since := g.ThrottledSince.Sub(r.Steps.Longer)
		if len(g.Throttled) == 0 || since < -throttledBefore || since > throttledAfter {
			continue
		}
		all++
		if found == nil || g.Key == before || found.Key != before && g.ThrottledSince.Before(found.ThrottledSince) {
			found = g
		}
	}
	return found, all
}

func describeThrottled(r *runs.Run, g *gpus.State, all int) problem.Problem {
	times := &r.Steps.Times
	p := of(r, mlattr.ProblemThrottled)
	p.Subject.Host, p.Subject.GPU, p.Rank = g.Host, g.ID, g.Rank
	p.Onset, p.Value, p.Usual, p.Unit, p.Excluded = r.Steps.Longer, times.Recent, times.Usual, "s", r.Excluded()
	p.Evidence = []string{
		"clocks are lowered since " + clock(g.ThrottledSince) + ": " + listed(g.Throttled),
		fmt.Sprintf("%.3g s a step, usually %.3g", times.Recent, times.Usual),
	}
	addMore(&p, all-1, "%s of the run too", "other GPU", "other GPUs")
	return p
}

// maxSilentRuns limits the runs that are named for one silent host.
const maxSilentRuns = 8

// silentHosts reports the silent hosts on which somebody worked.
func silentHosts(s *State, report func(problem.Problem)) {
	var byID map[string][]*runs.Run // made at the first one
	for host, known := range s.GPUs.Hosts {
		silent, last := known.Silent, known.Heard
		if silent == nil || last.IsZero() || s.Now.Sub(last) <= s.Limits.Stall {
			continue
		}
		if byID == nil {
			byID = make(map[string][]*runs.Run, len(s.Runs))
			for _, r := range s.Runs {
				byID[r.Key.ID] = append(byID[r.Key.ID], r) // a workload may name another service
			}
		}
		held := make(map[problem.Subject][]gpus.Key)
		holders := make(map[problem.Subject]gpus.Owner)
		for _, w := range silent.Workloads {
			of := problem.Subject{Run: w.Run, Host: host}
			if w.Run != "" {
				of.Resource = s.Owners.Of(w.Run, w.Owner.Service)
			}
			if _, known := held[of]; (known || len(held) < maxSilentRuns) && s.worked(&w, silent, byID[w.Run]) {
				held[of] = append(held[of], w.GPU)
				holders[of] = w.Owner
			}
		}
		for of, held := range held {
			report(problem.Problem{
				Kind: mlattr.ProblemHostSilent, Subject: of, Onset: last, Holder: holders[of], GPUs: float64(len(held)),
				Held: held[:min(len(held), problem.MaxHeld)], Measure: measured(s.Now.Sub(last).Seconds(), "s"),
				Evidence: []string{
					"no data since " + clock(last),
					quantity(len(held), "GPU was", "GPUs were") + " held then",
				},
			})
		}
	}
}

// worked reports whether a workload worked when its host was last heard, and has
// neither ended nor been heard since. of is what is known of its run. While the other
// ranks of a run take steps, only the telemetry of the host may be cut off.
func (s *State) worked(w *gpus.HeldBy, host *gpus.SilentHost, of []*runs.Run) bool {
	if len(of) == 0 {
		return !w.Worked.IsZero() && (s.Limits.Idle <= 0 || host.Since.Sub(w.Worked) < s.Limits.Idle)
	}
	works, goesOn := false, false
	for _, r := range of {
		for _, rank := range r.Ranks {
			goesOn = goesOn || rank.Last.Stepped.After(host.Noticed)
			if w.Owner.Rank != "" && rank.Name != "" && rank.Name != w.Owner.Rank {
				continue
			}
			if rank.Seen.After(host.Noticed) {
				return false
			}
			works = works || !rank.State.Over()
		}
	}
	return works && (!goesOn || s.Now.Sub(host.Since) > doubtFor*s.Limits.Stall)
}
