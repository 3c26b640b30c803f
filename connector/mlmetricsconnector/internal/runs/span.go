package runs

import (
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ending"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
)

// Program is what a resource reveals about how its client records run time.
type Program struct {
	// Born is the start of the run's process, PID its id, 0 if unknown.
	Born, PID int64
	// Idles reports whether time without a span is time without work.
	Idles bool
	// OnDemand reports whether the process works when it is asked to, for many
	// runs, so that time without a span says nothing about its speed.
	OnDemand bool
	// NoStartup reports whether time before the first productive moment may be
	// something other than startup.
	NoStartup bool
	// Restarts is the launcher's count of restarts; Numbered reports whether
	// there is one.
	Restarts int64
	Numbered bool
	// World is the number of ranks of the run, 0 if unknown, and SomeSend reports
	// whether only some of them may send.
	World    int64
	SomeSend bool
	// Tokens is the number of tokens of a step of all ranks, 0 if unknown.
	Tokens float64
}

// Span is what a span reveals about the time of its run.
type Span struct {
	Program
	// Source is the rank, and Trace the trace of the span.
	Source *streams.Source
	Trace  [16]byte
	// Timed reports whether Time has a duration that counts.
	Timed bool
	// Time has the client's times, even if Timed is false.
	Time wallclock.Span
	// EndsRun reports whether the span is that of the whole training.
	EndsRun bool
	// EndsStep reports whether a step ends with the span, and Optimizes whether it is
	// an optimizer.
	EndsStep, Optimizes bool
	// Steps is how many steps are counted with it.
	Steps int64
	// Step is the number of the step within the run, 0 if the client does not
	// number steps that way.
	Step int64
	// Root reports whether the span has no parent and may be that of a program that
	// trains.
	Root bool
	// OneTrace reports whether a process of the client has one trace for its
	// whole life.
	OneTrace bool
	// Timing is the label for what was timed.
	Timing string
	// Operation is its ml.operation, Failure the class of its error, "" if it has none.
	Operation, Failure string
}

// works reports whether a span is work of a training.
func (s *Span) works() bool { return s.Timed || s.EndsStep }

// sign returns what the span reveals about its attempt.
func (s *Span) sign() sign {
	of := sign{number: s.Restarts, numbered: s.Numbered, start: s.Time.Start}
	if s.OneTrace {
		of.trace = s.Trace
	}
	return of
}

// ending returns what the span says about the end of its program.
func (s *Span) ending() *ending.Span {
	return &ending.Span{
		Trace: s.Trace, Start: s.Time.Start, End: s.Time.End, Root: s.Root, Work: s.works(), Train: s.EndsRun,
		Failure: s.Failure, Operation: s.Operation,
	}
}
