package series

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// ID names a series of the table; it is the index into All.
type ID uint8

// The series, in the order of the table.
const (
	Tokens ID = iota
	RequestTokenThroughput
	Requests
	Errors
	Steps
	Samples
	Batches
	Epoch
	Loss
	ValidationMetric
	LearningRate
	Nonfinite
	LastStepTimestamp
	StepDuration
	RunTime
	RunState
	RunAttempts
	FLOPsPerToken
	CallDuration
	CallQueueTime
	CallSerializeTime
	CallPythonTime
	CallsSlow
	PoolSize
	PoolBusy
	PoolIdle
	WorkerCrashes
	BreakerOpenings
	HealthAlerts
	MemoryAllocated
	GPUMemoryUsage
	GenAITokenUsage
	GenAIOperationDuration
	GenAIServerDuration
	GenAITimeToFirstToken
	GenAITimePerOutputToken

	// Count is the number of series.
	Count
)

// Kind is how the values of a series add up.
type Kind uint8

const (
	// Counter is a cumulative, monotonic sum of whole numbers.
	Counter Kind = iota
	// Gauge is the value of the span that ended last.
	Gauge
	// Histogram is a cumulative histogram with explicit buckets.
	Histogram
	// Total is a cumulative, monotonic sum of numbers with fractions.
	Total
	// State is the newest value, as a sum that is not monotonic: 1 or 0 of a
	// state, or how many of a thing there are.
	State
	// Balance is a cumulative sum of whole numbers that grows and shrinks, and
	// is never less than zero.
	Balance
)

// String returns the kind's word in the documentation.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case Total:
		return "counter"
	case Gauge:
		return "gauge"
	case State, Balance:
		return "up-down counter"
	default:
		return "histogram"
	}
}

// MaxLabels is the largest number of labels of a series, run labels apart.
const MaxLabels = 7

// Series describes one metric.
type Series struct {
	// Name is the metric's name in OpenTelemetry.
	Name string
	// Unit is its UCUM unit. It is empty for a gauge without one, because
	// Prometheus exporters make "_ratio" of "1".
	Unit string
	// Kind says how values add up.
	Kind Kind
	// Description is the metric's description: what it counts, and what not.
	Description string
	// Labels are the metric's own attributes, at most MaxLabels. One without
	// a value is left out of the point.
	Labels []string
	// Buckets are the upper, inclusive bounds of a histogram.
	Buckets []float64
	// WholeOnly, where it is not empty, is the one value of the first label whose
	// streams have Buckets. The others have a count and a sum alone, which are
	// enough for a mean.
	WholeOnly string
	// EveryRun is true where a run always is a label. Where it is false, a
	// run id that was computed for a single trace is not, but of steps: every
	// request of an LLM application would be a run of its own.
	EveryRun bool
	// NoRun is true where a run, its job and its rank are no labels, and the host
	// alone is: a distribution of requests or calls for each run and rank would be
	// most of all series.
	NoRun bool
	// OptIn is true where the series is written only if genai_metrics is true.
	OptIn bool
}

// RunLabels are the attributes that every series has in addition to its own,
// each where it is known. They are what keeps two ranks, two runs and two
// hosts apart in a back end that drops resource attributes.
var RunLabels = []string{mlattr.RunID, mlattr.JobID, mlattr.RankGlobal, mlattr.HostName}

// Bounds returns the bounds of a histogram's stream by its first label.
func (s *Series) Bounds(first string) []float64 {
	if s.WholeOnly != "" && first != s.WholeOnly {
		return nil
	}
	return s.Buckets
}

// Shown returns how many series Prometheus shows for a stream by its first label:
// of a histogram one for each bound, and the infinite bucket, the sum and the
// count. One with exponential buckets has these three in the text format.
func (s *Series) Shown(first string, exponential bool) int {
	switch {
	case s.Kind != Histogram:
		return 1
	case exponential:
		return 3
	default:
		return len(s.Bounds(first)) + 3
	}
}

// Overflow is the attribute, always true, of a stream that adds up what a
// limit kept from having a stream of its own.
const Overflow = mlattr.Overflow

