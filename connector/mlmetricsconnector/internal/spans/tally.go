package spans

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/steps"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
)

const (
	// rememberedSpans is how many of the most recent spans that changed
	// anything are recognized when they are delivered again.
	rememberedSpans = 65_536
	// rememberedNesting is, for each of five rules, how many of the most recent
	// spans are remembered for the spans above and below them.
	rememberedNesting = 16_384
)

// Tally applies the rules that need several spans: a span that is delivered
// twice counts once, and so does a chain of spans that report the same thing.
// It is safe for concurrent use.
type Tally struct {
	// Seed is that of the keys of spans.
	Seed nesting.Seed

	mu                                      sync.Mutex
	delivered                               *nesting.Recent
	steps, samples, requests, errors, calls *nesting.Chains
	stepCount                               stepCount
	below                                   *bound.Memory
}

// NewTally returns a Tally that has counted nothing.
func NewTally() *Tally {
	return &Tally{
		Seed:      nesting.NewSeed(),
		delivered: nesting.NewRecent(rememberedSpans),
		steps:     nesting.New(rememberedNesting),
		samples:   nesting.New(rememberedNesting),
		requests:  nesting.New(rememberedNesting),
		errors:    nesting.New(rememberedNesting),
		calls:     nesting.New(rememberedNesting),
		stepCount: stepCount{sequences: lastused.NewMap[uint64, *steps.Sequence](rememberedSequences)},
		below:     bound.NewMemory(rememberedTimes),
	}
}

// Kept is what a restart must not forget of a Tally: spans that are sent again, and those
// above and below spans that were counted, would count again.
type Kept struct {
	Seed  nesting.Seed
	Spans [][]uint64
	Steps map[uint64]steps.Sequence
}

// remembers returns what is remembered about spans.
func (t *Tally) remembers() []*nesting.Recent {
	return []*nesting.Recent{t.delivered, t.steps.Recent, t.samples.Recent, t.requests.Recent, t.errors.Recent, t.calls.Recent}
}

// Keep returns what is remembered: of the newest spans, or everything.
func (t *Tally) Keep(all bool) *Kept {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &Kept{Seed: t.Seed}
	k.Spans = mlattr.Mapped(t.remembers(), func(of *nesting.Recent) []uint64 { return of.Entries(all) })
	if all {
		k.Steps = make(map[uint64]steps.Sequence)
		for hash, sequence := range t.stepCount.sequences.All() {
			k.Steps[hash] = sequence.Kept()
		}
	}
	return k
}

// Restore remembers what Keep returned. It must not be called after Settle.
func (t *Tally) Restore(k *Kept) {
	t.Seed = k.Seed
	for i, memory := range t.remembers() {
		if i < len(k.Spans) {
			memory.Restore(k.Spans[i])
		}
	}
	for hash, sequence := range k.Steps {
		t.stepCount.sequences.Put(hash, &sequence)
	}
}

// Settle removes from r the spans that were delivered before, adds the others'
// counts to r.updates, and returns the number of spans removed.
func (t *Tally) Settle(r *Reader) (duplicates int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	duplicates = t.removeDelivered(r)
	t.below.Divide(r.times, r.order)
	t.countSteps(r)
	t.countSamples(r)
	t.countRequests(r)
	t.countErrors(r)
	t.countCalls(r)
	return duplicates
}

func (t *Tally) removeDelivered(r *Reader) (duplicates int64) {
	for i := range r.units {
		t.delivered.ReadAhead(r.units[i].delivery)
	}
	units, updates := r.units[:0], r.updates[:0]
	for i := range r.units {
		u := &r.units[i]
		if u.Self.Known() && t.delivered.Add(u.delivery, 1) != 0 {
			duplicates++
			if u.timed > 0 {
				r.times[u.timed-1].Again = true
			}
			continue
		}
		if duplicates == 0 {
			// Nothing has to move.
			units, updates = r.units[:i+1], r.updates[:u.last]
			continue
		}
		units = append(units, *u)
		updates = append(updates, r.updates[u.first:u.last]...)
	}
	clear(r.units[len(units):])
	clear(r.updates[len(updates):])
	r.units, r.updates = units, updates
	return duplicates
}

