// Package detect finds problems. Each kind of problem has a rule with its constants and their
// reasons, and its words, in the file of its subject: runs that hang, miss ranks, are slow or
// do something else, losses, GPUs and hosts, models, requests and tasks. The row of the kind in mlattr.Problems has its name, its severity, the kinds that it
// follows from, what to do next, and what is documented of it. New lists them.
package detect

import (
	"cmp"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// State is what is known at an emission.
type State struct {
	Now    time.Time
	Limits runs.Timeouts
	Runs   []*runs.Run
	Losses []runs.Loss
	GPUs   *gpus.Facts
	// Services are those of the latest Settle.
	Services *serving.Fleet
	Owners   *runs.Owners
	// Withheld reports whether nothing is concluded from silence.
	Withheld bool
	// Lemons are those of all emissions, nil to find none. History has the versions that
	// they are compared by, nil to compare none.
	Lemons  *Lemons
	History *change.History
}

// Detector finds problems at an emission, and reports each that lasts. It may remember what it
// needs between two emissions.
type Detector func(s *State, report func(problem.Problem))

// New returns a Detector of all kinds, which remembers nothing yet.
func New() Detector {
	all := []Detector{
		eachRun(hung), eachRun(silent), eachRun(missing), failed, eachRun(overdue), eachRun(grows), eachRun(restarts), losses,
		new(slow).detect, new(slowHosts).detect, new(throttled).detect,
		failedGPUs, heldIdle, silentHosts,
		eachService(mlattr.ProblemFailing, failing),
		eachService(mlattr.ProblemSlowRequests, slowRequests),
		eachService(mlattr.ProblemTailLatency, tailLatency),
		eachService(mlattr.ProblemRetryStorm, retryStorm),
		eachService(mlattr.ProblemToolErrors, toolErrors),
		eachService(mlattr.ProblemLooping, looping),
		eachService(mlattr.ProblemCostly, costly),
		eachModel(mlattr.ProblemTruncated, truncated),
		eachModel(mlattr.ProblemAnswersChanged, answersChanged),
		eachService(mlattr.ProblemModelSubstituted, substituted),
		eachModel(mlattr.ProblemCacheCollapsed, cacheCollapsed),
		eachModel(mlattr.ProblemThroughputDrop, throughput),
	}
	return func(s *State, report func(problem.Problem)) {
		cmp.Or(s.Lemons, new(Lemons)).detect(s, all, func(p problem.Problem) {
			kind, _ := mlattr.ProblemNamed(p.Kind)
			p.Next = cmp.Or(p.Next, kind.Next)
			report(p)
		})
	}
}

// eachRun finds problems of single runs.
func eachRun(find func(s *State, r *runs.Run, report func(problem.Problem))) Detector {
	return func(s *State, report func(problem.Problem)) {
		for _, r := range s.Runs {
			find(s, r, report)
		}
	}
}

// of returns a problem of a run with what all of them have.
func of(r *runs.Run, kind string) problem.Problem {
	p := problem.Problem{
		Kind: kind, Subject: problem.Subject{Resource: r.Key.Resource, Run: r.Key.ID},
		GPUs: r.GPUs.Number, Measure: problem.Measure{Usual: math.NaN(), Telemetry: r.Members.Telemetry()},
	}
	if known, _ := mlattr.ProblemNamed(kind); !known.FromSilence {
		p.Evident, p.Interval = r.Shown, r.Interval
	}
	hold(&p, r)
	return p
}

// measured returns a value of which nothing else is known.
func measured(value float64, unit string) problem.Measure {
	return problem.Measure{Value: value, Usual: math.NaN(), Unit: unit, Telemetry: math.NaN()}
}

// hold adds the GPUs of a run, and who holds them.
func hold(p *problem.Problem, r *runs.Run) {
	p.Held = mlattr.Mapped(r.GPUs.All[:min(len(r.GPUs.All), problem.MaxHeld)], func(g *gpus.State) gpus.Key { return g.Key })
	if len(r.GPUs.All) > 0 {
		p.Holder = r.GPUs.All[0].Owner
		p.Holder.Rank = ""
	}
}
