// Package detect finds problems. Each kind of problem has a file of its own: the rule with
// its constants and their reasons, its words, and the kinds that it follows from. The row
// of the kind in mlattr.Problems has its name, its severity and what is documented of it.
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

// Detector finds the problems of one kind. It may remember what it needs between two
// emissions.
type Detector interface {
	// Detect reports each problem that lasts.
	Detect(s *State, report func(problem.Problem))
}

// rule is how the problems of a kind are found.
type rule struct {
	// follows are the kinds that a problem of this kind follows from, the most likely
	// first.
	follows []string
	// detector returns a Detector that remembers nothing.
	detector func() Detector
	// endsUnreported reports whether a problem is over as soon as it is not reported: no
	// newer data of what has it can show that it is.
	endsUnreported bool
}

// rules has the rule of each kind. Each file adds its own.
var rules = make(map[string]rule)

// add adds a kind whose Detector remembers something.
func add(kind string, detector func() Detector, follows ...string) {
	rules[kind] = rule{follows: follows, detector: detector}
}

// endUnreported makes the problems of a kind end as soon as they are not reported.
func endUnreported(kind string) {
	of := rules[kind]
	of.endsUnreported = true
	rules[kind] = of
}

// eachRun finds problems of single runs, and remembers nothing.
type eachRun func(s *State, r *runs.Run, report func(problem.Problem))

// Detect looks at all runs.
func (d eachRun) Detect(s *State, report func(problem.Problem)) {
	for _, r := range s.Runs {
		d(s, r, report)
	}
}

// eachLoss finds problems of the loss of single runs, and remembers nothing. p has what
// all its problems have in common.
type eachLoss func(l *runs.Loss, p problem.Problem, report func(problem.Problem))

// Detect looks at the losses of all runs that take steps.
func (d eachLoss) Detect(s *State, report func(problem.Problem)) {
	for i := range s.Losses {
		l := &s.Losses[i]
		p := problem.Problem{
			Subject: problem.Subject{Resource: l.Key.Resource, Run: l.Key.ID}, Evident: l.Seen, Rank: l.Rank, Unit: "1",
			Telemetry: math.NaN(), GPUs: s.GPUs.Uses[runs.RunOf(l.Key)].GPUs,
		}
		if l.Run != nil {
			p.Telemetry = l.Run.Members.Telemetry()
			hold(&p, l.Run)
		}
		d(l, p, report)
	}
}

// whole finds problems of hosts and GPUs, and remembers nothing.
type whole func(s *State, report func(problem.Problem))

// Detect calls d.
func (d whole) Detect(s *State, report func(problem.Problem)) { d(s, report) }

// addPlain adds a kind whose Detector remembers nothing.
func addPlain(kind string, detector Detector, follows ...string) {
	add(kind, func() Detector { return detector }, follows...)
}

// All are the Detectors of all kinds.
type All []Detector

// New returns a Detector of each kind, in the order of their names.
func New() (all All) {
	for _, kind := range slices.Sorted(maps.Keys(rules)) {
		all = append(all, rules[kind].detector())
	}
	return all
}

// Detect reports the problems of all kinds.
func (a All) Detect(s *State, report func(problem.Problem)) {
	for _, one := range a {
		one.Detect(s, report)
	}
}

// EndsUnreported reports whether a problem of a kind is over as soon as it is not reported,
// and not when newer data of what has it has arrived.
func EndsUnreported(kind string) bool { return rules[kind].endsUnreported }

// Causes returns the kinds that each kind follows from, the most likely first. No kind
// follows from itself, not even over others.
func Causes() map[string][]string {
	causes := make(map[string][]string)
	for kind, rule := range rules {
		causes[kind] = rule.follows
	}
	return causes
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
