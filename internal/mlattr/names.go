// Package mlattr has the names that components of otelcol-ml share: canonical
// attributes, kinds of problems and of changes. It reads single values that arrive as
// text, integers or doubles. It depends on pdata and a reader of YAML only, so that every
// component can use it.
//
// Package table describes what a client sends, package clients has a table for each, and
// package vocabulary reads spans, points and resources by them.
package mlattr

//go:generate go test ./vocabularypage -run Generated -update

// Names that the semantic conventions, version 1.41.1, define. They are
// repeated here because a canonical name must not change when a library is
// updated. Those that clients send, too, are in vocabulary/canonical.yaml, from which
// generated_names.go is made.
const (
	// ExceptionEvent is the name of the event of an exception, ExceptionType its class.
	ExceptionEvent = "exception"
	ExceptionType  = "exception.type"
	// ExceptionMessage is what an exception says.
	ExceptionMessage = "exception.message"
	// ErrorMessage is the text of an error.
	ErrorMessage = "error.message"

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
	// RunSplit is true on a resource that names no run itself, and got RunID because
	// all its spans, points or records belong to that run.
	RunSplit = "ml.run.split"
	// Route is the run that all spans, points or records of a resource belong to,
	// or else its service or host. What has one route is sent to one gateway.
	Route = "ml.route"
	// RouteMetadata is the key of the client metadata that has the route of a request.
	RouteMetadata = "ml-route"
)

// Beginnings of canonical names.
const (
	// LossTaskPrefix begins the keys of the loss of one task of several.
	LossTaskPrefix = "ml.loss.task."
	// ValPrefix begins the keys of validation metrics.
	ValPrefix = "ml.val."
)

// SampleCount is how many steps, calls or spans like its own a kept span stands
// for: sums over stored spans, each times its SampleCount, estimate the sums over
// all spans. A span without it stands for itself. It is 0 on spans that others
// stand for already.
const SampleCount = "ml.sample.count"

// ThroughputMetric is the client's metric that a rate was derived from.
const ThroughputMetric = "ml.throughput.metric"

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
	OperationExecuteTool     = "execute_tool"
	OperationInvokeAgent     = "invoke_agent"
	OperationInvokeWorkflow  = "invoke_workflow"
)

// Values of LossScope.
const (
	LossScopeBatch = "batch"
	LossScopeEpoch = "epoch"
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
