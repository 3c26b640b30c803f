// Package series is the table of the series that the ml_metrics connector writes:
// name, unit, kind, buckets, labels and description of each. The connector builds
// its metrics from the table, and the test of seriespage the page that documents them.
package series

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// ID identifies a series of the table. It is the index into All.
type ID uint8

// The series, in the order of the table.
const (
	Tokens ID = iota
	RequestTokenThroughput
	Cost
	UserCost
	RequestsUnpriced
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
	RunStepTime
	RunTokenThroughput
	RunTime
	RunTimeRatio
	RunGoodput
	RunBound
	RunState
	RunStateTimestamp
	RunLastData
	RunAttempts
	RunGPUs
	RunGPUUtilization
	RunGPUPrice
	FLOPsPerToken
	CallDuration
	CallQueueTime
	CallSerializeTime
	CallPythonTime
	CallsSlow
	CallTime
	PoolSize
	PoolBusy
	PoolIdle
	WorkerCrashes
	BreakerOpenings
	HealthAlerts
	MemoryAllocated
	GPUMemoryUsage
	GPUIdleTime
	GPUPrice
	HostLastData
	CollectorNotice
	RequestErrorRatio
	ProblemOnset
	GenAITokenUsage
	GenAIOperationDuration
	GenAIServerDuration
	GenAITimeToFirstToken
	GenAITimePerOutputToken
	SpanCalls
	SpanDuration

	// Count is the number of series.
	Count
)

// Kind is how a series aggregates values.
type Kind uint8

const (
	// Counter is a cumulative, monotonic sum of whole numbers.
	Counter Kind = iota
	// Gauge holds the newest value, that of the span that ended last.
	Gauge
	// Histogram is a cumulative histogram with explicit buckets.
	Histogram
	// Total is a cumulative, monotonic sum of fractional numbers.
	Total
	// State is the newest value, as a non-monotonic sum: 1 or 0 for a state, or
	// a number of things.
	State
	// Balance is a cumulative sum of whole numbers that can decrease, but never
	// below zero.
	Balance
)

// String returns the name of the kind in the documentation.
func (k Kind) String() string {
	return [...]string{Counter: "counter", Gauge: "gauge", Histogram: "histogram", Total: "counter", State: "up-down counter", Balance: "up-down counter"}[k]
}

// MaxLabels is the largest number of labels of a series, not counting RunLabels.
const MaxLabels = 7

// Series describes one metric.
type Series struct {
	// Name is the metric's name in OpenTelemetry.
	Name string
	// Unit is its UCUM unit. It is empty for a gauge without a unit that is no
	// ratio, because Prometheus exporters append "_ratio" for "1".
	Unit string
	// Kind is how values are aggregated.
	Kind Kind
	// Description is the metric's description: what it includes and excludes.
	Description string
	// Labels are the metric's own attributes, at most MaxLabels. A point omits
	// those without a value.
	Labels []string
	// Buckets are the inclusive upper bounds of a histogram.
	Buckets []float64
	// WholeOnly, if not empty, is the only value of the first label whose streams
	// have Buckets. Other streams have a count and a sum, which give a mean.
	WholeOnly string
	// EveryRun reports whether every run id is a label. If false, a run id that
	// was computed for a single trace is a label for steps only; otherwise every
	// request of an LLM application would be a run of its own.
	EveryRun bool
	// NoRun reports whether the series has no labels for run, job and rank, only
	// for the host. Distributions of requests or calls for each run and rank would
	// be most of all series.
	NoRun bool
	// Momentary reports whether the values are computed for each emission. A
	// stream without a value ends with that emission. Of the labels of a run it
	// has only the id, and with NoRun only those that its description names.
	Momentary bool
	// Next are the names under which clients send the same after version 1.41 of the
	// conventions.
	Next []string
	// Calls, if not 0, is the counter of a histogram's observations, which is written
	// with each of its streams.
	Calls ID
	// OptIn has the configuration with which alone the series is written. It is
	// empty for a series that is always written.
	OptIn string
}

