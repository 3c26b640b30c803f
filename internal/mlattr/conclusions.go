package mlattr

// Values of ml.run.state that a whole run can have.
const (
	// RunUnknown is a run that has taken no step yet.
	RunUnknown = "unknown"
	// RunRunning is a run that takes steps.
	RunRunning = "running"
	// RunStalled is a run that takes no steps and holds GPUs.
	RunStalled = "stalled"
	// RunSilent is a run that takes no steps and holds no GPU that is known, or has not
	// held one for long.
	RunSilent = "silent"
	// RunFailed is a run whose program has ended with an error.
	RunFailed = "failed"
	// RunEnded is a run whose program has come to its end.
	RunEnded = "ended"
)

// RunOver reports whether the program of a run in that state has come to its end.
func RunOver(state string) bool { return state == RunEnded || state == RunFailed }

// Values of ml.window.
const (
	WindowRecent = "recent"
	WindowUsual  = "usual"
)
