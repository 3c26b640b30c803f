// Package detect finds problems. Each kind of problem has a file of its own: the rule with
// its constants and their reasons, and its words. The row of the kind in mlattr.Problems has
// its name, its severity, the kinds that it follows from and what is documented of it.
package detect

import (
	"maps"
	"math"
	"slices"
	"time"

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
}

// Detector finds the problems of one kind at an emission, and reports each that lasts. It
// may remember what it needs between two emissions.
type Detector func(s *State, report func(problem.Problem))

// detectors has what returns a Detector of each kind that remembers nothing yet. Each file
// adds its own.
var detectors = make(map[string]func() Detector)

// add adds a kind whose Detector never remembers anything.
func add(kind string, detector Detector) { detectors[kind] = func() Detector { return detector } }

// eachRun finds problems of single runs.
func eachRun(find func(s *State, r *runs.Run, report func(problem.Problem))) Detector {
	return func(s *State, report func(problem.Problem)) {
		for _, r := range s.Runs {
			find(s, r, report)
		}
	}
}

// addLoss adds a kind of problems of the losses of runs that take steps. find completes a
// problem that has what all of them have, and reports whether there is one.
func addLoss(kind string, find func(l *runs.Loss, p *problem.Problem) bool) {
	add(kind, func(s *State, report func(problem.Problem)) {
		for i := range s.Losses {
			l := &s.Losses[i]
			p := problem.Problem{
				Kind: kind, Subject: problem.Subject{Resource: l.Key.Resource, Run: l.Key.ID}, Evident: l.Seen, Rank: l.Rank, Unit: "1",
				Telemetry: math.NaN(), GPUs: s.GPUs.Uses[runs.RunOf(l.Key)].GPUs,
			}
			if l.Run != nil {
				p.Telemetry = l.Run.Members.Telemetry()
				hold(&p, l.Run)
			}
			if find(l, &p) {
				report(p)
			}
		}
	})
}

// All are the Detectors of all kinds.
type All []Detector

// New returns a Detector of each kind, in the order of their names.
func New() (all All) {
	for _, kind := range slices.Sorted(maps.Keys(detectors)) {
		all = append(all, detectors[kind]())
	}
	return all
}

// Detect reports the problems of all kinds.
func (a All) Detect(s *State, report func(problem.Problem)) {
	for _, detect := range a {
		detect(s, report)
	}
}

// of returns a problem of a run with what all of them have.
func of(r *runs.Run, kind string) problem.Problem {
	p := problem.Problem{
		Kind: kind, Subject: problem.Subject{Resource: r.Key.Resource, Run: r.Key.ID},
		GPUs: r.GPUs.Number, Telemetry: r.Members.Telemetry(), Usual: math.NaN(),
	}
	if known, _ := mlattr.ProblemNamed(kind); !known.FromSilence {
		p.Evident, p.Interval = r.Shown, r.Interval
	}
	hold(&p, r)
	return p
}

// hold adds the GPUs of a run, and who holds them.
func hold(p *problem.Problem, r *runs.Run) {
	for i := range r.GPUs.All[:min(len(r.GPUs.All), problem.MaxHeld)] {
		p.Held = append(p.Held, r.GPUs.All[i].Key)
	}
	if len(r.GPUs.All) > 0 {
		p.Holder = r.GPUs.All[0].Owner
		p.Holder.Rank = ""
	}
}