// RunLabels are the attributes that every series has in addition to its own,
// each where it is known. They distinguish ranks, runs and hosts in a back end
// that drops resource attributes.
var RunLabels = []string{mlattr.RunID, mlattr.JobID, mlattr.RankGlobal, mlattr.HostName}

// Bounds returns the bucket bounds of a histogram's stream with that first label.
func (s *Series) Bounds(first string) []float64 {
	if s.WholeOnly != "" && first != s.WholeOnly {
		return nil
	}
	return s.Buckets
}

// Shown returns how many series Prometheus shows for a stream with that first
// label: for a histogram one for each bound, the infinite bucket, the sum, the
// count, and Calls.
func (s *Series) Shown(first string) int {
	switch {
	case s.Kind != Histogram:
		return 1
	case s.Calls != 0:
		return len(s.Bounds(first)) + 4
	default:
		return len(s.Bounds(first)) + 3
	}
}

// Overflow is the attribute, always true, of a stream that adds up the updates
// beyond a limit.
const Overflow = mlattr.Overflow

// Labels without a span attribute.
const (
	// Task is a task's name within a multi-task loss.
	Task = "ml.task"
	// Metric is a validation metric's name.
	Metric = "ml.metric"
	// Signal is the value that was not finite.
	Signal = "ml.signal"
	// Timing is what was timed: host, the program's own thread, or device, the
	// work of the GPU. It is host unless the client's resource says device.
	Timing = "ml.timing"
	// RunStateLabel is the state of a run, or of its time.
	RunStateLabel = "ml.run.state"
	// BoundLabel is what limits the speed of a run.
	BoundLabel = "ml.run.bound"
	// CallBound is what the time of a call or request was spent on.
	CallBound = "ml.call.bound"
	// Window is WindowRecent or WindowUsual: what happens now, or before that.
	Window = "ml.window"
	// Notice is the kind of a notice that says what the collector loses.
	Notice = "ml.notice"
	// Device is where something runs or is stored, such as cuda:0 or cpu.
	Device = "device"
	// CostSource says who knows a cost: CostStated or CostComputed.
	CostSource = "ml.cost.source"
	// PriceDate is the day of the file of prices that a cost was computed by.
	PriceDate = "ml.cost.price_date"
	// Result is how a call ended: ok or error.
	Result = "result"
	// Pool is the name of a pool of workers.
	Pool = "pool"
	// Type is the class of a crash, of an alert or of memory.
	Type = "type"
	// MemoryKind is the kind of a GPU's memory: allocated is used by tensors,
	// reserved is held by the client's allocator.
	MemoryKind = "kind"
	// Instance distinguishes the processes of a service where a value belongs to
	// one process.
	Instance = "service.instance.id"
)

// Values of CostSource, and the value of gen_ai.token.type for costs of neither
// input nor output.
const (
	CostStated   = "stated"
	CostComputed = "computed"
	CostOther    = "other"
)

// Labels of the conventions.
const (
	// ServerAddress is the address of a model's server.
	ServerAddress = "server.address"
	// ServerPort is the port of that server, a whole number.
	ServerPort = "server.port"
	// SpanKind is the kind of a span, as in SPAN_KIND_SERVER.
	SpanKind = "span.kind"
	// StatusCode is the status of a span, as in STATUS_CODE_ERROR.
	StatusCode = "status.code"
)

// Buckets of the GenAI conventions.
var (
	tokenBuckets    = powersOf(4, 1, 1<<26)
	durationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)

// Labels of calls, pools and workers.
var (
	callLabels   = []string{mlattr.Library, mlattr.Function, Device, Result}
	poolLabels   = []string{Pool, Instance}
	workerLabels = []string{Pool, Type, Device}
)

