package anomalies

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// servicesOfFleet are the systems of services, and trainingOfFleet those of training
// runs, in turn.
var (
	servicesOfFleet = []string{agent, taskWeaver, agent, snakepit, tuft, agent}
	trainingOfFleet = []string{torchTel, ownLoop, torchTel, ownLoop, fx}
)

// fleetRuns is the number of runs for which limits are given.
const fleetRuns = 300

// limit is how many false problems of a severity a fleet of fleetRuns may have.
type limit struct {
	severity mlattr.Severity
	most     float64
	each     time.Duration
	// text is the limit as the page says it.
	text string
}

var limits = []limit{
	{mlattr.SeverityPage, 1, 7 * 24 * time.Hour, "1 a week for 300 runs"},
	{mlattr.SeverityTicket, 2, 24 * time.Hour, "2 a day for 300 runs"},
	{mlattr.SeverityMark, fleetRuns, 24 * time.Hour, "1 a run and day"},
}

// health is what was reported of fleets in which nothing was wrong.
type health struct {
	// fleets counts the fleets, runs and services those of all.
	fleets, runs, services int
	lived                  time.Duration
	spans                  int
	// untrue are the problems that were reported, but for those of hosts that were silent, of
	// which there were so many.
	untrue []*sighting
	silent int
}

// add adds another fleet that lived as long.
func (h *health) add(other *health) {
	h.fleets++
	h.runs += other.runs
	h.services += other.services
	h.lived = other.lived
	h.spans += other.spans
	h.untrue = append(h.untrue, other.untrue...)
	h.silent += other.silent
}

// expected is the number of false problems that a limit allows in what was simulated.
func (h *health) expected(l limit) float64 {
	return l.most * float64(h.runs) / fleetRuns * h.lived.Hours() / l.each.Hours()
}

// count counts the false problems of a severity.
func (h *health) count(severity mlattr.Severity) (n int) {
	for _, s := range h.untrue {
		if kind, known := mlattr.ProblemNamed(s.kind); known && kind.Severity == severity {
			n++
		}
	}
	return n
}

// refuted reports whether a count contradicts a limit: it is above it, and by more
// than chance (5 % of a Poisson distribution) where less than a week was simulated.
func (h *health) refuted(l limit) bool {
	n, mean := h.count(l.severity), h.expected(l)
	if float64(n) <= mean {
		return false
	}
	below, term := 0.0, math.Exp(-mean)
	for i := range n {
		below += term
		term *= mean / float64(i+1)
	}
	return h.lived >= 7*24*time.Hour || 1-below < 0.05
}

// watch lets a healthy fleet live. It must run in a synctest bubble.
func watch(ctx context.Context, seed int64, runs, services int, d, flush time.Duration) (*health, error) {
	time.Sleep(begins)
	w, err := newWorld(ctx, seed, flush)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		system := trainingOfFleet[i%len(trainingOfFleet)]
		w.train(system, i, w.places(system, i, 1))
	}
	for i := range services {
		w.serve(servicesOfFleet[(i+int(seed)*services)%len(servicesOfFleet)], i)
	}
	w.every(restartEvery, func() { w.restartCollector() })
	w.live(d)
	h := &health{runs: runs, services: services, lived: d, spans: w.spans}
	for _, s := range w.collector.reported() {
		s.seed = seed
		if (s.kind == mlattr.ProblemHostSilent || s.kind == mlattr.ProblemRunSilent) && w.isSilent(s.host, s.detected, flush) {
			h.silent++
		} else {
			h.untrue = append(h.untrue, s)
		}
	}
	if err := w.collector.stop(ctx); err != nil {
		return nil, fmt.Errorf("stop the collector: %w", err)
	}
	return h, w.collector.failed()
}

// restartCollector stops the collector and starts another one shortly after.
func (w *world) restartCollector() {
	fail := func(err error) { w.collector.fail(err) }
	fail(w.collector.stop(w.ctx))
	w.in(between(w.random, 5*time.Second, restartMost), func() { fail(w.collector.start(w.ctx)) })
}
