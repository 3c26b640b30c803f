package mlattr

import (
	"cmp"
	"maps"
	"slices"
)

// kinds has the kind of each canonical attribute that a client may send, too.
// Attributes that only components of this project write are not in it.
var kinds = map[string]Kind{
	ServiceName:              KindText,
	ServiceNamespace:         KindText,
	HostName:                 KindText,
	ErrorType:                KindText,
	GenAIConversationID:      KindID,
	GenAIOperationName:       KindText,
	GenAIRequestModel:        KindText,
	GenAIResponseModel:       KindText,
	GenAITokenType:           KindText,
	GenAIInputTokens:         KindCount,
	GenAIOutputTokens:        KindCount,
	GenAICacheReadTokens:     KindCount,
	GenAICacheCreationTokens: KindCount,
	GenAIReasoningTokens:     KindCount,
	GenAIProviderName:        KindText,
	GenAIStream:              KindBool,
	GenAITimeToFirstChunk:    KindSeconds,
	GenAIChoices:             KindCount,
	GenAIResponseID:          KindID,
	GenAIFinishReasons:       KindTexts,
	GenAIToolName:            KindText,
	GenAIAgentName:           KindText,
	HTTPResendCount:          KindCount,
	RunID:                    KindID,
	RunInferred:              KindBool,
	RunAttempt:               KindCount,
	JobID:                    KindJobID,
	JobName:                  KindText,
	User:                     KindID,
	Cluster:                  KindText,
	RankLocal:                KindCount,
	RankGlobal:               KindCount,
	WorldSize:                KindCount,
	SessionID:                KindID,
	RequestID:                KindID,
	TrainingRunID:            KindID,
	SamplingSessionID:        KindID,
	CorrelationSource:        KindText,
	CorrelationConflict:      KindText,
	GPUIndex:                 KindDevice,
	GPUJoin:                  KindText,
	GPUShared:                KindBool,
	LabelConflict:            KindBool,
	Critical:                 KindBool,
	CriticalTime:             KindSeconds,
	Phase:                    KindText,
	Operation:                KindText,
	Role:                     KindText,
	Library:                  KindText,
	Function:                 KindText,
	Epoch:                    KindInt,
	EpochTotal:               KindInt,
	EpochEnd:                 KindBool,
	Step:                     KindInt,
	BatchIndex:               KindInt,
	BatchSize:                KindCount,
	MicrobatchCount:          KindCount,
	LearningRate:             KindDouble,
	Loss:                     KindDouble,
	LossScope:                KindText,
	ValLoss:                  KindDouble,
	ValMetric:                KindDouble,
	TokensPerSecond:          KindDouble,
	DecodePerSecond:          KindDouble,
	PrefillPerSecond:         KindDouble,
	SequencePerSecond:        KindDouble,
	SamplesPerSecond:         KindDouble,
	ThroughputBasis:          KindText,
	SamplesBasis:             KindText,
	ThroughputScope:          KindText,
	TokensEstimated:          KindBool,
	UsageInputTokens:         KindCount,
	UsageCost:                KindDouble,
	UsageInputCost:           KindDouble,
	UsageOutputCost:          KindDouble,
	UsageCurrency:            KindText,
	UsageCounted:             KindBool,
	UsageEvidence:            KindText,
	RequestCounted:           KindBool,
	ErrorCounted:             KindBool,
	Side:                     KindText,
	TokensPerStep:            KindDouble,
	SamplesPerStep:           KindDouble,
	FLOPsPerToken:            KindDouble,
	QueueTime:                KindSeconds,
	SampleKeep:               KindBool,
	Latency:                  KindSeconds,
	PrefillTime:              KindSeconds,
	DecodeTime:               KindSeconds,
	FirstTokenAt:             KindInstant,
	TotalTokens:              KindCount,
	KubernetesJob:            KindID,
	GPUUUID:                  KindID,
	JobTokensPerStep:         KindDouble,
	JobTokensBasis:           KindText,
	JobBatchSize:             KindCount,
	SequenceLength:           KindCount,
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
	slotPhase        = SlotOf(Phase)
	slotOperation    = SlotOf(Operation)
	slotRole         = SlotOf(Role)
	slotLoss         = SlotOf(Loss)
	slotLossScope    = SlotOf(LossScope)
	slotSource       = SlotOf(CorrelationSource)
	slotFirstChunk   = SlotOf(GenAITimeToFirstChunk)
	slotStream       = SlotOf(GenAIStream)
	slotFirstTokenAt = SlotOf(FirstTokenAt)
	slotQueueTime    = SlotOf(QueueTime)
)

// notAliasable are canonical attributes that no alias may name: ml_enrich
// derives them.
var notAliasable = []string{
	RunInferred, CorrelationSource, CorrelationConflict, Critical, CriticalTime, GPUJoin, GPUShared, LabelConflict,
	ThroughputBasis, SamplesBasis, UsageInputTokens, UsageCounted, UsageEvidence, ErrorCounted, Side,
	DecodePerSecond, PrefillPerSecond, SequencePerSecond, JobTokensBasis,
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
func readOnly(canonical string, kind Kind) bool {
	return kind == KindSecret || onlyRead(canonical)
}

// onlyRead reports whether an attribute is canonical within this project only:
// it is neither sent nor written under its name.
func onlyRead(canonical string) bool {
	switch canonical {
	case Latency, PrefillTime, DecodeTime, FirstTokenAt, TotalTokens, UsageCurrency, KubernetesJob, GPUUUID, JobBatchSize, SequenceLength:
		return true
	default:
		return false
	}
}

// attributeUnits has the unit, in UCUM, of each canonical attribute that has
// one.
var attributeUnits = map[string]string{
	GenAIInputTokens:         "{token}",
	GenAIOutputTokens:        "{token}",
	GenAICacheReadTokens:     "{token}",
	GenAICacheCreationTokens: "{token}",
	GenAIReasoningTokens:     "{token}",
	TotalTokens:              "{token}",
	UsageInputTokens:         "{token}",
	UsageCost:                "USD",
	UsageInputCost:           "USD",
	UsageOutputCost:          "USD",
	TokensPerStep:            "{token}",
	JobTokensPerStep:         "{token}",
	SequenceLength:           "{token}",
	JobBatchSize:             "{sample}",
	SamplesPerStep:           "{sample}",
	FLOPsPerToken:            "{FLOP}",
	TokensPerSecond:          "{token}/s",
	DecodePerSecond:          "{token}/s",
	PrefillPerSecond:         "{token}/s",
	SequencePerSecond:        "{token}/s",
	SamplesPerSecond:         "{sample}/s",
	BatchSize:                "{sample}",
	FirstTokenAt:             "ns",
}

// Attribute describes a canonical attribute.
type Attribute struct {
	// Name is the attribute's key. A name that ends in a dot is the beginning
	// of several keys.
	Name string
	// Kind is how its values are read.
	Kind Kind
	// Unit is the unit in UCUM, or "".
	Unit string
	// OnlyRead is true for an attribute that others are derived from and that
	// is never written.
	OnlyRead bool
}

// Attributes returns the canonical attributes that can be read, sorted by name.
func Attributes() []Attribute {
	list := []Attribute{{Name: LossTaskPrefix, Kind: KindDouble}, {Name: ValPrefix, Kind: KindDouble}}
	for name, kind := range kinds {
		unit := attributeUnits[name]
		if kind == KindSeconds {
			unit = "s"
		}
		list = append(list, Attribute{Name: name, Kind: kind, Unit: unit, OnlyRead: onlyRead(name)})
	}
	slices.SortFunc(list, func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
