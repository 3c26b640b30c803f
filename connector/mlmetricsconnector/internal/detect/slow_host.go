package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// slowHosts finds hosts that are slow in several runs.
type slowHosts struct{ hosts ranks.Hosts }

// detect compares the hosts of all runs.
func (d *slowHosts) detect(s *State, report func(problem.Problem)) {
	for _, r := range s.Runs {
		d.hosts.Compare(r.Key.Resource.Service+"/"+r.Key.ID, loads(r), s.Limits.Stall, s.Now)
	}
	for _, slow := range d.hosts.Slow(s.Now) {
		report(problem.Problem{
			Kind: mlattr.ProblemSlowHost, Onset: slow.Since, Telemetry: math.NaN(),
			Subject: problem.Subject{Host: slow.Host}, Value: slow.Seconds, Usual: slow.Usual, Unit: "s",
			Count: int64(len(slow.Runs)), GPUs: float64(slow.Ranks),
			Evidence: []string{
				fmt.Sprintf("%s load data for %.3g s a step, those on other hosts for %.3g", quantity(slow.Ranks, "rank", "ranks"), slow.Seconds, slow.Usual),
				fmt.Sprintf("in %d runs: %s", len(slow.Runs), listed(slow.Runs)),
			},
			Next: "Look at the storage, the network and the CPUs of " + slow.Host + ", or leave it out of the next run.",
		})
	}
}

// loads returns how long each rank of a running run loads data.
func loads(r *runs.Run) (timed []ranks.Timed) {
	if r.State != runs.Running {
		return nil
	}
	for rank := range present(r) {
		if !rank.Missing && rank.Load != nil && rank.State == runs.Running {
			timed = append(timed, ranks.Timed{Host: rank.Host, Typical: *rank.Load})
		}
	}
	return timed
}