// countSteps counts optimizer steps, batches, and the steps of clients that
// show a step only by a batch that is a trace of its own.
func (t *Tally) countSteps(r *Reader) {
	t.stepCount.begin(r.units)
	optimizers, candidates := r.selected(0, func(u *unit) bool { return u.kinds&isOptimizer != 0 })
	for i, v := range t.steps.Outermost(candidates) {
		if u := optimizers[i]; v != nesting.Below {
			u.Steps += t.stepCount.optimizer(u, v == nesting.Counts)
			// A step ends with its outermost span, wherever it was counted.
			u.EndsStep = true
		}
	}
	for i := range r.units {
		u := &r.units[i]
		ends := u.EndsStep || u.Steps > 0 && !hasForward(u)
		if u.kinds&isBatch != 0 {
			r.count(u, series.Batches, u.Source, 1)
			if !u.Parent.Known() && !t.steps.Has(u.Self, nesting.Covered) {
				u.Steps++
				ends = true
			}
		}
		if u.kinds&isWhole != 0 && !ends {
			ends = t.countWhole(u)
		}
		if u.Steps > 0 {
			r.count(u, series.Steps, u.Source, u.Steps)
			r.countPerStep(u)
		}
		u.EndsStep = ends
		if u.EndsStep && u.end > 0 {
			r.update(u, series.LastStepTimestamp, u.Source).Value = float64(u.end) / 1e9
		}
	}
}

// countWhole counts a span that contains all of a step as one, unless a span below
// it was: an optimizer, or another such span. It reports whether it did.
func (t *Tally) countWhole(u *unit) bool {
	counted := !t.steps.Has(u.Self, nesting.Covered)
	if counted {
		u.Steps++
	}
	if u.Parent.Known() {
		t.steps.Set(u.Parent, nesting.Covered)
	}
	return counted
}

func (t *Tally) countSamples(r *Reader) {
	r.rule(t.samples.Outermost, 0, func(u *unit) bool { return u.samples > 0 }, func(u *unit) {
		r.count(u, series.Samples, u.Source, u.samples)
	})
}

func (t *Tally) countRequests(r *Reader) {
	r.rule(t.requests.Innermost, isUsage, func(u *unit) bool { return u.kinds&(isRequest|isUsage) != 0 }, func(u *unit) {
		u.kinds |= isCounted
		r.count(u, series.Requests, u.requestSource, 1, u.Operation, u.role, u.model, u.Failure, u.side)
		r.addGenAITimes(u)
		if u.cost != 0 && u.kinds&isUsage == 0 {
			r.addCost(u)
		}
	})
	for i := range r.units {
		// A call that several spans record adds its time where it is counted.
		if u := &r.units[i]; u.wholeCall || len(u.calls) == 0 && u.kinds&(isCounted|isAgent) != 0 {
			r.addTimes(u, u.library, u.function)
		}
	}
}

func (t *Tally) countErrors(r *Reader) {
	_, links := r.selected(0, func(u *unit) bool { return u.kinds&(isError|isFailure) == isFailure })
	lowest := func(candidates []nesting.Candidate) []nesting.Verdict { return t.errors.Lowest(candidates, links) }
	r.rule(lowest, 0, func(u *unit) bool { return u.kinds&isError != 0 }, func(u *unit) {
		r.count(u, series.Errors, u.requestSource, 1, u.Operation, u.Failure)
	})
}

// rule counts the units that a rule applies to and that represent their chains.
func (r *result) rule(of func([]nesting.Candidate) []nesting.Verdict, always kinds, applies func(*unit) bool, counts func(*unit)) {
	units, candidates := r.selected(always, applies)
	for i, v := range of(candidates) {
		if v == nesting.Counts {
			counts(units[i])
		}
	}
}

// selected returns the units that a rule applies to, and their candidates, of which those of
// the given kinds always count, in memory that the next request reuses.
func (r *result) selected(always kinds, applies func(*unit) bool) ([]*unit, []nesting.Candidate) {
	first := len(r.chosen)
	for i := range r.units {
		if u := &r.units[i]; applies(u) {
			u.Always = u.kinds&always != 0
			r.chosen, r.candidates = append(r.chosen, u), append(r.candidates, u.Candidate)
		}
	}
	return r.chosen[first:], r.candidates[first:]
}

// rememberedSequences is the number of recent programs and traces whose optimizers and
// forward passes are remembered at the most; half as many are at least, more than the
// ranks of a run of 10,000. Each takes 6 KiB at most, and twice that where a clock was set back.
const rememberedSequences = 32_768

// stepCount counts steps by the order of optimizers and forward passes. Each
// trace has its own order, and so have the spans of a process that are the
// roots of their traces. It is not safe for concurrent use.
type stepCount struct {
	// sequences are by program and trace, those of roots by program.
	sequences *lastused.Map[uint64, *steps.Sequence]
	// source is that of the previous span of a request, program the hash of its names.
	source  *streams.Source
	program uint64
	names   []byte
}

// begin adds the forward passes of a request, before its optimizers, and adds
// to each the number of further steps: it may show that optimizers before and after it end
// separate steps.
func (c *stepCount) begin(units []unit) {
	c.source = nil
	for i := range units {
		if u := &units[i]; u.kinds&isOptimizer != 0 && !u.Parent.Known() && u.Time.End > 0 {
			c.of(u)
		}
	}
	for i := range units {
		u := &units[i]
		switch {
		case u.Time.End <= 0:
		case hasForward(u):
			c.forward(u)
		case u.kinds&isOptimizer != 0 && u.Step == 0:
			u.number = c.of(u).Last
		}
	}
}

