package model

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// Series identifies a metric that the page reads.
type Series uint8

// The series, by what their streams belong to.
const (
	Steps Series = iota + 1
	Batches
	Samples
	Epoch
	Loss
	LearningRate
	LastStep
	StepDuration
	RunState
	RunStateSince
	RunTimeRatio
	RunGoodput
	RunBound
	RunGPUs
	RunGPUUtilization
	RunGPUPrice
	RunStepTime
	RunTokenRate
	RunAttempts
	RunLastData
	Errors

	Tokens
	Requests
	Cost
	ClientThroughput

	ErrorRatio
	CallTime

	PoolSize
	PoolBusy
	PoolIdle
	WorkerCrashes
	BreakerOpenings
	HealthAlerts

	Problem

	GPUUtilization
	GPUMemoryUsed
	GPUMemoryLimit
	GPUMemoryReserved
	GPUPower
	GPUPowerLimit
	GPUTemperature
	GPUThrottle
	GPUStatus
	GPURecovery
	GPUInfo
	GPUIdle
	GPUWorkload
	GPUProcess

	DriverState
	Attribution
	HostLastData

	CollectorNotice

	seriesCount
)

// subject is what the streams of a series belong to.
type subject uint8

const (
	ofRun subject = iota + 1
	ofModel
	ofService
	ofPool
	ofProblem
	ofGPU
	ofHost
	ofCollector
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
	subject subject
	kind    kind
	// own are the attributes of the series that tell its streams apart, besides
	// those that Labels has fields for.
	own []string
	// only limits the series to the points whose first own attribute has this
	// value.
	only string
}

// MaxOwn is the largest number of own labels of a series.
const MaxOwn = 8

// Attributes of series that mlattr has no name for.
const (
	attrRunState   = "ml.run.state"
	attrRunBound   = "ml.run.bound"
	attrCallBound  = "ml.call.bound"
	attrWindow     = "ml.window"
	attrTiming     = "ml.timing"
	attrTask       = "ml.task"
	attrPool       = "pool"
	attrInstance   = "service.instance.id"
	attrType       = "type"
	attrDevice     = "device"
	attrPID        = "process.pid"
	attrSensor     = "hw.sensor_location"
	attrCostSource = "ml.cost.source"
	attrDriver     = "nvidia.gpu.driver.state"
	attrSource     = "nvidia.gpu.attribution.source"
	attrAttributed = "nvidia.gpu.attribution.state"
	attrNotice     = "ml.notice"
)

