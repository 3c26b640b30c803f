package detect

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// loopTime is the time within which runs.LoopOf new attempts make a restart loop.
const loopTime = time.Hour

// restarts reports a run that begins again and again.
func restarts(s *State, r *runs.Run, report func(problem.Problem)) {
	since, loops := r.Loops(loopTime, s.Now)
	if !loops || r.State.Over() {
		return
	}
	p := of(r, mlattr.ProblemRestartLoop)
	p.Onset, p.Value, p.Unit, p.Telemetry = since, float64(r.Attempts()), "{attempt}", math.NaN()
	p.Evidence = []string{fmt.Sprintf("attempt %d", r.Attempts())}
	if steps, _ := r.LastStep(); steps > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf("step %d", steps))
	}
	p.Next = "Read why the last attempt ended: the log of the launcher, and the failures of the run."
	report(p)
}
