package spanfact

import (
	"cmp"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Fact is what a span says, of what several components conclude from.
type Fact struct {
	End
	// Operation and GenAIOperation say what the span does, in the canonical words and in
	// those of the conventions.
	Operation, GenAIOperation string
	// Role is the part of an agent or a service, Side the side of a request.
	Role, Side string
	// Requested is the model that was asked for, Answered the one that answered.
	Requested, Answered string
	// Library and Function are what the span calls.
	Library, Function string

	// Input and Output count tokens, those of caches included. HasInput and HasOutput
	// report whether the span states them.
	Input, Output       int64
	HasInput, HasOutput bool
	// Rate is in tokens per second, by Basis. HasRate reports whether there is one.
	Rate    float64
	HasRate bool
	Basis   string
	// BatchSize is the number of samples, or 0.
	BatchSize int64

	// NotCounted reports whether another span reports the same usage, NoRequest whether
	// the span is no request of its own, Asked whether it is one that states no
	// operation, and ErrorElsewhere whether another span counts its failure.
	NotCounted, NoRequest, Asked, ErrorElsewhere bool
}

// Read replaces the fact by what a Reader has read of a span.
func (s *Fact) Read(f *vocabulary.Facts) {
	// Field by field, because the fact is large.
	s.readEnd(f)
	s.Operation, s.GenAIOperation = f.TextAt(vocabulary.SlotOperation), f.TextAt(vocabulary.SlotGenAIOperationName)
	s.Role, s.Side = f.TextAt(vocabulary.SlotRole), f.TextAt(vocabulary.SlotSide)
	s.Requested, s.Answered = f.TextAt(vocabulary.SlotGenAIRequestModel), f.TextAt(vocabulary.SlotGenAIResponseModel)
	s.Library, s.Function = f.TextAt(vocabulary.SlotLibrary), f.TextAt(vocabulary.SlotFunction)
	s.Basis = f.TextAt(vocabulary.SlotThroughputBasis)
	// The producer's own numbers may exclude caches and reasoning.
	if s.Input, s.HasInput = f.IntAt(vocabulary.SlotUsageInputTokens); !s.HasInput {
		s.Input, s.HasInput = f.IntAt(vocabulary.SlotGenAIInputTokens)
	}
	if s.Output, s.HasOutput = f.IntAt(vocabulary.SlotUsageOutputTokens); !s.HasOutput {
		s.Output, s.HasOutput = f.IntAt(vocabulary.SlotGenAIOutputTokens)
	}
	if s.Rate, s.HasRate = f.DoubleAt(vocabulary.SlotTokensPerSecond); s.Basis == "" {
		// The rate was not derived, so the producer reported it.
		s.Basis = mlattr.BasisReported
	}
	s.BatchSize, _ = f.IntAt(vocabulary.SlotBatchSize)
	counted, stated := f.BoolAt(vocabulary.SlotUsageCounted)
	s.NotCounted = stated && !counted
	counted, stated = f.BoolAt(vocabulary.SlotRequestCounted)
	s.NoRequest, s.Asked = stated && !counted, counted
	counted, stated = f.BoolAt(vocabulary.SlotErrorCounted)
	s.ErrorElsewhere = stated && !counted
}

// Model returns the model that was asked for, else the one that answered: a failed
// request has no answer, and counts beside the others.
func (s *Fact) Model() string { return cmp.Or(s.Requested, s.Answered) }

// OfModel reports whether the span is a machine-learning operation, whose failure
// counts, unlike, for example, that of an HTTP server's span.
func (s *Fact) OfModel() bool {
	return s.Phase != "" || s.Operation != "" || s.GenAIOperation != "" ||
		s.Role != "" || s.Library != "" || s.Function != "" || s.Asked
}

// Usage reports whether the span reports tokens of a request of its own.
func (s *Fact) Usage() bool { return (s.HasInput || s.HasOutput) && !s.NotCounted && !s.NoRequest }

// InChain reports whether the span is a request to a model or reports the tokens of one. Of
// a chain of such spans, where each lies directly below the next, the lowest is the request.
func (s *Fact) InChain(event table.EventKind) bool { return s.Usage() || s.Request(event) }

// Request reports whether the span is a request to a model by what it states, whether
// it reports tokens or not. The span may represent an event of that kind. Of a chain of
// such spans one counts.
func (s *Fact) Request(event table.EventKind) bool {
	if s.NotCounted || s.NoRequest {
		return false
	}
	return s.Phase == mlattr.PhaseSample || event == table.EventInference || s.Asked || vocabulary.AsksModel(s.GenAIOperation)
}

// Rank returns the global rank that a span or a resource names as text, or "".
func Rank(f *vocabulary.Facts) string {
	if rank, ok := f.IntAt(vocabulary.SlotRankGlobal); ok {
		return strconv.FormatInt(rank, 10)
	}
	return ""
}

// Step returns the number of the span's step within its run, 0 if it states none or its
// client numbers the steps of each epoch.
func Step(f *vocabulary.Facts) int64 {
	step, _ := f.IntAt(vocabulary.SlotStep)
	return StepOf(f.Systems, step)
}

// StepOf is Step for a number that was read elsewhere, of a span of these clients.
func StepOf(systems vocabulary.System, step int64) int64 {
	if systems.Has(table.StepsPerEpoch) {
		return 0
	}
	return max(step, 0)
}
