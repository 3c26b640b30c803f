package intake

import (
	"cmp"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var (
	slotCached       = vocabulary.SlotOf(mlattr.GenAICacheReadTokens)
	slotFirstToken   = vocabulary.SlotOf(mlattr.GenAITimeToFirstChunk)
	slotDecode       = vocabulary.SlotOf(mlattr.DecodePerSecond)
	slotLatency      = vocabulary.SlotOf(mlattr.Latency)
	slotQueue        = vocabulary.SlotOf(mlattr.QueueTime)
	slotMicrobatches = vocabulary.SlotOf(mlattr.MicrobatchCount)
	slotEpochs       = vocabulary.SlotOf(mlattr.EpochTotal)
	slotWorld        = vocabulary.SlotOf(mlattr.WorldSize)
)

// readFacts reads the facts of a span into v and in.
func readFacts(f *vocabulary.Facts, v *spanfact.Fact, in *input.Span) {
	v.Read(f)
	in.Phase, in.Role, in.Side, in.Library, in.Function = v.Phase, v.Role, v.Side, v.Library, v.Function
	in.Operation, in.Model = cmp.Or(v.Operation, v.GenAIOperation), v.Model()
	in.ML, in.FailureElsewhere = v.OfModel(), v.ErrorElsewhere
	if cached, ok := f.IntAt(slotCached); ok {
		in.Cached = float64(cached)
	}
	if first, ok := f.DoubleAt(slotFirstToken); ok {
		in.FirstToken = first
	}
	if decode, ok := f.DoubleAt(slotDecode); ok {
		in.Decode, in.DecodeBasis = decode, mlattr.BasisDecode
	} else if v.HasRate {
		in.Decode, in.DecodeBasis = v.Rate, v.Basis
	}
	if latency, ok := f.DoubleAt(slotLatency); ok {
		in.Duration = callTime(latency, in.Duration)
	}
	if queue, ok := f.DoubleAt(slotQueue); ok {
		in.Queue = callTime(queue, in.Queue)
	}
	in.Sizes.Batch = v.BatchSize
	in.Sizes.Microbatches, _ = f.IntAt(slotMicrobatches)
	in.Sizes.Epochs, _ = f.IntAt(slotEpochs)
	in.Sizes.World, _ = f.IntAt(slotWorld)
}

// callTime returns a duration in seconds, or otherwise if it is too long for one.
func callTime(seconds, otherwise float64) float64 {
	if seconds > mlattr.MaxCallTime {
		return otherwise
	}
	return seconds
}