// forward adds a forward pass, and the number of further steps to it.
func (c *stepCount) forward(u *unit) {
	sequence := c.of(u)
	root := !u.Parent.Known()
	other, known := c.sequences.Get(c.key(u, !root))
	if u.Step > 0 {
		sequence.Last = u.Step
		if root && known {
			other.Last = u.Step // of the optimizers below it
		}
	}
	u.Steps += sequence.Add(steps.Forward, u.Time.Start, u.Time.End)
	if !root && known {
		// An optimizer that is the root of a trace may have called it.
		u.Steps += other.Add(steps.Forward, u.Time.Start, u.Time.End)
	}
}

// optimizer adds an optimizer and returns the number of further steps. counted
// reports whether it is the first of its chain, which is a step if there are no
// times.
func (c *stepCount) optimizer(u *unit, counted bool) (more int64) {
	switch number := max(u.Step, u.number); {
	case u.Time.End > 0 && number > 0:
		return c.of(u).AddNumbered(u.Time.Start, u.Time.End, number, u.Restarts)
	case u.Time.End > 0:
		return c.of(u).Add(steps.Optimizer, u.Time.Start, u.Time.End)
	case counted:
		return 1
	}
	return 0
}

// of returns the sequence of a span: that of its trace, or of its program if it is a root.
func (c *stepCount) of(u *unit) *steps.Sequence {
	key := c.key(u, !u.Parent.Known())
	sequence, known := c.sequences.Get(key)
	if !known {
		sequence = new(steps.Sequence)
		c.sequences.Put(key, sequence)
	}
	return sequence
}

// key returns the key of the sequence of a span's trace, or of the roots of its program. A
// restart does not change it, and no client finds a second with the same.
func (c *stepCount) key(u *unit, roots bool) uint64 {
	if c.source != u.Source {
		c.source = u.Source
		c.names = binary.LittleEndian.AppendUint64(c.names[:0], uint64(u.Source.Identity)) // #nosec G115 -- a hash
		of, run := &u.Source.Resource, &u.Source.Run
		for _, text := range [...]string{of.Namespace, of.Service, run.ID, run.Job, run.Rank, run.Host} {
			c.names = append(append(c.names, text...), 0xff) // which no text has
		}
		sum := sha256.Sum256(c.names)
		c.program = binary.LittleEndian.Uint64(sum[:])
	}
	if roots {
		return c.program
	}
	return c.program ^ uint64(u.trace)
}

// hasForward reports whether a span is a forward pass or contains one.
func hasForward(u *unit) bool { return u.Time.Phase.HasForward() }

const (
	// operationTrainStep is the ml.operation of tokens that are derived from
	// the number of steps.
	operationTrainStep = "train_step"
	// maxFLOPsPerToken is the largest accepted number of operations per token,
	// far above that of any model.
	maxFLOPsPerToken = 1e18
)

// perStep is what a resource states about each step of a rank, from ml_enrich's
// configuration or the launcher. 0 means not stated.
type perStep struct {
	tokens, samples float64
	flopsPerToken   float64
}

// perStepOf reads a resource. It omits what the client reports for each step
// itself.
func perStepOf(facts *vocabulary.Facts) (per perStep) {
	bounded := func(slot vocabulary.Slot, most float64) float64 {
		if n, ok := facts.DoubleAt(slot); ok && n > 0 && n <= most {
			return n
		}
		return 0
	}
	per.tokens = bounded(vocabulary.SlotTokensPerStep, program.MaxPerStep)
	if !facts.Systems.Has(table.ReportsSamples) {
		per.samples = bounded(vocabulary.SlotSamplesPerStep, program.MaxPerStep)
	}
	per.flopsPerToken = bounded(vocabulary.SlotFLOPsPerToken, maxFLOPsPerToken)
	return per
}

// countPerStep counts tokens and samples of the steps of a span, rounded to
// whole numbers. Each rank counts its own; the run's total is their sum.
// Samples that a span reports take precedence.
func (r *result) countPerStep(u *unit) {
	of := func(per float64) int64 { return int64(math.Round(per * float64(u.Steps))) }
	if n := of(u.per.tokens); n > 0 {
		r.count(u, series.Tokens, u.Source, n, mlattr.TokenTypeInput, u.model, operationTrainStep, u.role)
	}
	if n := of(u.per.samples); n > 0 && u.samples == 0 {
		r.count(u, series.Samples, u.Source, n)
	}
	if u.per.flopsPerToken > 0 {
		r.update(u, series.FLOPsPerToken, u.Source).Value = u.per.flopsPerToken
	}
}
