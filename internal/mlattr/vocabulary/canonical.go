package vocabulary

import (
	"cmp"
	"maps"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// kinds has the kind of each canonical attribute that a client may send, too.
// Attributes that only components of this project write are not in it.
var kinds = map[string]table.Kind{
	mlattr.ServiceName:              table.KindText,
	mlattr.ServiceNamespace:         table.KindText,
	mlattr.HostName:                 table.KindText,
	mlattr.ErrorType:                table.KindText,
	mlattr.GenAIConversationID:      table.KindID,
	mlattr.GenAIOperationName:       table.KindText,
	mlattr.GenAIRequestModel:        table.KindText,
	mlattr.GenAIResponseModel:       table.KindText,
	mlattr.GenAITokenType:           table.KindText,
	mlattr.GenAIInputTokens:         table.KindCount,
	mlattr.GenAIOutputTokens:        table.KindCount,
	mlattr.GenAICacheReadTokens:     table.KindCount,
	mlattr.GenAICacheCreationTokens: table.KindCount,
	mlattr.GenAIReasoningTokens:     table.KindCount,
	mlattr.GenAIProviderName:        table.KindText,
	mlattr.GenAIStream:              table.KindBool,
	mlattr.GenAITimeToFirstChunk:    table.KindSeconds,
	mlattr.GenAIChoices:             table.KindCount,
	mlattr.GenAIResponseID:          table.KindID,
	mlattr.GenAIFinishReasons:       table.KindTexts,
	mlattr.GenAIToolName:            table.KindText,
	mlattr.GenAIAgentName:           table.KindText,
	mlattr.HTTPResendCount:          table.KindCount,
	mlattr.HTTPRoute:                table.KindText,
	mlattr.RPCMethod:                table.KindText,
	mlattr.Overflow:                 table.KindBool,
	mlattr.RunID:                    table.KindID,
	mlattr.RunInferred:              table.KindBool,
	mlattr.RunAttempt:               table.KindCount,
	mlattr.JobID:                    table.KindJobID,
	mlattr.JobName:                  table.KindText,
	mlattr.User:                     table.KindID,
	mlattr.Cluster:                  table.KindText,
	mlattr.RankLocal:                table.KindCount,
	mlattr.RankGlobal:               table.KindCount,
	mlattr.WorldSize:                table.KindCount,
	mlattr.SessionID:                table.KindID,
	mlattr.RequestID:                table.KindID,
	mlattr.TrainingRunID:            table.KindID,
	mlattr.SamplingSessionID:        table.KindID,
	mlattr.CorrelationSource:        table.KindText,
	mlattr.CorrelationConflict:      table.KindText,
	mlattr.GPUIndex:                 table.KindDevice,
	mlattr.GPUJoin:                  table.KindText,
	mlattr.GPUShared:                table.KindBool,
	mlattr.LabelConflict:            table.KindBool,
	mlattr.Critical:                 table.KindBool,
	mlattr.CriticalTime:             table.KindSeconds,
	mlattr.Phase:                    table.KindText,
	mlattr.Operation:                table.KindText,
	mlattr.Role:                     table.KindText,
	mlattr.Library:                  table.KindText,
	mlattr.Function:                 table.KindText,
	mlattr.Epoch:                    table.KindInt,
	mlattr.EpochTotal:               table.KindInt,
	mlattr.EpochEnd:                 table.KindBool,
	mlattr.Step:                     table.KindInt,
	mlattr.BatchIndex:               table.KindInt,
	mlattr.BatchSize:                table.KindCount,
	mlattr.MicrobatchCount:          table.KindCount,
	mlattr.LearningRate:             table.KindDouble,
	mlattr.Loss:                     table.KindDouble,
	mlattr.LossScope:                table.KindText,
	mlattr.ValLoss:                  table.KindDouble,
	mlattr.ValMetric:                table.KindDouble,
	mlattr.TokensPerSecond:          table.KindDouble,
	mlattr.DecodePerSecond:          table.KindDouble,
	mlattr.PrefillPerSecond:         table.KindDouble,
	mlattr.SequencePerSecond:        table.KindDouble,
	mlattr.SamplesPerSecond:         table.KindDouble,
	mlattr.ThroughputBasis:          table.KindText,
	mlattr.SamplesBasis:             table.KindText,
	mlattr.ThroughputScope:          table.KindText,
	mlattr.TokensEstimated:          table.KindBool,
	mlattr.UsageInputTokens:         table.KindCount,
	mlattr.UsageOutputTokens:        table.KindCount,
	mlattr.UsageCost:                table.KindDouble,
	mlattr.UsageInputCost:           table.KindDouble,
	mlattr.UsageOutputCost:          table.KindDouble,
	mlattr.UsageCurrency:            table.KindText,
	mlattr.UsageCounted:             table.KindBool,
	mlattr.UsageEvidence:            table.KindText,
	mlattr.RequestCounted:           table.KindBool,
	mlattr.ErrorCounted:             table.KindBool,
	mlattr.Side:                     table.KindText,
	mlattr.TokensPerStep:            table.KindDouble,
	mlattr.SamplesPerStep:           table.KindDouble,
	mlattr.FLOPsPerToken:            table.KindDouble,
	mlattr.QueueTime:                table.KindSeconds,
	mlattr.SampleKeep:               table.KindBool,
	mlattr.Latency:                  table.KindSeconds,
	mlattr.PrefillTime:              table.KindSeconds,
	mlattr.DecodeTime:               table.KindSeconds,
	mlattr.FirstTokenAt:             table.KindInstant,
	mlattr.TotalTokens:              table.KindCount,
	mlattr.KubernetesJob:            table.KindID,
	mlattr.GPUUUID:                  table.KindID,
	mlattr.JobTokensPerStep:         table.KindDouble,
	mlattr.JobTokensBasis:           table.KindText,
	mlattr.JobBatchSize:             table.KindCount,
	mlattr.SequenceLength:           table.KindCount,
}

// Slot is the number of a canonical attribute. Facts are found by slot without
// comparing names. Zero is no attribute.
type Slot uint8

// maxSlots is above every slot.
const maxSlots = 128

// slotNames has the name of each slot, and slots the slot of each name.
var slotNames, slots = numberSlots()

func numberSlots() (names [maxSlots]string, bySlot map[string]Slot) {
	bySlot = make(map[string]Slot, len(kinds))
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		names[i+1] = name
		bySlot[name] = Slot(i + 1)
	}
	return names, bySlot
}

