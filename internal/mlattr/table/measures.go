package table

// Measures are what metrics of clients can be about. Each has the name of the
// metric that otelcol-ml or the conventions have for the same quantity.
const (
	// MeasureTokens counts tokens, by token type.
	MeasureTokens = "ml.tokens"
	// MeasureCachedTokens counts the input tokens that came from a cache. They
	// are part of the input tokens.
	MeasureCachedTokens = "ml.tokens.cached" //nolint:gosec // a name, no credential
	// MeasureTokenThroughput is a token rate that the client computed.
	MeasureTokenThroughput = "ml.token.throughput"
	// MeasureRequestDuration is the time from a request to its last token.
	MeasureRequestDuration = "gen_ai.server.request.duration"
	// MeasureTimeToFirstToken is the time from a request to its first token.
	MeasureTimeToFirstToken = "gen_ai.server.time_to_first_token" //nolint:gosec // a name, no credential
	// MeasureTimePerOutputToken is the time for each token after the first.
	MeasureTimePerOutputToken = "gen_ai.server.time_per_output_token" //nolint:gosec // a name, no credential
	// MeasurePrefillTime is the time in which the model read the input.
	MeasurePrefillTime = "ml.latency.prefill"
	// MeasureDecodeTime is the time in which the model generated the tokens after
	// the first.
	MeasureDecodeTime = "ml.latency.decode"
	// MeasureQueueTime is how long a request or operation waited.
	MeasureQueueTime = "ml.queue.time"
	// MeasureRequests counts requests that ended, by GenAIFinishReasons where the
	// points state it.
	MeasureRequests = "ml.requests"
	// MeasureRequestsRunning is the number of requests that a server works on.
	MeasureRequestsRunning = "ml.requests.running"
	// MeasureRequestsWaiting is the number of requests that wait for a server.
	MeasureRequestsWaiting = "ml.requests.waiting"
	// MeasureKVCacheUtilization is the share of a server's KV cache that is in
	// use.
	MeasureKVCacheUtilization = "ml.kv_cache.utilization"
	// MeasureSteps counts optimizer steps.
	MeasureSteps = "ml.steps"
	// MeasureStepDuration is how long one step took.
	MeasureStepDuration = "ml.step.duration"
	// MeasureDataLoadTime is the part of a step that waited for data.
	MeasureDataLoadTime = "ml.step.data_load.duration"
	// MeasureBatchSize is the number of samples of a step.
	MeasureBatchSize = "ml.batch.size"
	// MeasureSampleThroughput is a sample rate that the client computed.
	MeasureSampleThroughput = "ml.sample.throughput"
	// MeasureLoss is the training loss.
	MeasureLoss = "ml.loss"
	// MeasureLearningRate is the optimizer's learning rate.
	MeasureLearningRate = "ml.learning_rate"
	// MeasureGradientNorm is the norm of the gradient.
	MeasureGradientNorm = "ml.gradient.norm"
	// MeasureFLOPThroughput is the rate of floating-point operations.
	MeasureFLOPThroughput = "ml.flop.throughput"
	// MeasureMFU is the share of the device's peak FLOP/s that the model used.
	MeasureMFU = "ml.mfu"
	// MeasureGPUMemory is memory of a GPU that the client uses.
	MeasureGPUMemory = "ml.gpu.memory.usage"
	// MeasureCollectiveBandwidth is the bandwidth of the bus that an operation of
	// a communicator reached.
	MeasureCollectiveBandwidth = "ml.collective.bandwidth"
	// MeasureCollectiveDuration is how long an operation of a communicator took.
	MeasureCollectiveDuration = "ml.collective.duration"
	// MeasureCollectives counts operations of communicators.
	MeasureCollectives = "ml.collectives"
	// MeasureParameters is the number of a model's parameters.
	MeasureParameters = "ml.model.parameters"
)

// Dimension is the kind of quantity of a measure. It decides which units can be
// converted.
type Dimension uint8

const (
	// DimensionCount is a number of items.
	DimensionCount Dimension = iota + 1
	// DimensionTime is a time, in seconds.
	DimensionTime
	// DimensionRate is a number of items a second.
	DimensionRate
	// DimensionBytes is an amount of memory, in bytes.
	DimensionBytes
	// DimensionByteRate is an amount of data a second, in bytes.
	DimensionByteRate
	// DimensionFLOPRate is a rate of floating-point operations.
	DimensionFLOPRate
	// DimensionRatio is a share; 1 is all.
	DimensionRatio
	// DimensionNone is a number without a unit.
	DimensionNone
)

var dimensions = [...]string{
	DimensionCount: "count", DimensionTime: "time", DimensionRate: "rate", DimensionBytes: "size",
	DimensionByteRate: "data rate", DimensionFLOPRate: "FLOP rate", DimensionRatio: "share", DimensionNone: "number",
}

// String returns the dimension's word in the documentation.
func (d Dimension) String() string { return wordOf(d, dimensions[:]) }

// Measure is a quantity that metrics can be about.
type Measure struct {
	// Name is one of the Measure constants.
	Name string
	// Unit is the unit, in UCUM, that Meaning.Factor converts into.
	Unit string
	// Dimension decides which other units can be converted.
	Dimension Dimension
	// Description is one sentence.
	Description string
}

