// Code generated from series.yaml by "go generate". DO NOT EDIT.

package series

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
	GradientNorm
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
	ProblemVerdicts
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
