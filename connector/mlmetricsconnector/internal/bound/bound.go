// Package bound decides what limits the speed of a training run, and on what the
// time of a call or request is spent.
package bound

// Bound is what limits a run.
type Bound string

// The values of Bound, in the order of precedence.
const (
	// Checkpoint: saving and restoring take more than a fifth of the time.
	Checkpoint Bound = "checkpoint"
	// Input: loading data takes more than a fifth of the time.
	Input Bound = "input"
	// GPU: the utilization of the GPUs is above 0.7.
	GPU Bound = "gpu"
	// Launch: the program works more than half of the time, and the utilization
	// of the GPUs is below 0.4: they wait for kernel launches or other ranks.
	Launch Bound = "launch"
	// Unknown: none of these applies.
	Unknown Bound = "unknown"
)

// All has all values.
var All = [...]Bound{Checkpoint, Input, GPU, Launch, Unknown}

const (
	muchTime = 0.2
	mostTime = 0.5
	highUse  = 0.7
	lowUse   = 0.4
)

// Evidence is what is known of a run.
type Evidence struct {
	// Checkpoint, DataLoad and Productive are fractions of the run's time.
	Checkpoint, DataLoad, Productive float64
	// Utilization is that of the run's GPUs, 0 to 1, or negative if it is
	// unknown.
	Utilization float64
}

// Of returns what limits the run.
func Of(e Evidence) Bound {
	switch {
	case e.Checkpoint > muchTime:
		return Checkpoint
	case e.DataLoad > muchTime:
		return Input
	case e.Utilization > highUse:
		return GPU
	case e.Utilization >= 0 && e.Utilization < lowUse && e.Productive > mostTime:
		return Launch
	default:
		return Unknown
	}
}