// SlotOf returns the slot of a canonical attribute. It returns zero for any
// other name, including dynamic ones such as those that begin with
// LossTaskPrefix.
func SlotOf(canonical string) Slot { return slots[canonical] }

// Slots that the reader itself uses.
var (
	slotPhase        = SlotOf(mlattr.Phase)
	slotOperation    = SlotOf(mlattr.Operation)
	slotRole         = SlotOf(mlattr.Role)
	slotLoss         = SlotOf(mlattr.Loss)
	slotLossScope    = SlotOf(mlattr.LossScope)
	slotSource       = SlotOf(mlattr.CorrelationSource)
	slotFirstChunk   = SlotOf(mlattr.GenAITimeToFirstChunk)
	slotStream       = SlotOf(mlattr.GenAIStream)
	slotFirstTokenAt = SlotOf(mlattr.FirstTokenAt)
	slotQueueTime    = SlotOf(mlattr.QueueTime)

	slotGenAIOperation = SlotOf(mlattr.GenAIOperationName)
	slotRequested      = SlotOf(mlattr.GenAIRequestModel)
	slotAnswered       = SlotOf(mlattr.GenAIResponseModel)
	slotErrorType      = SlotOf(mlattr.ErrorType)
	slotToolName       = SlotOf(mlattr.GenAIToolName)
	slotRequestCounted = SlotOf(mlattr.RequestCounted)
)