// Labels that no span attribute has.
const (
	// Task is a task's name within a multi-task loss.
	Task = "ml.task"
	// Metric is a validation metric's name.
	Metric = "ml.metric"
	// Signal says which value was not finite.
	Signal = "ml.signal"
	// Timing says what was timed: host, the program's own thread, or device,
	// the work of the GPU. It is host unless the client's resource says
	// device.
	Timing = "ml.timing"
	// RunStateLabel is the state of a run, or of its time.
	RunStateLabel = "ml.run.state"
	// Device is where something ran or lies, such as cuda:0 or cpu.
	Device = "device"
	// Result says how a call ended: ok or error.
	Result = "result"
	// Pool is the name of a pool of workers.
	Pool = "pool"
	// Type is the class of a crash, of an alert or of memory.
	Type = "type"
	// MemoryKind says which of a GPU's memory is meant: allocated, what tensors
	// use, or reserved, what the client's allocator holds for them.
	MemoryKind = "kind"
	// Instance tells the processes of a service apart where a value is one
	// process's own and no sum.
	Instance = "service.instance.id"
)

// Labels of the conventions.
const (
	// ServerAddress is where a model was asked.
	ServerAddress = "server.address"
	// ServerPort is the port there, a whole number.
	ServerPort = "server.port"
)

// Buckets of the GenAI conventions.
var (
	tokenBuckets    = powersOf(4, 1, 1<<26)
	durationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)

// Labels of calls and of what a process has.
var (
	callLabels   = []string{mlattr.Library, mlattr.Function, Device, Result}
	poolLabels   = []string{Pool, Instance}
	workerLabels = []string{Pool, Type, Device}
)

// WholeStep is the mlattr.Phase of the time of a whole step, all phases of it and
// what is in none.
const WholeStep = "step"

// callBuckets go from 244 µs, for what is done around a call, to 17 minutes.
var callBuckets = powersOf(4, 1.0/4096, 1024)

// stepBuckets go from 8 ms to 2 minutes.
var stepBuckets = powersOfTwo(1.0/128, 128)