// WholeStep is the mlattr.Phase of the duration of a whole step.
const WholeStep = "step"

// callBuckets go from 244 µs, for encoding and waiting, to 17 minutes.
var callBuckets = powersOf(4, 1.0/4096, 1024)

// stepBuckets go from 8 ms to 2 minutes.
var stepBuckets = powersOf(2, 1.0/128, 128)

// All is the table, indexed by ID.
var All = [Count]Series{
	Tokens: {Name: "ml.tokens", Unit: "{token}", Kind: Counter, Labels: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side},
		Description: "Tokens of language models, as spans report them. Spans whose usage a descendant also reports (ml.usage.counted is false) are excluded. If a resource states the tokens per step of a rank (ml.tokens_per_step), they are added with the operation train_step and the run."},
	RequestTokenThroughput: {Name: "ml.request.token.throughput", Unit: "{token}/s", Kind: Histogram, Labels: []string{mlattr.ThroughputBasis, mlattr.GenAIRequestModel},
		Description: "Tokens per second of each request, by the basis of the rate.",
		Buckets:     powersOf(2, 1, 16384), NoRun: true},
	Cost: {Name: "ml.cost", Unit: "USD", Kind: Total, Labels: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, CostSource, mlattr.Role, mlattr.Side, PriceDate},
		Description: "What requests to models cost, each once, as ml.tokens counts tokens. ml.cost.source is stated if the client states the cost, and computed if it is that of the tokens by the file of prices (prices::file), whose day is ml.cost.price_date. gen_ai.token.type is input, output, or other: fees, and what a client states without saying for which tokens. Requests whose price is not known have no cost, and neither has the server's side of a request."},
	UserCost: {Name: "ml.user.cost", Unit: "USD", Kind: Total, NoRun: true, Labels: []string{mlattr.User, CostSource},
		Description: "What the requests of each user cost (ml.cost), if their spans or resources have ml.user."},
	RequestsUnpriced: {Name: "ml.requests.unpriced", Unit: "{request}", Kind: Counter, NoRun: true, Labels: []string{mlattr.GenAIRequestModel, mlattr.GenAIProviderName},
		Description: "Requests with tokens and without a cost: the client states none, and the file of prices has no price for the model. The series needs prices::file."},
	Requests: {Name: "ml.requests", Unit: "{request}", Kind: Counter, Labels: []string{mlattr.Operation, mlattr.Role, mlattr.GenAIRequestModel, mlattr.ErrorType, mlattr.Side},
		Description: "Requests to a model: spans that report token usage, and spans that sample, infer or chat and have no such span directly below them."},
	Errors: {Name: "ml.errors", Unit: "{error}", Kind: Counter, Labels: []string{mlattr.Operation, mlattr.ErrorType},
		Description: "Failed operations, counted at the span where the error occurred and not at its ancestors. The end of a data loader (StopIteration) is no error."},
	Steps: {Name: "ml.steps", Unit: "{step}", Kind: Counter, EveryRun: true,
		Description: "Optimizer steps that succeeded. An optimizer's span below another one belongs to the same step. A batch that is a trace of its own is a step, because its client reports no optimizer."},
	Samples: {Name: "ml.samples", Unit: "{sample}", Kind: Counter, EveryRun: true,
		Description: "Samples processed by a model: the batch sizes of spans that succeeded, without validation, once if several layers report the same batch. If spans report none, the samples per step that the resource states (ml.samples_per_step)."},
	Batches: {Name: "ml.batches", Unit: "{batch}", Kind: Counter, EveryRun: true,
		Description: "Training batches that succeeded, of clients that record a span for each batch."},
	Epoch: {Name: "ml.epoch", Kind: Gauge, EveryRun: true,
		Description: "The current epoch, as the client counts it."},
	Loss: {Name: "ml.loss", Kind: Gauge, EveryRun: true, Labels: []string{mlattr.LossScope, Task},
		Description: "The latest finite loss of a batch, an epoch or a validation. ml.task is the task, if a loss is one of several."},
	ValidationMetric: {Name: "ml.validation.metric", Kind: Gauge, EveryRun: true, Labels: []string{Metric},
		Description: "The latest finite value of a validation metric other than the loss."},
	LearningRate: {Name: "ml.learning_rate", Kind: Gauge, EveryRun: true,
		Description: "The latest learning rate of the optimizer."},
	Nonfinite: {Name: "ml.nonfinite", Unit: "{value}", Kind: Counter, EveryRun: true, Labels: []string{Signal},
		Description: "Values that were NaN or infinite, and so were not written to a gauge."},
	LastStepTimestamp: {Name: "ml.run.last_step.timestamp", Unit: "s", Kind: Gauge, EveryRun: true,
		Description: "When the latest step ended, in seconds since 1970."},
	StepDuration: {Name: "ml.step.duration", Unit: "s", Kind: Histogram, EveryRun: true, Labels: []string{mlattr.Phase, Timing},
		Description: "Duration of steps, by phase. step is the whole step, from the end of the previous one; each phase is the union of its spans; other is the rest. Phases may overlap, so their sum can exceed the step.",
		Buckets:     stepBuckets, WholeOnly: WholeStep},
	RunStepTime: {Name: "ml.run.step.time", Unit: "s", Kind: Gauge, EveryRun: true, Momentary: true, Labels: []string{Window},
		Description: "Typical duration of a step of the run. recent: the median of the last 20 steps. usual: the median of the up to 500 steps before these, at least 50; while steps take clearly longer, what it was before. Of several ranks it is the median. Left out are checkpoints and validations, the first 10 steps after a restart, and the time without a span of a program that works on demand."},
	RunTokenThroughput: {Name: "ml.run.token.throughput", Unit: "{token}/s", Kind: Gauge, Labels: []string{mlattr.ThroughputBasis}, EveryRun: true, Momentary: true,
		Description: "Tokens per second of a whole run, by the basis of the rate: steps is the tokens of a step of all ranks (ml.job.tokens_per_step of its resources), divided by the recent ml.run.step.time."},
	RunTime: {Name: "ml.run.time", Unit: "s", Kind: Total, EveryRun: true, Labels: []string{RunStateLabel},
		Description: "Time of each rank of the run by use: productive, rework (steps that an earlier attempt already did), checkpoint, checkpoint_restore, validation, data_load, queue (requested work that waits). Time without a span is startup before the first productive moment, and idle or other after it. Time is unknown if no span arrived for too long, and between two attempts."},
	RunTimeRatio: {Name: "ml.run.time.ratio", Unit: "1", Kind: Gauge, EveryRun: true, Momentary: true, Labels: []string{RunStateLabel},
		Description: "Fractions of the run's time (ml.run.time) during the last 15 minutes, of all its ranks together. They add up to 1."},
	RunGoodput: {Name: "ml.run.goodput", Unit: "1", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "Productive fraction of the run's time during the last 15 minutes."},
	RunBound: {Name: "ml.run.bound", Unit: "1", Kind: State, EveryRun: true, Momentary: true, Labels: []string{BoundLabel},
		Description: "1 for what limits the speed of the run, 0 for the other values; the first that applies. checkpoint, input: saving and restoring, or loading data, takes more than 0.2 of its time. gpu: the utilization of its GPUs is above 0.7. launch: it is below 0.4 and more than 0.5 of the time is productive. Otherwise unknown."},
	RunState: {Name: "ml.run.state", Unit: "1", Kind: State, EveryRun: true, Momentary: true, Labels: []string{RunStateLabel},
		Description: "1 for the current state of the run, 0 for its other states: the first of these that one of its ranks is in. stalled: no training span for five typical steps and at least stall_timeout, or the first step of the attempt is overdue (first_step_timeout), while the run has held GPU memory for as long; a rank that is missing while the others take steps does not count. running. failed: its program has ended with an error. silent: as stalled, but the run holds no GPU memory, or has held it for a shorter time. unknown: before the first step. ended: the span of its whole training, or a root span around all its work, has ended, or its processes have released their GPUs."},
	RunStateTimestamp: {Name: "ml.run.state.timestamp", Unit: "s", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "Since when the run is in its state, in seconds since 1970. If it is stalled or silent, this is when its last training span arrived."},
	RunLastData: {Name: "ml.run.last_data.timestamp", Unit: "s", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "When a span or a metric of the run last arrived, in seconds since 1970 by the collector's clock. What ml_metrics computes, and readings of GPUs, do not count."},
	RunAttempts: {Name: "ml.run.attempts", Unit: "{attempt}", Kind: Counter, EveryRun: true,
		Description: "Observed attempts of the run, for each rank: 1 at its first span, plus 1 for each restart that its launcher counts (ml.run.attempt), each new process, and work after its end."},
	RunGPUs: {Name: "ml.run.gpus", Unit: "{gpu}", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "GPUs whose memory the run holds. A GPU that several workloads hold is divided equally."},
	RunGPUUtilization: {Name: "ml.run.gpu.utilization", Unit: "1", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "Mean utilization of the run's GPUs: the fraction of SMs that were busy if the GPU reports it, else the fraction of time."},
	RunGPUPrice: {Name: "ml.run.gpu.price", Unit: "USD/h", Kind: Gauge, EveryRun: true, Momentary: true,
		Description: "What the GPUs that the run holds (ml.run.gpus) cost an hour, by prices::gpu_hour. It is absent if the price of one of them is not known."},
	FLOPsPerToken: {Name: "ml.flops_per_token", Kind: Gauge, EveryRun: true,
		Description: "Floating-point operations per training token of the run's model, forward and backward, as its resource states."},
	CallDuration: {Name: "ml.call.duration", Unit: "s", Kind: Histogram, Labels: callLabels, Buckets: callBuckets, NoRun: true,
		Description: "Duration of calls, including the wait for a worker if the client's span includes it. A call that several spans record counts once."},
	CallQueueTime: {Name: "ml.call.queue.time", Unit: "s", Kind: Histogram, Labels: callLabels, Buckets: callBuckets, NoRun: true,
		Description: "Time that calls waited for a worker, as their client measured it. A negative time, from clocks that disagree, counts as 0."},
	CallSerializeTime: {Name: "ml.call.serialize.time", Unit: "s", Kind: Histogram, Labels: callLabels, Buckets: callBuckets, NoRun: true,
		Description: "Time that calls took to encode their arguments."},
	CallPythonTime: {Name: "ml.call.python.time", Unit: "s", Kind: Histogram, Labels: callLabels, Buckets: callBuckets, NoRun: true,
		Description: "Time that calls spent in the Python function. If the caller and the worker both measure it, each has a series under its own service."},
	CallsSlow: {Name: "ml.calls.slow", Unit: "{call}", Kind: Counter, Labels: callLabels, NoRun: true,
		Description: "Calls that took longer than a second."},
	CallTime: {Name: "ml.call.time", Unit: "s", Kind: Total, NoRun: true, Labels: []string{CallBound, mlattr.Library, mlattr.Function, mlattr.Operation, mlattr.Role, mlattr.GenAIRequestModel, mlattr.Side},
		Description: "Time of calls and requests by what it was spent on. queue: the wait for a worker. serialize: arguments were encoded. input: data was loaded. model_server: a model's server worked on it, as its client sees it. network: the wait for another process otherwise. gpu: the program worked, and the utilization of the GPUs of its run or service was above 0.7. cpu: it worked, and its process used 0.7 cores or more. Otherwise unknown. The time of a request includes that of its calls, which have their own series."},
	PoolSize: {Name: "ml.pool.size", Unit: "{worker}", Kind: State, Labels: poolLabels,
		Description: "Workers of a pool, as last reported."},
	PoolBusy: {Name: "ml.pool.busy", Unit: "{worker}", Kind: State, Labels: poolLabels,
		Description: "Busy workers of a pool, as last reported."},
	PoolIdle: {Name: "ml.pool.idle", Unit: "{worker}", Kind: State, Labels: poolLabels,
		Description: "Idle workers of a pool, as last reported."},
	WorkerCrashes: {Name: "ml.worker.crashes", Unit: "{crash}", Kind: Counter, Labels: workerLabels,
		Description: "Workers that crashed."},
	BreakerOpenings: {Name: "ml.breaker.openings", Unit: "{opening}", Kind: Counter, Labels: workerLabels,
		Description: "Number of times that a circuit breaker opened and refused calls."},
	HealthAlerts: {Name: "ml.health.alerts", Unit: "{alert}", Kind: Counter, Labels: workerLabels,
		Description: "Alerts of a client's health monitor."},
	MemoryAllocated: {Name: "ml.memory.allocated", Unit: "By", Kind: Balance, Labels: []string{Type, Device, Instance},
		Description: "Memory allocated and not released, as far as the client reports both. What a worker held when it crashed is not released."},
	GPUMemoryUsage: {Name: "ml.gpu.memory.usage", Unit: "By", Kind: State, Labels: []string{MemoryKind, Device, Instance},
		Description: "GPU memory used by a client's tensors (allocated) and held by its allocator (reserved), as last reported."},
	GPUIdleTime: {Name: "ml.gpu.idle.time", Unit: "s", Kind: Gauge, NoRun: true, Momentary: true, Labels: []string{mlattr.HardwareID},
		Description: "How long a GPU whose memory a workload holds has done nothing, up to its last reading; 0 if it works. A GPU that nobody holds has no series. The labels are hw.id and host.name; there is no service.name."},
	GPUPrice: {Name: "ml.gpu.price", Unit: "USD/h", Kind: Gauge, NoRun: true, Momentary: true, Labels: []string{mlattr.HardwareID},
		Description: "What the GPU costs an hour, by prices::gpu_hour, held or not. The labels are hw.id and host.name; there is no service.name."},
	HostLastData: {Name: "ml.host.last_data.timestamp", Unit: "s", Kind: Gauge, NoRun: true, Momentary: true,
		Description: "When a span, a metric or a reading of a GPU of the host last arrived, in seconds since 1970 by the collector's clock. What ml_metrics computes does not count. The only label is host.name."},
	CollectorNotice: {Name: "ml.collector.notice.timestamp", Unit: "s", Kind: Gauge, NoRun: true, Momentary: true, Labels: []string{Notice},
		Description: "Since when the collector refuses data, drops data for a back end or withholds problems of silence, in seconds since 1970: what its page says in red. It exists only meanwhile. ml.notice is refused, dropped or withheld."},
	RequestErrorRatio: {Name: "ml.request.error.ratio", Unit: "1", Kind: Gauge, NoRun: true, Momentary: true, Labels: []string{Window},
		Description: "Fraction of the service's requests that failed. recent: of the last 100 requests, as far as they arrived within 15 minutes. usual: of the up to 1000 requests before these, at least 100; while the service fails, what it was before. It is that of requests to models (ml.requests), of requests to agents (invoke_agent, or the outermost span of a role), or of calls of functions and operations, whichever is worst. There are no labels of a run or host."},
	ProblemOnset: {Name: "ml.problem.onset.timestamp", Unit: "s", Kind: Gauge, NoRun: true, Momentary: true, Labels: []string{mlattr.Problem, mlattr.HardwareID, mlattr.RunID},
		Description: "When a problem began, in seconds since 1970; the series exists as long as the problem. docs/problems.md has the kinds, with their rules. The problem of a run has its ml.run.id, that of a host its host.name, and that of a GPU its hw.id and host.name, with the ml.run.id of each run that it concerns. Marks have no series."},
	GenAITokenUsage: {Name: "gen_ai.client.token.usage", Unit: "{token}", Kind: Histogram, OptIn: genAIMetrics, NoRun: true, Labels: genAILabels(mlattr.GenAITokenType), Buckets: tokenBuckets,
		Description: "Tokens of each request to a model, as its client counted them.",
		Next: []string{
			"gen_ai.client.inference.usage.input_tokens", "gen_ai.client.inference.usage.output_tokens",
			"gen_ai.client.inference.operation.input_tokens", "gen_ai.client.inference.operation.output_tokens",
			"gen_ai.client.embeddings.operation.input_tokens",
		}},
	GenAIOperationDuration: {Name: "gen_ai.client.operation.duration", Unit: "s", Kind: Histogram, OptIn: genAIMetrics, NoRun: true, Labels: genAILabels(mlattr.ErrorType), Buckets: durationBuckets,
		Description: "Duration of each request to a model, as its client measured it.",
		Next:        []string{"gen_ai.client.inference.duration", "gen_ai.client.embeddings.duration"}},
	GenAIServerDuration: {Name: "gen_ai.server.request.duration", Unit: "s", Kind: Histogram, OptIn: genAIMetrics, NoRun: true, Labels: genAILabels(mlattr.ErrorType), Buckets: durationBuckets,
		Description: "Duration of each request to a model, as its server measured it."},
	GenAITimeToFirstToken: {Name: "gen_ai.server.time_to_first_token", Unit: "s", Kind: Histogram, OptIn: genAIMetrics, NoRun: true, Labels: genAILabels(),
		Description: "Time from each successful request to its first token, as its server measured it.",
		Buckets:     []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}},
	GenAITimePerOutputToken: {Name: "gen_ai.server.time_per_output_token", Unit: "s", Kind: Histogram, OptIn: genAIMetrics, NoRun: true, Labels: genAILabels(),
		Description: "Time per token after the first of each successful request, as its server measured it.",
		Buckets:     []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}},
	SpanCalls: {Name: "traces.span.metrics.calls", Unit: "{call}", Kind: Counter, OptIn: spanMetrics, NoRun: true, Labels: spanLabels,
		Description: "Spans of every kind, also those that are no machine-learning operations. A span that is delivered twice counts twice."},
	SpanDuration: {Name: "traces.span.metrics.duration", Unit: "ms", Kind: Histogram, OptIn: spanMetrics, NoRun: true, Labels: spanLabels, Calls: SpanCalls,
		Description: "Duration of the same spans.",
		Buckets:     []float64{2, 4, 6, 8, 10, 50, 100, 200, 400, 800, 1000, 1400, 2000, 5000, 10_000, 15_000}},
}

// spanLabels are the labels of all spans.
var spanLabels = []string{SpanKind, StatusCode, mlattr.Operation, mlattr.Phase, mlattr.HTTPRoute, mlattr.RPCMethod, Overflow}

// spanMetrics is the value of Series.OptIn of the metrics of all spans.
const spanMetrics = "span_metrics: true"

// genAIMetrics is the value of Series.OptIn of the metrics of the GenAI conventions.
const genAIMetrics = "genai_metrics: true"

// genAILabels returns the attributes that all metrics of the conventions have,
// and more.
func genAILabels(more ...string) []string {
	return append([]string{
		mlattr.GenAIOperationName, mlattr.GenAIProviderName, mlattr.GenAIRequestModel,
		ServerPort, mlattr.GenAIResponseModel, ServerAddress,
	}, more...)
}

// powersOf returns first, factor*first … last.
func powersOf(factor, first, last float64) []float64 {
	var bounds []float64
	for b := first; b <= last; b *= factor {
		bounds = append(bounds, b)
	}
	return bounds
}
