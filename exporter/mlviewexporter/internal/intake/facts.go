package intake

import (
	"cmp"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// facts are what a span says besides what the model takes over.
type facts struct {
	genAIOperation string
	// notCounted reports whether the span is no request of its own, or another span
	// reports the same usage, and asked whether it is a request that states no
	// operation.
	notCounted, asked bool
	// tokens reports whether the span reports token usage.
	tokens bool
}

// field is a canonical attribute that is read.
type field uint8

const (
	notRead field = iota
	fieldPhase
	fieldOperation
	fieldGenAIOperation
	fieldRole
	fieldSide
	fieldRequestedModel
	fieldModel
	fieldLibrary
	fieldFunction
	fieldBasis
	fieldCounted
	fieldRequestCounted
	fieldErrorCounted
	fieldTokens
	fieldCached
	fieldFirstToken
	fieldRate
	fieldDecode
	fieldLatency
	fieldQueue
	fieldBatchSize
	fieldMicrobatches
	fieldEpochTotal
	fieldWorldSize
)

// fields has the field of each slot.
var fields = func() (bySlot [256]field) {
	for name, f := range map[string]field{
		mlattr.Phase:                 fieldPhase,
		mlattr.Operation:             fieldOperation,
		mlattr.GenAIOperationName:    fieldGenAIOperation,
		mlattr.Role:                  fieldRole,
		mlattr.Side:                  fieldSide,
		mlattr.GenAIRequestModel:     fieldRequestedModel,
		mlattr.GenAIResponseModel:    fieldModel,
		mlattr.Library:               fieldLibrary,
		mlattr.Function:              fieldFunction,
		mlattr.ThroughputBasis:       fieldBasis,
		mlattr.UsageCounted:          fieldCounted,
		mlattr.RequestCounted:        fieldRequestCounted,
		mlattr.ErrorCounted:          fieldErrorCounted,
		mlattr.GenAIInputTokens:      fieldTokens,
		mlattr.UsageInputTokens:      fieldTokens,
		mlattr.GenAIOutputTokens:     fieldTokens,
		mlattr.GenAICacheReadTokens:  fieldCached,
		mlattr.GenAITimeToFirstChunk: fieldFirstToken,
		mlattr.TokensPerSecond:       fieldRate,
		mlattr.DecodePerSecond:       fieldDecode,
		mlattr.Latency:               fieldLatency,
		mlattr.QueueTime:             fieldQueue,
		mlattr.BatchSize:             fieldBatchSize,
		mlattr.MicrobatchCount:       fieldMicrobatches,
		mlattr.EpochTotal:            fieldEpochTotal,
		mlattr.WorldSize:             fieldWorldSize,
	} {
		bySlot[mlattr.SlotOf(name)] = f
	}
	return bySlot
}()

// readFacts reads the facts of a span in one pass.
func readFacts(of *mlattr.Facts, in *model.SpanInput) (v facts) {
	requested, basis, rate, hasRate := "", "", 0.0, false
	for f := range of.All() {
		if f.NonFinite || f.Unreadable {
			continue
		}
		switch fields[f.Slot()] {
		case fieldPhase:
			in.Phase = f.Text // empty for an inherited phase
		case fieldOperation:
			in.Operation = f.Text
		case fieldGenAIOperation:
			v.genAIOperation = f.Text
		case fieldRole:
			in.Role = f.Text
		case fieldSide:
			in.Side = f.Text
		case fieldRequestedModel:
			requested = f.Text
		case fieldModel:
			in.Model = f.Text
		case fieldLibrary:
			in.Library = f.Text
		case fieldFunction:
			in.Function = f.Text
		case fieldBasis:
			basis = f.Text
		case fieldCounted:
			v.notCounted = v.notCounted || !f.Bool
		case fieldRequestCounted:
			v.notCounted, v.asked = v.notCounted || !f.Bool, f.Bool
		case fieldErrorCounted:
			in.FailureElsewhere = !f.Bool
		case fieldTokens:
			v.tokens = true
		case fieldCached:
			in.Cached = float64(f.Int)
		case fieldFirstToken:
			in.FirstToken = f.Double
		case fieldRate:
			rate, hasRate = f.Double, true
		case fieldDecode:
			in.Decode, in.DecodeBasis = f.Double, mlattr.BasisDecode
		case fieldLatency:
			in.Duration = callTime(f.Double, in.Duration)
		case fieldQueue:
			in.Queue = callTime(f.Double, in.Queue)
		case fieldBatchSize, fieldMicrobatches, fieldEpochTotal, fieldWorldSize:
			readSize(f, &in.Sizes)
		}
	}
	in.Operation, in.Model = cmp.Or(in.Operation, v.genAIOperation), cmp.Or(requested, in.Model)
	if in.DecodeBasis == "" && hasRate {
		in.Decode, in.DecodeBasis = rate, cmp.Or(basis, mlattr.BasisReported)
	}
	return v
}

// callTime returns a duration in seconds, or otherwise if it is too long for one.
func callTime(seconds, otherwise float64) float64 {
	if seconds > mlattr.MaxCallTime {
		return otherwise
	}
	return seconds
}
