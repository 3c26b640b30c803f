// Package mlattr has the names that components of otelcol-ml share: canonical
// attributes, kinds of problems and of changes. It reads single values that arrive as
// text, integers or doubles. It depends on pdata and a reader of YAML only, so that every
// component can use it.
//
// Package table describes what a client sends, package clients has a table for each, and
// package vocabulary reads spans, points and resources by them.
package mlattr

//go:generate go test ./vocabularypage -run TestPage -update

// Names that the semantic conventions, version 1.41.1, define. They are
// repeated here because a canonical name must not change when a library is
// updated.
const (
	// ServiceName names the program that sent the telemetry.
	ServiceName = "service.name"
	// ServiceNamespace groups services; names are unique within one only.
	ServiceNamespace = "service.namespace"
	// HostName names the machine that the program ran on.
	HostName = "host.name"
	// ExceptionEvent is the name of the event of an exception, ExceptionType its class.
	ExceptionEvent = "exception"
	ExceptionType  = "exception.type"
	// ErrorType is the class of an error, low in cardinality.
	ErrorType = "error.type"
	// ErrorMessage is the text of an error.
	ErrorMessage = "error.message"

	// GenAIConversationID groups the requests of one conversation.
	GenAIConversationID = "gen_ai.conversation.id"
	// GenAIOperationName is the operation of an LLM client, such as chat.
	GenAIOperationName = "gen_ai.operation.name"
	// GenAIRequestModel is the model that the caller requested.
	GenAIRequestModel = "gen_ai.request.model"
	// GenAIResponseModel is the model that answered, often an exact version of
	// the requested one.
	GenAIResponseModel = "gen_ai.response.model"
	// GenAITokenType says on a metric whether tokens are input or output.
	GenAITokenType = "gen_ai.token.type" //nolint:gosec // a name, no credential
	// GenAIInputTokens counts the input tokens of a request, including cached
	// ones.
	GenAIInputTokens = "gen_ai.usage.input_tokens" //nolint:gosec // a name, no credential
	// GenAIOutputTokens counts the output tokens of a response, including those
	// of its reasoning.
	GenAIOutputTokens = "gen_ai.usage.output_tokens" //nolint:gosec // a name, no credential
	// GenAIReasoningTokens counts the output tokens of the model's reasoning.
	GenAIReasoningTokens = "gen_ai.usage.reasoning.output_tokens" //nolint:gosec // a name, no credential
	// GenAIProviderName names the provider of the model, such as openai.
	GenAIProviderName = "gen_ai.provider.name"
	// GenAIStream is true where the answer was requested as a stream.
	GenAIStream = "gen_ai.request.stream"
	// GenAICacheReadTokens counts the input tokens that were read from a cache.
	GenAICacheReadTokens = "gen_ai.usage.cache_read.input_tokens" //nolint:gosec // a name, no credential
	// GenAICacheCreationTokens counts the input tokens that were written to a
	// cache.
	GenAICacheCreationTokens = "gen_ai.usage.cache_creation.input_tokens" //nolint:gosec // a name, no credential
	// GenAITimeToFirstChunk is the time in seconds from a request to the first
	// part of its answer.
	GenAITimeToFirstChunk = "gen_ai.response.time_to_first_chunk"
	// GenAIChoices is the number of answers that a request asks for. They are
	// generated at the same time.
	GenAIChoices = "gen_ai.request.choice.count"
	// GenAIResponseID is the id of one answer.
	GenAIResponseID = "gen_ai.response.id"
	// GenAIFinishReasons says why the model stopped, once for each answer. Where
	// one of the answers was cut at a limit of tokens, its reason is read;
	// otherwise the first one is.
	GenAIFinishReasons = "gen_ai.response.finish_reasons"
	// GenAIToolName names the tool that a span executes.
	GenAIToolName = "gen_ai.tool.name"
	// GenAIAgentName names the agent that a span is about.
	GenAIAgentName = "gen_ai.agent.name"
	// HTTPResendCount is how many times an HTTP request was sent before.
	HTTPResendCount = "http.request.resend_count"
	// HTTPRoute is the route of an HTTP request that a server took.
	HTTPRoute = "http.route"
	// RPCMethod is the method of a remote procedure call.
	RPCMethod = "rpc.method"
	// Overflow is true on spans, points and streams that lack a label of their own because
	// a limit was reached.
	Overflow = "otel.metric.overflow"

	// HardwareID identifies a GPU or MIG device by its UUID, as NVML spells it.
	HardwareID = "hw.id"

	// SlurmJobID, K8sNamespace, K8sPod, ContainerID, UserID and UserName are what a
	// workload of a GPU is known by.
	SlurmJobID   = "slurm.job.id"
	K8sNamespace = "k8s.namespace.name"
	K8sPod       = "k8s.pod.name"
	ContainerID  = "container.id"
	UserID       = "user.id"
	UserName     = "user.name"
)

