package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxSilentRuns limits the runs that are named for one silent host.
const maxSilentRuns = 8

// silentHosts reports the silent hosts on which somebody worked.
func silentHosts(s *State, report func(problem.Problem)) {
	if len(s.GPUs.Silent) == 0 {
		return
	}
	byID := make(map[string][]*runs.Run)
	for _, r := range s.Runs {
		byID[r.Key.ID] = append(byID[r.Key.ID], r) // a workload may name another service
	}
	for host, silent := range s.GPUs.Silent {
		last := s.GPUs.Heard[host]
		if last.IsZero() || s.Now.Sub(last) <= s.Limits.Stall {
			continue
		}
		held := make(map[problem.Subject][]gpus.Key)
		holders := make(map[problem.Subject]gpus.Owner)
		for _, w := range silent.Workloads {
			of := problem.Subject{Run: w.Run, Host: host}
			if w.Run != "" {
				of.Resource = s.Owners.Of(w.Run, w.Owner.Service)
			}
			if _, known := held[of]; (known || len(held) < maxSilentRuns) && s.worked(&w, &silent, byID[w.Run]) {
				held[of] = append(held[of], w.GPU)
				holders[of] = w.Owner
			}
		}
		for of, held := range held {
			report(problem.Problem{
				Kind: mlattr.ProblemHostSilent, Subject: of, Onset: last, Holder: holders[of], GPUs: float64(len(held)),
				Held:  held[:min(len(held), problem.MaxHeld)],
				Value: s.Now.Sub(last).Seconds(), Usual: math.NaN(), Unit: "s", Telemetry: math.NaN(),
				Evidence: []string{
					"no data since " + clock(last),
					quantity(len(held), "GPU was", "GPUs were") + " held then",
				},
				Next: "See whether the host is up, and whether its collector runs and reaches this one.",
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
		for i := range r.Ranks {
			rank := &r.Ranks[i]
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
