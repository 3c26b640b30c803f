// Package series has the series that the page reads, and their streams with rates and means.
package series

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// Series identifies a metric that the page reads.
type Series uint8

// Subject is what the streams of a series belong to.
type Subject uint8

// The values of Subject.
const (
	OfRun Subject = iota + 1
	OfModel
	OfService
	OfPool
	OfProblem
	OfGPU
	OfHost
	OfCollector
)

// kind is what is computed of the values of a series.
type kind uint8

const (
	// counter has a rate over rateWindow. Without a kind the last value counts.
	counter kind = iota + 1
	// histogram has a mean over meanWindow.
	histogram
)

// definition describes a series.
type definition struct {
	name    string
	subject Subject
	kind    kind
	// own are the attributes of the series that tell its streams apart, besides
	// those that Labels has fields for.
	own []string
	// only limits the series to the points whose first own attribute has this
	// value.
	only string
	// whole reports whether ml_metrics computes the series for a whole run.
	whole bool
}

// MaxOwn is the largest number of own labels of a series.
const MaxOwn = 8

// Attributes of series that mlattr has no name for.
const (
	attrRunState = "ml.run.state"
	attrWindow   = "ml.window"
	attrPool     = "pool"
	attrInstance = "service.instance.id"
	attrType     = "type"
	attrDevice   = "device"
)

// Count is the number of series and one more: 0 is none.
const Count = 51

var (
	definitions [Count]definition
	// ByName has the series by the name of their metric.
	ByName = make(map[string]Series, Count)
	// isDerived are the series that ml_metrics computes.
	isDerived [Count]bool
)

// define returns the next series.
func define(d definition) Series {
	s := Series(len(ByName) + 1)
	definitions[s], ByName[d.name], isDerived[s] = d, s, mlattr.IsDerived(d.name)
	return s
}

