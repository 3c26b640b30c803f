package spans

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/steps"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
)

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