// Names that the conventions lack, of what telemetry belongs to.
const (
	// RunID identifies a run: one execution of training, fine-tuning or an
	// agent, or the life of a service.
	RunID = "ml.run.id"
	// RunInferred is true where RunID was computed and nobody sent it.
	RunInferred = "ml.run.inferred"
	// RunSplit is true on a resource that names no run itself, and got RunID because
	// all its spans, points or records belong to that run.
	RunSplit = "ml.run.split"
	// Route is the run that all spans, points or records of a resource belong to,
	// or else its service or host. What has one route is sent to one gateway.
	Route = "ml.route"
	// RouteMetadata is the key of the client metadata that has the route of a request.
	RouteMetadata = "ml-route"
	// RunAttempt is the restart count of the run's launcher.
	RunAttempt = "ml.run.attempt"
	// JobID is the scheduler's job id. Sentinels such as 0 are dropped.
	JobID = "ml.job.id"
	// JobName is the scheduler's job name.
	JobName = "ml.job.name"
	// User is a keyed hash of the user's name, absent without a key.
	User = "ml.user"
	// Cluster names the cluster that the job ran on.
	Cluster = "ml.cluster"
	// RankLocal is the process's rank on its host.
	RankLocal = "ml.rank.local"
	// RankGlobal is the process's rank in its job.
	RankGlobal = "ml.rank.global"
	// WorldSize is the number of ranks of the job.
	WorldSize = "ml.world_size"
	// SessionID groups the work of one client session.
	SessionID = "ml.session.id"
	// RequestID identifies one request through all services that handle it.
	RequestID = "ml.request.id"
	// TrainingRunID is a fine-tuning service's id of a run.
	TrainingRunID = "ml.training_run.id"
	// SamplingSessionID is a fine-tuning service's id of a sampling session.
	SamplingSessionID = "ml.sampling_session.id"
	// CorrelationSource says of each inherited key where it came from, such
	// as "session=trace,request=parent".
	CorrelationSource = "ml.correlation.source"
	// CorrelationConflict names a key for which two sources have different
	// values.
	CorrelationConflict = "ml.correlation.conflict"
	// GPUIndex is a client's GPU index. It is unstable and never a key.
	GPUIndex = "ml.gpu.index"
	// GPUUUID is the UUID of the one GPU that a process uses, as HardwareID has it
	// or without the "GPU-" at its beginning.
	GPUUUID = "ml.gpu.uuid"
	// GPUJoin names the rule that joined a GPU's workload to a run.
	GPUJoin = "ml.gpu.join"
	// GPUShared is true on the workloads of a GPU that several runs use.
	GPUShared = "ml.gpu.shared"
	// LabelConflict is true on metric points with attributes that Prometheus
	// would merge into one label, reserves or cannot name.
	LabelConflict = "ml.label.conflict"
)

// Names that say what a span did.
const (
	// Phase is the part of a training step: see the Phase values.
	Phase = "ml.phase"
	// Operation is a span's operation with its numbers removed.
	Operation = "ml.operation"
	// Role is the role in which an agent acted.
	Role = "ml.role"
	// Library is the Python library of a call.
	Library = "ml.library"
	// Function is the Python function of a call.
	Function = "ml.function"
	// Epoch is the epoch's number as the client counts it.
	Epoch = "ml.epoch"
	// EpochTotal is the number of epochs planned.
	EpochTotal = "ml.epoch.total"
	// EpochEnd is true where a data loader ended its epoch by StopIteration.
	EpochEnd = "ml.epoch_end"
	// Step is the optimizer step's number as the client counts it.
	Step = "ml.step"
	// BatchIndex is the batch's number within its epoch.
	BatchIndex = "ml.batch.index"
	// BatchSize is the number of samples of a batch.
	BatchSize = "ml.batch.size"
	// MicrobatchCount is the number of parts that a batch was split into.
	MicrobatchCount = "ml.microbatch.count"
	// LearningRate is the optimizer's learning rate.
	LearningRate = "ml.learning_rate"
	// Loss is the training loss of a batch, step or epoch.
	Loss = "ml.loss"
	// LossScope says what Loss was computed over: batch or epoch.
	LossScope = "ml.loss.scope"
	// LossTaskPrefix begins the keys of the loss of one task of several.
	LossTaskPrefix = "ml.loss.task."
	// ValPrefix begins the keys of validation metrics.
	ValPrefix = "ml.val."
	// ValLoss is the validation loss.
	ValLoss = "ml.val.loss"
	// ValMetric is a client's one unnamed validation metric.
	ValMetric = "ml.val.metric"
)

