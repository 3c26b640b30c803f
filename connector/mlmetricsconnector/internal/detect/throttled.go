package detect

import (
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

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
	for i := range r.GPUs.All {
		g := &r.GPUs.All[i]
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
	p.Next = "Look at the temperature and the power of the host: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER."
	if all > 1 {
		p.Evidence = append(p.Evidence, quantity(all-1, "other GPU", "other GPUs")+" of the run too")
	}
	return p
}
