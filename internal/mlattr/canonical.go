package mlattr

import "slices"

// KubernetesJob is the uid of a Kubernetes job. The run's identity reads it;
// it is never written, since the resource has it under its own name.
const KubernetesJob = "ml.kubernetes.job"

// kinds gives each canonical attribute that a client may also send itself
// its type. What the processor alone writes is not in it.
var kinds = map[string]Kind{
	ServiceName:         KindText,
	ServiceNamespace:    KindText,
	HostName:            KindText,
	ErrorType:           KindText,
	GenAIConversationID: KindID,
	GenAIOperationName:  KindText,
	GenAIRequestModel:   KindText,
	GenAITokenType:      KindText,
	GenAIInputTokens:    KindCount,
	GenAIOutputTokens:   KindCount,
	RunID:               KindID,
	RunInferred:         KindBool,
	RunAttempt:          KindCount,
	JobID:               KindJobID,
	JobName:             KindText,
	User:                KindID,
	Cluster:             KindText,
	RankLocal:           KindCount,
	RankGlobal:          KindCount,
	WorldSize:           KindCount,
	SessionID:           KindID,
	RequestID:           KindID,
	TrainingRunID:       KindID,
	SamplingSessionID:   KindID,
	CorrelationSource:   KindText,
	CorrelationConflict: KindText,
	GPUIndex:            KindDevice,
	GPUJoin:             KindText,
	Phase:               KindText,
	Operation:           KindText,
	Role:                KindText,
	Library:             KindText,
	Function:            KindText,
	Epoch:               KindInt,
	EpochTotal:          KindInt,
	EpochEnd:            KindBool,
	Step:                KindInt,
	BatchIndex:          KindInt,
	BatchSize:           KindCount,
	MicrobatchCount:     KindCount,
	LearningRate:        KindDouble,
	Loss:                KindDouble,
	LossScope:           KindText,
	ValLoss:             KindDouble,
	ValMetric:           KindDouble,
	TokensPerSecond:     KindDouble,
	SamplesPerSecond:    KindDouble,
	ThroughputBasis:     KindText,
	SamplesBasis:        KindText,
	TokensEstimated:     KindBool,
	UsageCounted:        KindBool,
	Latency:             KindDouble,
	KubernetesJob:       KindID,
}

// notAliasable are canonical attributes that no client's attribute can mean:
// the processor derives them, or they are only read.
var notAliasable = []string{
	RunInferred, CorrelationSource, CorrelationConflict, GPUJoin,
	ThroughputBasis, SamplesBasis, UsageCounted, Latency, KubernetesJob,
}

// Aliasable lists, sorted, the canonical attributes that a user's own alias
// may name.
func Aliasable() []string {
	var names []string
	for name := range kinds {
		if !slices.Contains(notAliasable, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readOnly says whether a fact under this name must not be written as it is.
func readOnly(canonical string, kind Kind) bool {
	return kind == KindSecret || canonical == Latency || canonical == KubernetesJob
}