// The series, by what their streams belong to.
var (
	Steps             = define(definition{name: "ml.steps", subject: OfRun, kind: counter})
	Batches           = define(definition{name: "ml.batches", subject: OfRun, kind: counter})
	Samples           = define(definition{name: "ml.samples", subject: OfRun, kind: counter})
	Epoch             = define(definition{name: "ml.epoch", subject: OfRun})
	Loss              = define(definition{name: "ml.loss", subject: OfRun, own: []string{mlattr.LossScope, "ml.task"}})
	LearningRate      = define(definition{name: "ml.learning_rate", subject: OfRun})
	LastStep          = define(definition{name: "ml.run.last_step.timestamp", subject: OfRun})
	StepDuration      = define(definition{name: "ml.step.duration", subject: OfRun, kind: histogram, own: []string{mlattr.Phase, "ml.timing"}})
	RunState          = define(definition{name: "ml.run.state", subject: OfRun, whole: true, own: []string{attrRunState}})
	RunStateSince     = define(definition{name: "ml.run.state.timestamp", subject: OfRun, whole: true})
	RunTimeRatio      = define(definition{name: "ml.run.time.ratio", subject: OfRun, whole: true, own: []string{attrRunState}})
	RunGoodput        = define(definition{name: "ml.run.goodput", subject: OfRun, whole: true})
	RunBound          = define(definition{name: "ml.run.bound", subject: OfRun, whole: true, own: []string{"ml.run.bound"}})
	RunGPUs           = define(definition{name: "ml.run.gpus", subject: OfRun, whole: true})
	RunGPUUtilization = define(definition{name: "ml.run.gpu.utilization", subject: OfRun, whole: true})
	RunGPUPrice       = define(definition{name: "ml.run.gpu.price", subject: OfRun, whole: true})
	RunStepTime       = define(definition{name: "ml.run.step.time", subject: OfRun, whole: true, own: []string{attrWindow}})
	RunTokenRate      = define(definition{name: "ml.run.token.throughput", subject: OfRun, own: []string{mlattr.ThroughputBasis}})
	RunAttempts       = define(definition{name: "ml.run.attempts", subject: OfRun})
	RunLastData       = define(definition{name: "ml.run.last_data.timestamp", subject: OfRun, whole: true})
	Errors            = define(definition{name: "ml.errors", subject: OfService, own: []string{mlattr.Operation, mlattr.ErrorType}})

	Tokens           = define(definition{name: "ml.tokens", subject: OfModel, kind: counter, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side}})
	Requests         = define(definition{name: "ml.requests", subject: OfModel, kind: counter, own: []string{mlattr.Operation, mlattr.GenAIRequestModel, mlattr.ErrorType, mlattr.Role, mlattr.Side}})
	Cost             = define(definition{name: "ml.cost", subject: OfModel, kind: counter, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, "ml.cost.source", mlattr.Role, mlattr.Side}})
	ClientThroughput = define(definition{name: "ml.token.throughput", subject: OfModel, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.ThroughputBasis, mlattr.ThroughputMetric, mlattr.ThroughputScope}})

	ErrorRatio = define(definition{name: "ml.request.error.ratio", subject: OfService, own: []string{attrWindow}})
	CallTime   = define(definition{name: "ml.call.time", subject: OfService, kind: counter, own: []string{"ml.call.bound", mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side, mlattr.Library, mlattr.Function}})

	PoolSize        = define(definition{name: "ml.pool.size", subject: OfPool, own: []string{attrPool, attrInstance}})
	PoolBusy        = define(definition{name: "ml.pool.busy", subject: OfPool, own: []string{attrPool, attrInstance}})
	PoolIdle        = define(definition{name: "ml.pool.idle", subject: OfPool, own: []string{attrPool, attrInstance}})
	WorkerCrashes   = define(definition{name: "ml.worker.crashes", subject: OfPool, own: []string{attrPool, attrType, attrDevice}})
	BreakerOpenings = define(definition{name: "ml.breaker.openings", subject: OfPool, own: []string{attrPool, attrType, attrDevice}})
	HealthAlerts    = define(definition{name: "ml.health.alerts", subject: OfPool, own: []string{attrPool, attrType, attrDevice}})

	Problem = define(definition{name: "ml.problem.onset.timestamp", subject: OfProblem, own: []string{mlattr.Problem}})

	GPUUtilization    = define(definition{name: mlattr.GPUUtilization, subject: OfGPU, own: []string{mlattr.GPUTask}, only: mlattr.GPUTaskGeneral})
	GPUMemoryUsed     = define(definition{name: mlattr.GPUMemoryUsage, subject: OfGPU})
	GPUMemoryLimit    = define(definition{name: mlattr.GPUMemoryLimit, subject: OfGPU})
	GPUMemoryReserved = define(definition{name: mlattr.GPUMemoryReserved, subject: OfGPU})
	GPUPower          = define(definition{name: "hw.power", subject: OfGPU})
	GPUPowerLimit     = define(definition{name: "nvidia.gpu.power.limit", subject: OfGPU, own: []string{mlattr.GPUPowerLimitType}, only: "enforced"})
	GPUTemperature    = define(definition{name: "hw.temperature", subject: OfGPU, own: []string{"hw.sensor_location"}, only: "gpu"})
	GPUThrottle       = define(definition{name: mlattr.GPUThrottleActive, subject: OfGPU, own: []string{mlattr.GPUThrottleReason}})
	GPUStatus         = define(definition{name: mlattr.GPUStatus, subject: OfGPU, own: []string{mlattr.HardwareState}})
	GPUInfo           = define(definition{name: "nvidia.gpu.info", subject: OfGPU, own: []string{mlattr.HardwareName}})
	GPUIdle           = define(definition{name: "ml.gpu.idle.time", subject: OfGPU})
	GPUWorkload       = define(definition{name: mlattr.GPUWorkloadMemory, subject: OfGPU, own: []string{mlattr.SlurmJobID, mlattr.K8sNamespace, mlattr.K8sPod, mlattr.ContainerID, mlattr.UserID, mlattr.GPUJoin, mlattr.ServiceName, mlattr.UserName}})

	DriverState = define(definition{name: "nvidia.gpu.driver.state", subject: OfHost, own: []string{"nvidia.gpu.driver.state"}})
	Attribution = define(definition{name: "nvidia.gpu.attribution", subject: OfHost, own: []string{"nvidia.gpu.attribution.source", "nvidia.gpu.attribution.state"}})

	HostLastData = define(definition{name: "ml.host.last_data.timestamp", subject: OfHost})

	CollectorNotice = define(definition{name: "ml.collector.notice.timestamp", subject: OfCollector, own: []string{"ml.notice"}})
)

// Own returns the attributes that are Labels.Own, in their order. The caller
// must not change it.
func (s Series) Own() []string { return definitions[s].own }

// Wants reports whether the page reads a point whose first own attribute has
// this value.
func (s Series) Wants(first string) bool {
	only := definitions[s].only
	return only == "" || only == first
}

// Subject returns what the streams of the series belong to.
func (s Series) Subject() Subject { return definitions[s].subject }

// Counts reports whether the series is a counter.
func (s Series) Counts() bool { return definitions[s].kind == counter }

// Grows reports whether the series is a counter or a histogram.
func (s Series) Grows() bool { return definitions[s].kind != 0 }

// Derived reports whether ml_metrics computes the series.
func (s Series) Derived() bool { return isDerived[s] }

// OfWholeRun reports whether ml_metrics computes the series for a whole run, which
// has few streams of it.
func (s Series) OfWholeRun() bool { return definitions[s].whole }

// OfWorkers reports whether the series is a gauge of the workers of a pool in one process.
func (s Series) OfWorkers() bool { return s == PoolSize || s == PoolBusy || s == PoolIdle }

// OfHardware reports whether the series is about a GPU or a host. Its streams
// belong to no service.
func (s Series) OfHardware() bool {
	of := definitions[s].subject
	return of == OfGPU || of == OfHost
}