var definitions = [seriesCount]definition{
	Steps:             {name: "ml.steps", subject: ofRun, kind: counter},
	Batches:           {name: "ml.batches", subject: ofRun, kind: counter},
	Samples:           {name: "ml.samples", subject: ofRun, kind: counter},
	Epoch:             {name: "ml.epoch", subject: ofRun},
	Loss:              {name: "ml.loss", subject: ofRun, own: []string{mlattr.LossScope, attrTask}},
	LearningRate:      {name: "ml.learning_rate", subject: ofRun},
	LastStep:          {name: "ml.run.last_step.timestamp", subject: ofRun},
	StepDuration:      {name: "ml.step.duration", subject: ofRun, kind: histogram, own: []string{mlattr.Phase, attrTiming}},
	RunState:          {name: "ml.run.state", subject: ofRun, own: []string{attrRunState}},
	RunStateSince:     {name: "ml.run.state.timestamp", subject: ofRun},
	RunTimeRatio:      {name: "ml.run.time.ratio", subject: ofRun, own: []string{attrRunState}},
	RunGoodput:        {name: "ml.run.goodput", subject: ofRun},
	RunBound:          {name: "ml.run.bound", subject: ofRun, own: []string{attrRunBound}},
	RunGPUs:           {name: "ml.run.gpus", subject: ofRun},
	RunGPUUtilization: {name: "ml.run.gpu.utilization", subject: ofRun},
	RunGPUPrice:       {name: "ml.run.gpu.price", subject: ofRun},
	RunStepTime:       {name: "ml.run.step.time", subject: ofRun, own: []string{attrWindow}},
	RunTokenRate:      {name: "ml.run.token.throughput", subject: ofRun, own: []string{mlattr.ThroughputBasis}},
	RunAttempts:       {name: "ml.run.attempts", subject: ofRun},
	RunLastData:       {name: "ml.run.last_data.timestamp", subject: ofRun},
	Errors:            {name: "ml.errors", subject: ofService, own: []string{mlattr.Operation, mlattr.ErrorType}},

	Tokens:           {name: "ml.tokens", subject: ofModel, kind: counter, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side}},
	Requests:         {name: "ml.requests", subject: ofModel, kind: counter, own: []string{mlattr.Operation, mlattr.GenAIRequestModel, mlattr.ErrorType, mlattr.Role, mlattr.Side}},
	Cost:             {name: "ml.cost", subject: ofModel, kind: counter, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, attrCostSource, mlattr.Role, mlattr.Side}},
	ClientThroughput: {name: "ml.token.throughput", subject: ofModel, own: []string{mlattr.GenAITokenType, mlattr.GenAIRequestModel, mlattr.ThroughputBasis, mlattr.ThroughputMetric, mlattr.ThroughputScope}},

	ErrorRatio: {name: "ml.request.error.ratio", subject: ofService, own: []string{attrWindow}},
	CallTime:   {name: "ml.call.time", subject: ofService, kind: counter, own: []string{attrCallBound, mlattr.GenAIRequestModel, mlattr.Operation, mlattr.Role, mlattr.Side, mlattr.Library, mlattr.Function}},

	PoolSize:        {name: "ml.pool.size", subject: ofPool, own: []string{attrPool, attrInstance}},
	PoolBusy:        {name: "ml.pool.busy", subject: ofPool, own: []string{attrPool, attrInstance}},
	PoolIdle:        {name: "ml.pool.idle", subject: ofPool, own: []string{attrPool, attrInstance}},
	WorkerCrashes:   {name: "ml.worker.crashes", subject: ofPool, own: []string{attrPool, attrType, attrDevice}},
	BreakerOpenings: {name: "ml.breaker.openings", subject: ofPool, own: []string{attrPool, attrType, attrDevice}},
	HealthAlerts:    {name: "ml.health.alerts", subject: ofPool, own: []string{attrPool, attrType, attrDevice}},

	Problem: {name: "ml.problem.onset.timestamp", subject: ofProblem, own: []string{mlattr.Problem}},

	GPUUtilization:    {name: mlattr.GPUUtilization, subject: ofGPU, own: []string{mlattr.GPUTask}, only: mlattr.GPUTaskGeneral},
	GPUMemoryUsed:     {name: mlattr.GPUMemoryUsage, subject: ofGPU},
	GPUMemoryLimit:    {name: mlattr.GPUMemoryLimit, subject: ofGPU},
	GPUMemoryReserved: {name: mlattr.GPUMemoryReserved, subject: ofGPU},
	GPUPower:          {name: "hw.power", subject: ofGPU},
	GPUPowerLimit:     {name: "nvidia.gpu.power.limit", subject: ofGPU, own: []string{mlattr.GPUPowerLimitType}, only: "enforced"},
	GPUTemperature:    {name: "hw.temperature", subject: ofGPU, own: []string{attrSensor}, only: "gpu"},
	GPUThrottle:       {name: mlattr.GPUThrottleActive, subject: ofGPU, own: []string{mlattr.GPUThrottleReason}},
	GPUStatus:         {name: mlattr.GPUStatus, subject: ofGPU, own: []string{mlattr.HardwareState}},
	GPURecovery:       {name: "nvidia.gpu.recovery.action", subject: ofGPU},
	GPUInfo:           {name: "nvidia.gpu.info", subject: ofGPU, own: []string{mlattr.HardwareName}},
	GPUIdle:           {name: "ml.gpu.idle.time", subject: ofGPU},
	GPUWorkload:       {name: mlattr.GPUWorkloadMemory, subject: ofGPU, own: []string{mlattr.SlurmJobID, mlattr.K8sNamespace, mlattr.K8sPod, mlattr.ContainerID, mlattr.UserID, mlattr.GPUJoin, mlattr.ServiceName, mlattr.UserName}},
	GPUProcess:        {name: mlattr.GPUProcessMemory, subject: ofGPU, own: []string{attrPID}},

	DriverState: {name: "nvidia.gpu.driver.state", subject: ofHost, own: []string{attrDriver}},
	Attribution: {name: "nvidia.gpu.attribution", subject: ofHost, own: []string{attrSource, attrAttributed}},

	HostLastData: {name: "ml.host.last_data.timestamp", subject: ofHost},

	CollectorNotice: {name: "ml.collector.notice.timestamp", subject: ofCollector, own: []string{attrNotice}},
}

var seriesByName = func() map[string]Series {
	byName := make(map[string]Series, len(definitions))
	for i := range definitions {
		if name := definitions[i].name; name != "" {
			byName[name] = Series(i)
		}
	}
	return byName
}()

// derived are the series that ml_metrics computes.
var derived = func() (is [seriesCount]bool) {
	for i := range definitions {
		is[i] = mlattr.IsDerived(definitions[i].name)
	}
	return is
}()

// SeriesOf returns the series of a metric's name, and false for a metric that
// the page does not read.
func SeriesOf(name string) (Series, bool) {
	s, ok := seriesByName[name]
	return s, ok
}

// Own returns the attributes that are Labels.Own, in their order. The caller
// must not change it.
func (s Series) Own() []string { return definitions[s].own }

// Wants reports whether the page reads a point whose first own attribute has
// this value.
func (s Series) Wants(first string) bool {
	only := definitions[s].only
	return only == "" || only == first
}

// ofWholeRun reports whether ml_metrics computes the series for a whole run, which
// has few streams of it.
func (s Series) ofWholeRun() bool {
	switch s {
	case RunState, RunStateSince, RunTimeRatio, RunGoodput, RunBound, RunGPUs, RunGPUUtilization, RunGPUPrice, RunStepTime, RunLastData:
		return true
	}
	return false
}

// OfHardware reports whether the series is about a GPU or a host. Its streams
// belong to no service.
func (s Series) OfHardware() bool {
	of := definitions[s].subject
	return of == ofGPU || of == ofHost
}

// NameOf returns the name of the metric of a series, "" if there is no such
// series.
func NameOf(s Series) string {
	if s >= seriesCount {
		return ""
	}
	return definitions[s].name
}