// notAliasable are canonical attributes that no alias may name: ml_enrich
// derives them.
var notAliasable = []string{
	mlattr.RunInferred, mlattr.CorrelationSource, mlattr.CorrelationConflict, mlattr.Critical, mlattr.CriticalTime, mlattr.GPUJoin, mlattr.GPUShared, mlattr.LabelConflict,
	mlattr.ThroughputBasis, mlattr.SamplesBasis, mlattr.UsageInputTokens, mlattr.UsageOutputTokens, mlattr.UsageCounted, mlattr.UsageEvidence, mlattr.ErrorCounted, mlattr.Side,
	mlattr.DecodePerSecond, mlattr.PrefillPerSecond, mlattr.SequencePerSecond, mlattr.JobTokensBasis,
}

// Aliasable returns the canonical attributes that a user's alias may name,
// sorted.
func Aliasable() []string {
	var names []string
	for name := range kinds {
		if !slices.Contains(notAliasable, name) && !onlyRead(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readOnly reports whether a fact of this attribute must not be written.
func readOnly(canonical string, kind table.Kind) bool {
	return kind == table.KindSecret || onlyRead(canonical)
}

// onlyRead reports whether an attribute is canonical within this project only:
// it is neither sent nor written under its name.
func onlyRead(canonical string) bool {
	switch canonical {
	case mlattr.Latency, mlattr.PrefillTime, mlattr.DecodeTime, mlattr.FirstTokenAt, mlattr.TotalTokens, mlattr.UsageCurrency, mlattr.KubernetesJob, mlattr.GPUUUID, mlattr.JobBatchSize, mlattr.SequenceLength:
		return true
	default:
		return false
	}
}

// attributeUnits has the unit, in UCUM, of each canonical attribute that has
// one.
var attributeUnits = map[string]string{
	mlattr.GenAIInputTokens:         "{token}",
	mlattr.GenAIOutputTokens:        "{token}",
	mlattr.GenAICacheReadTokens:     "{token}",
	mlattr.GenAICacheCreationTokens: "{token}",
	mlattr.GenAIReasoningTokens:     "{token}",
	mlattr.TotalTokens:              "{token}",
	mlattr.UsageInputTokens:         "{token}",
	mlattr.UsageOutputTokens:        "{token}",
	mlattr.UsageCost:                "USD",
	mlattr.UsageInputCost:           "USD",
	mlattr.UsageOutputCost:          "USD",
	mlattr.TokensPerStep:            "{token}",
	mlattr.JobTokensPerStep:         "{token}",
	mlattr.SequenceLength:           "{token}",
	mlattr.JobBatchSize:             "{sample}",
	mlattr.SamplesPerStep:           "{sample}",
	mlattr.FLOPsPerToken:            "{FLOP}",
	mlattr.TokensPerSecond:          "{token}/s",
	mlattr.DecodePerSecond:          "{token}/s",
	mlattr.PrefillPerSecond:         "{token}/s",
	mlattr.SequencePerSecond:        "{token}/s",
	mlattr.SamplesPerSecond:         "{sample}/s",
	mlattr.BatchSize:                "{sample}",
	mlattr.FirstTokenAt:             "ns",
}

// Attribute describes a canonical attribute.
type Attribute struct {
	// Name is the attribute's key. A name that ends in a dot is the beginning
	// of several keys.
	Name string
	// Kind is how its values are read.
	Kind table.Kind
	// Unit is the unit in UCUM, or "".
	Unit string
	// OnlyRead is true for an attribute that others are derived from and that
	// is never written.
	OnlyRead bool
}

// Attributes returns the canonical attributes that can be read, sorted by name.
func Attributes() []Attribute {
	list := []Attribute{{Name: mlattr.LossTaskPrefix, Kind: table.KindDouble}, {Name: mlattr.ValPrefix, Kind: table.KindDouble}}
	for name, kind := range kinds {
		unit := attributeUnits[name]
		if kind == table.KindSeconds {
			unit = "s"
		}
		list = append(list, Attribute{Name: name, Kind: kind, Unit: unit, OnlyRead: onlyRead(name)})
	}
	slices.SortFunc(list, func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
