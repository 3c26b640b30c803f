package mlattr

// Values of ml.run.state that a whole run can have.
const (
	// RunUnknown is a run that has taken no step yet.
	RunUnknown = "unknown"
	// RunRunning is a run that takes steps.
	RunRunning = "running"
	// RunStalled is a run that takes no steps and holds GPUs.
	RunStalled = "stalled"
	// RunSilent is a run that takes no steps and holds no GPU that is known.
	RunSilent = "silent"
	// RunEnded is a run whose training has ended.
	RunEnded = "ended"
)

// Values of ml.window.
const (
	WindowRecent = "recent"
	WindowUsual  = "usual"
)

// Values of ml.problem.
const (
	// ProblemLooksHung is a run that is stalled.
	ProblemLooksHung = "looks_hung"
	// ProblemGPUFailed is a GPU whose hw.status is failed.
	ProblemGPUFailed = "gpu_failed"
	// ProblemRestartLoop is a run with three or more new attempts within an hour.
	ProblemRestartLoop = "restart_loop"
	// ProblemFailing is a service of which more requests fail than usual.
	ProblemFailing = "failing"
	// ProblemSlow is a run whose steps take longer than usual.
	ProblemSlow = "slow"
	// ProblemHeldIdle is a GPU that is held and does nothing for idle_timeout.
	ProblemHeldIdle = "held_idle"
)
