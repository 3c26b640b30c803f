package detect

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// loopTime is the time within which runs.LoopOf new attempts make a restart loop.
const loopTime = time.Hour

// restartLoop finds runs that begin again and again. It has since when each does.
type restartLoop struct{ since map[streams.RunKey]time.Time }

// detect reports the restart loops.
func (d *restartLoop) detect(s *State, report func(problem.Problem)) {
	was := d.since
	d.since = make(map[streams.RunKey]time.Time)
	for _, r := range s.Runs {
		since, loops := r.Loops(loopTime, s.Now)
		if !loops || r.State.Over() {
			continue
		}
		if known, is := was[r.Key]; is {
			since = known
		}
		d.since[r.Key] = since
		p := of(r, mlattr.ProblemRestartLoop)
		p.Onset, p.Value, p.Unit, p.Telemetry = since, float64(r.Attempts()), "{attempt}", math.NaN()
		p.Evidence = []string{fmt.Sprintf("attempt %d", r.Attempts())}
		if steps, _ := r.LastStep(); steps > 0 {
			p.Evidence = append(p.Evidence, fmt.Sprintf("step %d", steps))
		}
		p.Next = "Read why the last attempt ended: the log of the launcher, and the failures of the run."
		report(p)
	}
}