// All is the table, indexed by ID.
var All = [Count]Series{
	Tokens: {
		Name: "ml.tokens", Unit: "{token}", Kind: Counter,
		Description: "Tokens of language models, as spans report them. Spans whose usage a descendant reports as well (ml.usage.counted is false) are left out. Where a resource says how many tokens a step of a rank has (ml.tokens_per_step), these too, with the operation train_step and always with the run.",
		Labels:      []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side},
	},
	RequestTokenThroughput: {
		Name: "ml.request.token.throughput", Unit: "{token}/s", Kind: Histogram,
		Description: "Tokens per second of single requests, by what the rate rests on.",
		Labels:      []string{mlattr.ThroughputBasis, mlattr.GenAIRequestModel},
		Buckets:     powersOfTwo(1, 16384), NoRun: true,
	},
	Requests: {
		Name: "ml.requests", Unit: "{request}", Kind: Counter,
		Description: "Requests to a model: spans that report token usage, and spans that sample, infer or chat and have none of these directly below them.",
		Labels:      []string{mlattr.Operation, mlattr.Role, mlattr.GenAIRequestModel, mlattr.ErrorType, mlattr.Side},
	},
	Errors: {
		Name: "ml.errors", Unit: "{error}", Kind: Counter,
		Description: "Failed operations, counted at the span where the failure arose and not at its ancestors. The end of a data loader (StopIteration) is none.",
		Labels:      []string{mlattr.Operation, mlattr.ErrorType},
	},
	Steps: {
		Name: "ml.steps", Unit: "{step}", Kind: Counter, EveryRun: true,
		Description: "Optimizer steps that succeeded. An optimizer's span below another one belongs to the same step. A batch that is a trace of its own is a step, since its client reports no optimizer.",
	},
	Samples: {
		Name: "ml.samples", Unit: "{sample}", Kind: Counter, EveryRun: true,
		Description: "Samples that went through a model: the batch sizes of spans that succeeded, without validation; once where several layers report the same batch. Where a resource says how many samples a step of a rank has (ml.samples_per_step), and spans do not, these.",
	},
	Batches: {
		Name: "ml.batches", Unit: "{batch}", Kind: Counter, EveryRun: true,
		Description: "Training batches that succeeded, of clients that have a span for a batch.",
	},
	Epoch: {
		Name: "ml.epoch", Kind: Gauge, EveryRun: true,
		Description: "The epoch's number, as the client counts it.",
	},
	Loss: {
		Name: "ml.loss", Kind: Gauge, EveryRun: true,
		Description: "The newest finite loss of a batch, an epoch or a validation. ml.task names the task where a loss is one of several.",
		Labels:      []string{mlattr.LossScope, Task},
	},
	ValidationMetric: {
		Name: "ml.validation.metric", Kind: Gauge, EveryRun: true,
		Description: "The newest finite value of a validation metric other than the loss.",
		Labels:      []string{Metric},
	},
	LearningRate: {
		Name: "ml.learning_rate", Kind: Gauge, EveryRun: true,
		Description: "The newest learning rate of the optimizer.",
	},
	Nonfinite: {
		Name: "ml.nonfinite", Unit: "{value}", Kind: Counter, EveryRun: true,
		Description: "Values that were NaN or infinite and are therefore in no gauge.",
		Labels:      []string{Signal},
	},
	LastStepTimestamp: {
		Name: "ml.run.last_step.timestamp", Unit: "s", Kind: Gauge, EveryRun: true,
		Description: "When the newest step ended, in seconds since 1970.",
	},
	StepDuration: {
		Name: "ml.step.duration", Unit: "s", Kind: Histogram, EveryRun: true,
		Description: "Time of the steps: step is the whole one, from the end of the step before; beside it the union of the spans of each phase, and other for the rest. Spans of phases may lie in one another, so that a sum over phases can be longer than the step.",
		Labels:      []string{mlattr.Phase, Timing},
		Buckets:     stepBuckets, WholeOnly: WholeStep,
	},
	RunTime: {
		Name: "ml.run.time", Unit: "s", Kind: Total, EveryRun: true,
		Description: "Time of the run by what it was used for, of each rank: productive, rework (steps that an earlier attempt had done), checkpoint, checkpoint_restore, validation, data_load, queue (work that was asked for and waits); without a span startup before the first productive moment, and idle or other after it; unknown where no span came for too long, and between two attempts.",
		Labels:      []string{RunStateLabel},
	},
	RunState: {
		Name: "ml.run.state", Unit: "1", Kind: State, EveryRun: true,
		Description: "1 for the state that the run is in, 0 for each other state: running, stalled after no span of training for five usual steps and at least 5 minutes, or where its processes hold GPUs and its first step is overdue (first_step_timeout), ended when its client says so, unknown before its first step.",
		Labels:      []string{RunStateLabel},
	},
	RunAttempts: {
		Name: "ml.run.attempts", Unit: "{attempt}", Kind: Counter, EveryRun: true,
		Description: "Attempts of the run that were seen, of each rank: one at its first span, and one more for each restart that its launcher counts (ml.run.attempt), for another life of its process, or for work after its end.",
	},
	FLOPsPerToken: {
		Name: "ml.flops_per_token", Kind: Gauge, EveryRun: true,
		Description: "How many floating-point operations the run's model takes for a token that it is trained on, forward and backward, as its resource says.",
	},
	CallDuration: {
		Name: "ml.call.duration", Unit: "s", Kind: Histogram,
		Description: "Time of calls, with the wait for a worker where the client's span includes it. A call that several spans record counts once.",
		Labels:      callLabels, Buckets: callBuckets, NoRun: true,
	},
	CallQueueTime: {
		Name: "ml.call.queue.time", Unit: "s", Kind: Histogram,
		Description: "Time that calls waited for a worker, as their client measured it. A negative one, of clocks that disagree, is 0.",
		Labels:      callLabels, Buckets: callBuckets, NoRun: true,
	},
	CallSerializeTime: {
		Name: "ml.call.serialize.time", Unit: "s", Kind: Histogram,
		Description: "Time that calls needed to encode their arguments.",
		Labels:      callLabels, Buckets: callBuckets, NoRun: true,
	},
	CallPythonTime: {
		Name: "ml.call.python.time", Unit: "s", Kind: Histogram,
		Description: "Time that calls spent in the Python function. Where the caller and the worker both measure it, each has a series under its own service.",
		Labels:      callLabels, Buckets: callBuckets, NoRun: true,
	},
	CallsSlow: {
		Name: "ml.calls.slow", Unit: "{call}", Kind: Counter,
		Description: "Calls that took longer than slow_threshold.",
		Labels:      callLabels, NoRun: true,
	},
	PoolSize: {
		Name: "ml.pool.size", Unit: "{worker}", Kind: State,
		Description: "Workers of a pool, as it last said.",
		Labels:      poolLabels,
	},
	PoolBusy: {
		Name: "ml.pool.busy", Unit: "{worker}", Kind: State,
		Description: "Workers of a pool that have a call, as it last said.",
		Labels:      poolLabels,
	},
	PoolIdle: {
		Name: "ml.pool.idle", Unit: "{worker}", Kind: State,
		Description: "Workers of a pool that wait for a call, as it last said.",
		Labels:      poolLabels,
	},
	WorkerCrashes: {
		Name: "ml.worker.crashes", Unit: "{crash}", Kind: Counter,
		Description: "Workers that died.",
		Labels:      workerLabels,
	},
	BreakerOpenings: {
		Name: "ml.breaker.openings", Unit: "{opening}", Kind: Counter,
		Description: "How often a circuit breaker opened, so that calls were refused.",
		Labels:      workerLabels,
	},
	HealthAlerts: {
		Name: "ml.health.alerts", Unit: "{alert}", Kind: Counter,
		Description: "Alerts of a client's own health monitor.",
		Labels:      workerLabels,
	},
	MemoryAllocated: {
		Name: "ml.memory.allocated", Unit: "By", Kind: Balance,
		Description: "Memory that was allocated and not released since, as far as both were told. What a worker held when it died is not released.",
		Labels:      []string{Type, Device, Instance},
	},
	GPUMemoryUsage: {
		Name: "ml.gpu.memory.usage", Unit: "By", Kind: State,
		Description: "Memory of a GPU that a client's tensors use (allocated) and that its allocator holds for them (reserved), as it last said.",
		Labels:      []string{MemoryKind, Device, Instance},
	},
	GenAITokenUsage: {
		Name: "gen_ai.client.token.usage", Unit: "{token}", Kind: Histogram, OptIn: true, NoRun: true,
		Description: "Tokens of each request to a model, as its client counted them, by the GenAI semantic conventions.",
		Labels:      genAILabels(mlattr.GenAITokenType), Buckets: tokenBuckets,
	},
	GenAIOperationDuration: {
		Name: "gen_ai.client.operation.duration", Unit: "s", Kind: Histogram, OptIn: true, NoRun: true,
		Description: "Time of each request to a model, as its client saw it, by the GenAI semantic conventions.",
		Labels:      genAILabels(mlattr.ErrorType), Buckets: durationBuckets,
	},
	GenAIServerDuration: {
		Name: "gen_ai.server.request.duration", Unit: "s", Kind: Histogram, OptIn: true, NoRun: true,
		Description: "Time of each request to a model, as its server saw it, by the GenAI semantic conventions.",
		Labels:      genAILabels(mlattr.ErrorType), Buckets: durationBuckets,
	},
	GenAITimeToFirstToken: {
		Name: "gen_ai.server.time_to_first_token", Unit: "s", Kind: Histogram, OptIn: true, NoRun: true,
		Description: "Time from each successful request to its first token, as its server saw it, by the GenAI semantic conventions.",
		Labels:      genAILabels(),
		Buckets:     []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
	},
	GenAITimePerOutputToken: {
		Name: "gen_ai.server.time_per_output_token", Unit: "s", Kind: Histogram, OptIn: true, NoRun: true,
		Description: "Time for each token after the first of each successful request, as its server saw it, by the GenAI semantic conventions.",
		Labels:      genAILabels(),
		Buckets:     []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5},
	},
}

// genAILabels returns what the conventions have on all of their metrics, and a
// label more.
func genAILabels(more ...string) []string {
	return append([]string{
		mlattr.GenAIOperationName, mlattr.GenAIProviderName, mlattr.GenAIRequestModel,
		ServerPort, mlattr.GenAIResponseModel, ServerAddress,
	}, more...)
}

// powersOfTwo returns first, 2*first … last.
func powersOfTwo(first, last float64) []float64 { return powersOf(2, first, last) }

// powersOf returns first, factor*first … last.
func powersOf(factor, first, last float64) []float64 {
	var bounds []float64
	for b := first; b <= last; b *= factor {
		bounds = append(bounds, b)
	}
	return bounds
}