// Measures are all quantities that a metric can be about, in the order of the
// documentation.
var Measures = []Measure{
	{MeasureTokens, "{token}", DimensionCount, "Tokens, by `gen_ai.token.type` where the metric says it."},
	{MeasureCachedTokens, "{token}", DimensionCount, "Input tokens that a cache gave; part of the input's."},
	{MeasureTokenThroughput, "{token}/s", DimensionRate, "A token rate that the client worked out itself."},
	{MeasureRequestDuration, "s", DimensionTime, "Time from a request to its last token."},
	{MeasureTimeToFirstToken, "s", DimensionTime, "Time from a request to its first token."},
	{MeasureTimePerOutputToken, "s", DimensionTime, "Time for each output token after the first."},
	{MeasurePrefillTime, "s", DimensionTime, "Time in which the model read the input of a request."},
	{MeasureDecodeTime, "s", DimensionTime, "Time in which the model generated the tokens of a request after the first."},
	{MeasureQueueTime, "s", DimensionTime, "Time that a request or an operation waited."},
	{MeasureRequests, "{request}", DimensionCount, "Requests that ended, by `gen_ai.response.finish_reasons` where the metric says it."},
	{MeasureRequestsRunning, "{request}", DimensionCount, "Requests that a server works on."},
	{MeasureRequestsWaiting, "{request}", DimensionCount, "Requests that wait for a server."},
	{MeasureKVCacheUtilization, "1", DimensionRatio, "Share of a server's KV cache that is in use; 1 is all."},
	{MeasureSteps, "{step}", DimensionCount, "Optimizer steps."},
	{MeasureStepDuration, "s", DimensionTime, "Time of one optimizer step."},
	{MeasureDataLoadTime, "s", DimensionTime, "Time of one step that was spent waiting for data."},
	{MeasureBatchSize, "{sample}", DimensionCount, "Samples of one step."},
	{MeasureSampleThroughput, "{sample}/s", DimensionRate, "A sample rate that the client worked out itself."},
	{MeasureLoss, "", DimensionNone, "Training loss."},
	{MeasureLearningRate, "", DimensionNone, "Learning rate."},
	{MeasureGradientNorm, "", DimensionNone, "Norm of the gradient."},
	{MeasureFLOPThroughput, "TFLOP/s", DimensionFLOPRate, "Floating-point operations, in 10^12 a second."},
	{MeasureMFU, "1", DimensionRatio, "Share of the device's FLOP/s that the model used; 1 is all."},
	{MeasureGPUMemory, "By", DimensionBytes, "Memory of a GPU that the client uses, as the client counts it."},
	{MeasureCollectiveBandwidth, "By/s", DimensionByteRate, "Bandwidth of the bus that an operation of a communicator reached."},
	{MeasureCollectiveDuration, "s", DimensionTime, "Time of an operation of a communicator, waiting for other ranks included."},
	{MeasureCollectives, "{operation}", DimensionCount, "Operations of communicators."},
	{MeasureParameters, "{parameter}", DimensionCount, "Parameters of the model."},
}

// MeasureByName has each of Measures by its name.
var MeasureByName = func() map[string]*Measure {
	byName := make(map[string]*Measure, len(Measures))
	for i := range Measures {
		byName[Measures[i].Name] = &Measures[i]
	}
	return byName
}()

// UnitFactors has, for each dimension, the factors that convert clients' units into
// the measures' own. A unit in braces stands for any item.
var UnitFactors = map[Dimension]map[string]float64{
	DimensionTime: {
		"s": 1, "sec": 1, "second": 1, "seconds": 1,
		"ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
		"us": 1e-6, "µs": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
		"ns": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9,
		"min": 60, "minutes": 60, "h": 3600, "hours": 3600,
	},
	DimensionCount: {
		"1": 1, "token": 1, "tokens": 1, "request": 1, "requests": 1, "step": 1, "steps": 1,
		"sample": 1, "samples": 1, "parameters": 1,
	},
	DimensionRate: {
		"1/s": 1, "tokens/s": 1, "token/s": 1, "samples/s": 1, "sample/s": 1,
		"1/min": 1.0 / 60, "tokens/min": 1.0 / 60,
	},
	DimensionBytes: {
		"By": 1, "bytes": 1, "byte": 1, "kBy": 1e3, "MBy": 1e6, "GBy": 1e9,
		"KiBy": 1 << 10, "MiBy": 1 << 20, "GiBy": 1 << 30,
	},
	DimensionByteRate: {"By/s": 1, "kBy/s": 1e3, "MBy/s": 1e6, "GBy/s": 1e9, "GB/s": 1e9},
	DimensionFLOPRate: {
		"FLOP/s": 1e-12, "GFLOP/s": 1e-3, "TFLOP/s": 1, "PFLOP/s": 1e3,
	},
	DimensionRatio: {"1": 1, "%": 0.01, "percent": 0.01},
	DimensionNone:  {"1": 1},
}

// Convert returns the factor from a unit to the measure's own unit, and false
// for a unit that the measure cannot have. A unit is never guessed from the
// size of a value.
func (m *Measure) Convert(unit string) (float64, bool) {
	if unit == m.Unit {
		return 1, true
	}
	// An annotation in braces says what is counted and changes nothing.
	if n := len(unit); n > 2 && unit[0] == '{' && unit[n-1] == '}' && m.Dimension == DimensionCount {
		return 1, true
	}
	factor, ok := UnitFactors[m.Dimension][unit]
	return factor, ok
}
