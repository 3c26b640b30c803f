package anomalies

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// plan is one kind of problem in one system at one strength.
type plan struct {
	kind, system, strength string
	// within is the time from the onset in which it must be found to count.
	within time.Duration
	// recall is the least share that must be found; 0 is no limit.
	recall float64
	// fast ones are measured in make check.
	fast bool
	// inRun or inService plants it.
	inRun     func(*run)
	inService func(*service)
	// planned is true for a problem that is planted before the first step.
	atStart bool
}

// plans is what is planted. A row whose kind ml_metrics does not have is not measured.
var plans = []plan{
	{kind: mlattr.ProblemLooksHung, system: torchTel, strength: "all ranks stop", within: 10 * time.Minute, recall: 0.99, fast: true, inRun: (*run).hang},
	{kind: mlattr.ProblemLooksHung, system: ownLoop, strength: "all ranks stop", within: 10 * time.Minute, recall: 0.99, fast: true, inRun: (*run).hang},
	{kind: mlattr.ProblemLooksHung, system: fx, strength: "the process stops", within: 10 * time.Minute, recall: 0.99, inRun: (*run).hang},
	{kind: mlattr.ProblemGPUFailed, system: ownLoop, strength: "`hw.status` is failed, the run stops", within: 10 * time.Minute, fast: true, inRun: failGPU},
	{kind: mlattr.ProblemRestartLoop, system: torchTel, strength: "every 5 min", within: time.Hour, fast: true, inRun: restartEach(5 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: torchTel, strength: "every 15 min", within: time.Hour, inRun: restartEach(15 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: ownLoop, strength: "every 5 min", within: time.Hour, inRun: restartEach(5 * time.Minute)},
	{kind: mlattr.ProblemRestartLoop, system: ownLoop, strength: "every 15 min", within: time.Hour, inRun: restartEach(15 * time.Minute)},
	{kind: mlattr.ProblemSlow, system: torchTel, strength: "1.2 times", within: 2 * time.Hour, inRun: slower(1.2)},
	{kind: mlattr.ProblemSlow, system: torchTel, strength: "1.4 times", within: 2 * time.Hour, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: torchTel, strength: "2 times", within: 2 * time.Hour, fast: true, inRun: slower(2)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "1.2 times", within: 2 * time.Hour, inRun: slower(1.2)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "1.4 times", within: 2 * time.Hour, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: ownLoop, strength: "2 times", within: 2 * time.Hour, inRun: slower(2)},
	{kind: mlattr.ProblemSlow, system: fx, strength: "1.4 times", within: 2 * time.Hour, inRun: slower(1.4)},
	{kind: mlattr.ProblemSlow, system: fx, strength: "2 times", within: 2 * time.Hour, inRun: slower(2)},
	{kind: mlattr.ProblemHeldIdle, system: ownLoop, strength: "the loop ends, its memory stays", within: time.Hour, fast: true, inRun: idle},
	{kind: mlattr.ProblemFailing, system: agent, strength: "2 %", within: 2 * time.Hour, inService: fail(0.02)},
	{kind: mlattr.ProblemFailing, system: agent, strength: "10 %", within: 2 * time.Hour, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: agent, strength: "30 %", within: 2 * time.Hour, fast: true, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: taskWeaver, strength: "10 %", within: 2 * time.Hour, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: taskWeaver, strength: "30 %", within: 2 * time.Hour, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: snakepit, strength: "10 %", within: 2 * time.Hour, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: snakepit, strength: "30 %", within: 2 * time.Hour, inService: fail(0.3)},
	{kind: mlattr.ProblemFailing, system: tuft, strength: "10 %", within: 2 * time.Hour, inService: fail(0.1)},
	{kind: mlattr.ProblemFailing, system: tuft, strength: "30 %", within: 2 * time.Hour, inService: fail(0.3)},
}

func failGPU(r *run) {
	r.places[0].GPU.Failed = true
	r.hang()
}

func restartEach(d time.Duration) func(*run) {
	return func(r *run) {
		var again func()
		again = func() {
			r.end(nil)
			r.w.in(30*time.Second, r.begin)
			r.w.in(d, again)
		}
		again()
	}
}

func slower(times float64) func(*run) { return func(r *run) { r.slower = times } }

// idle has the run's processes stay and do nothing.
func idle(r *run) {
	r.stuck = true
	r.work(0, 110)
}

func fail(ratio float64) func(*service) { return func(s *service) { s.errors = ratio } }