// Names of what sampling decides.
const (
	// SampleCount is how many steps, calls or spans like its own a kept span stands
	// for: sums over stored spans, each times its SampleCount, estimate the sums over
	// all spans. A span without it stands for itself. It is 0 on spans that others
	// stand for already.
	SampleCount = "ml.sample.count"
	// SampleKeep is true on a span whose step or call must be kept.
	SampleKeep = "ml.sample.keep"
)

// Names of derived numbers and of what a derived number rests on.
const (
	// TokensPerSecond is a derived or reported token rate.
	TokensPerSecond = "ml.tokens_per_second" //nolint:gosec // a name, no credential
	// DecodePerSecond is the rate of the output tokens after the first.
	// ThroughputBasis does not apply to it.
	DecodePerSecond = "ml.tokens_per_second.decode"
	// PrefillPerSecond is the rate of the input tokens that were not read from
	// a cache.
	PrefillPerSecond = "ml.tokens_per_second.prefill"
	// SequencePerSecond is TokensPerSecond divided by the number of answers.
	SequencePerSecond = "ml.tokens_per_second.per_sequence"
	// SamplesPerSecond is a derived sample rate.
	SamplesPerSecond = "ml.samples_per_second"
	// ThroughputBasis says how a rate was derived: see the Basis values.
	ThroughputBasis = "ml.throughput.basis"
	// SamplesBasis is the basis of SamplesPerSecond. It is present only where
	// it differs from ThroughputBasis, which is then the basis of
	// TokensPerSecond.
	SamplesBasis = "ml.samples_per_second.basis"
	// ThroughputScope says what a reported rate covers: see the Scope values.
	// It is absent where the client does not say.
	ThroughputScope = "ml.throughput.scope"
	// ThroughputMetric is the client's metric that a rate was derived from.
	ThroughputMetric = "ml.throughput.metric"
	// TokensEstimated is true where the client estimated its token counts.
	TokensEstimated = "ml.tokens.estimated" //nolint:gosec // a name, no credential
	// UsageInputTokens counts the input tokens of a request, including those
	// read from a cache and written to one. It is present only where the
	// producer leaves them out of GenAIInputTokens.
	UsageInputTokens = "ml.usage.input_tokens" //nolint:gosec // a name, no credential
	// UsageOutputTokens counts the output tokens of a request, including those of
	// reasoning. It is present only where the producer leaves them out of
	// GenAIOutputTokens, as its total shows.
	UsageOutputTokens = "ml.usage.output_tokens" //nolint:gosec // a name, no credential
	// UsageCost is what a request cost, in US dollars, where the producer reports
	// it.
	UsageCost = "ml.usage.cost"
	// UsageInputCost is the part of UsageCost for input tokens.
	UsageInputCost = "ml.usage.input_cost"
	// UsageOutputCost is the part of UsageCost for output tokens.
	UsageOutputCost = "ml.usage.output_cost"
	// UsageCurrency is the currency of the reported costs, where the producer
	// names one. Costs in other currencies than USD are not read.
	UsageCurrency = "ml.usage.currency"
	// UsageCounted is false on spans whose usage another span reports, too: a
	// descendant, or one that UsageEvidence tells of.
	UsageCounted = "ml.usage.counted"
	// UsageEvidence says why a span repeats the request of a span that is no
	// descendant: see the Evidence values.
	UsageEvidence = "ml.usage.evidence"
	// RequestCounted is false on a span that states an operation of a model and is
	// no request of its own. The tokens that it reports count. It is true on a failed
	// request whose span names a model and states no operation.
	RequestCounted = "ml.request.counted"
	// ErrorCounted is false on a failed span whose failure another span counts: one
	// below a request that failed, with spans between them that did not, or one
	// that repeats a failed request.
	ErrorCounted = "ml.error.counted"
	// Side says which side counted the tokens that several services report: see
	// the Side values.
	Side = "ml.side"
)

// Names on the resource of a training process. Its launcher or ml_enrich's
// configuration sets them, because the telemetry does not say it.
const (
	// TokensPerStep is the number of tokens that one rank trains on in one
	// optimizer step.
	TokensPerStep = "ml.tokens_per_step" //nolint:gosec // a name, no credential
	// JobTokensPerStep is the number of tokens that all ranks together train on in
	// one optimizer step.
	JobTokensPerStep = "ml.job.tokens_per_step" //nolint:gosec // a name, no credential
	// JobTokensBasis says what JobTokensPerStep rests on: see the Basis values.
	JobTokensBasis = "ml.job.tokens_per_step.basis" //nolint:gosec // a name, no credential
	// SamplesPerStep is the number of samples that one rank trains on in one
	// optimizer step.
	SamplesPerStep = "ml.samples_per_step"
	// FLOPsPerToken is the number of floating-point operations, forward and
	// backward, that training on one token takes.
	FLOPsPerToken = "ml.flops_per_token" //nolint:gosec // a name, no credential
)

