package training

import "time"

// State is what goes on of a process when its collector starts again.
type State struct {
	// Format is the name of the newest format, "" if no line was one of training. Attempt
	// counts restarts.
	Format  string `json:"format"`
	Attempt uint64 `json:"attempt,omitempty"`
	// Step is the number of the newest step, 0 if unknown, and Interval the number of steps
	// of the newest line. In formats that number the steps of an epoch, Base is the number
	// of steps before the epoch and InEpoch the newest number within it.
	Step     int64   `json:"step,omitempty"`
	Interval int64   `json:"interval,omitempty"`
	Base     int64   `json:"base,omitempty"`
	InEpoch  int64   `json:"in_epoch,omitempty"`
	Epoch    float64 `json:"epoch,omitempty"`
	// Total is that of the bars of the training, 0 if unknown.
	Total float64 `json:"total,omitempty"`
	// Elapsed is the time that the program states for the newest step, nil if none. What it
	// points to never changes.
	Elapsed *float64 `json:"elapsed,omitempty"`
	// Began is when the training began, as far as the lines say. End is the end of the
	// newest step, and From when the next one may have begun.
	Began time.Time `json:"began,omitzero"`
	From  time.Time `json:"from,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Ended bool      `json:"ended,omitempty"`
}