// Values of Phase.
const (
	PhaseTrain     = "train"
	PhaseForward   = "forward"
	PhaseBackward  = "backward"
	PhaseOptimizer = "optimizer"
	// PhaseForwardBackward is both, where a client times them together.
	PhaseForwardBackward = "forward_backward"
	PhaseDataLoad        = "data_load"
	PhaseValidation      = "validation"
	PhaseEpoch           = "epoch"
	PhaseBatch           = "batch"
	PhaseCheckpoint      = "checkpoint"
	PhaseSample          = "sample"
)

// InheritedPhase is the part of CorrelationSource which says that a span has
// the Phase of its parent.
const InheritedPhase = "phase=parent"

// Values of GenAIOperationName.
const (
	OperationChat            = "chat"
	OperationTextCompletion  = "text_completion"
	OperationGenerateContent = "generate_content"
	OperationEmbeddings      = "embeddings"
	OperationRetrieval       = "retrieval"
	OperationExecuteTool     = "execute_tool"
	OperationInvokeAgent     = "invoke_agent"
	OperationInvokeWorkflow  = "invoke_workflow"
)

// Values of LossScope.
const (
	LossScopeBatch = "batch"
	LossScopeEpoch = "epoch"
)

// Durations in seconds as the producer measured them. They are the denominators
// of rates and are never written.
const (
	// Latency is a span's own duration.
	Latency = "ml.latency"
	// PrefillTime is the time in which the model read the input.
	PrefillTime = "ml.latency.prefill"
	// DecodeTime is the time in which the model generated the tokens after the
	// first.
	DecodeTime = "ml.latency.decode"
)

// QueueTime is the time in seconds that a request waited before work on it
// began, as its producer measured it.
const QueueTime = "ml.queue.time"

// Other attributes that are read and never written.
const (
	// FirstTokenAt is the time of the first token, in nanoseconds since 1970.
	FirstTokenAt = "ml.first_token.time" //nolint:gosec // a name, no credential
	// TotalTokens counts input and output tokens together. It is never split.
	TotalTokens = "ml.tokens.total" //nolint:gosec // a name, no credential
	// JobBatchSize is the number of samples of one optimizer step of all ranks
	// together.
	JobBatchSize = "ml.job.batch_size"
	// SequenceLength is the number of tokens of each of these samples.
	SequenceLength = "ml.sequence_length"
	// KubernetesJob is the UID of a Kubernetes job. It identifies the run where
	// no other id does. The resource has it under its own name.
	KubernetesJob = "ml.kubernetes.job"
)

// Values of ThroughputBasis.
const (
	// BasisReported marks a rate that the producer sent.
	BasisReported = "reported"
	// BasisSpan marks tokens or samples divided by a span's duration.
	BasisSpan = "span"
	// BasisDecode and BasisPrefill mark spans whose only rate is that of this
	// part.
	BasisDecode  = "decode"
	BasisPrefill = "prefill"
	// BasisCounter marks the increase of a counter of tokens, divided by the
	// time between two points.
	BasisCounter = "counter"
	// BasisHistogram marks the increase of a histogram's sum, divided by the
	// time between two points.
	BasisHistogram = "histogram"
	// BasisSteps marks the tokens of a step of all ranks, divided by the time of
	// recent steps.
	BasisSteps = "steps"
	// BasisBatch marks tokens of a step that are the batch size multiplied by the
	// length of a sequence. While a batch grows, or where sequences are padded, it
	// is too high.
	BasisBatch = "batch_size"
	// BasisMean marks the mean of the rates that were added to a histogram.
	// Means of several series must not be added.
	BasisMean = "mean"
)

// Values of ThroughputScope.
const (
	// ScopeDevice marks the rate of one GPU.
	ScopeDevice = "device"
	// ScopeGlobal marks the rate of all GPUs together.
	ScopeGlobal = "global"
)

// Values of UsageEvidence.
const (
	// EvidenceResponseID marks a span with the response id of an earlier span of
	// its service.
	EvidenceResponseID = "response_id"
	// EvidenceTimes marks a span of another instrumentation of the same process,
	// with the same model and usage, or both failed, whose time contains that of
	// the span that counts, or the reverse.
	EvidenceTimes = "times"
)

// Values of Side.
const (
	// SideClient marks the count of the service that asked.
	SideClient = "client"
	// SideServer marks the count of the service that answered.
	SideServer = "server"
	// SideGateway marks the count of a service that passes requests on to
	// servers, which count them again.
	SideGateway = "gateway"
)

// Values of GenAITokenType.
const (
	TokenTypeInput  = "input"
	TokenTypeOutput = "output"
)

// Values of Metric.Part and of the point attribute kind.
const (
	// PartAllocated is the memory that an allocator has given out.
	PartAllocated = "allocated"
	// PartReserved is the memory that an allocator holds, given out or not.
	PartReserved = "reserved"
)
