// Package problem keeps the problems that detectors find: from when to when each
// lasts, and which ones follow from others. It does not use pdata.
package problem

import (
	"cmp"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Problem is what a detector found at one emission. A detector reports it at each
// emission as long as it lasts.
type Problem struct {
	// Kind is the name of a kind in mlattr.Problems.
	Kind    string
	Subject Subject
	// Onset is when it began. The first one that was reported counts.
	Onset time.Time
	// Evident is when the newest data that shows it arrived; zero means now. Interval
	// is the usual time between two such data, 0 if unknown.
	Evident  time.Time
	Interval time.Duration

	Measure
	// Rank, Host and GPU are where the problem is, if that is not its subject.
	Rank, Host, GPU string
	// PID is the process to look at, GPUIndex the driver's index of its GPU or of that which
	// has the problem, and Recovery the mlattr.GPURecoveryAction; 0 and "" if unknown.
	PID      int64
	GPUIndex string
	Recovery int
	Failure
	// Held are the GPUs concerned, at most MaxHeld. Holder is the workload that holds them,
	// HolderRun its run if that is not the subject's.
	Held      []gpus.Key
	Holder    gpus.Owner
	HolderRun string
	// Evidence has short phrases, Excluded what was taken out before the
	// comparison.
	Evidence, Excluded []string
	// GPUs are those that the problem keeps from work, 0 if none is known.
	GPUs float64
	// Next says what to do next.
	Next string
}

// Measure is what was observed.
type Measure struct {
	// Value is what was observed and Usual what it was before, both in Unit, a
	// UCUM unit; NaN means unknown.
	Value, Usual float64
	Unit         string
	// Window is the time that Value covers and Count the number of observations in
	// it; 0 means unknown.
	Window time.Duration
	Count  int64
	// Telemetry is the fraction of the expected telemetry that arrived; NaN means
	// unknown.
	Telemetry float64
}

// Failure is the error that is the problem, empty if it is none.
type Failure struct{ Class, Message string }

// MaxHeld limits Problem.Held.
const MaxHeld = 64

// Place returns the host and the GPU of the problem, or "".
func (p *Problem) Place() (host, gpu string) {
	return cmp.Or(p.Subject.Host, p.Host), cmp.Or(p.Subject.GPU, p.GPU)
}

// Subject is what a problem is a problem of.
type Subject = change.Subject

// Entry is a problem with what the Board knows of it.
type Entry struct {
	// Problem is as it was last reported, with its first onset and holder.
	Problem
	// ID identifies the problem from its beginning to its end.
	ID       string
	Severity mlattr.Severity
	// Detected is when it was first reported, Ended when it was not reported any
	// more, or last reported if it had to be gone for a while, zero while it lasts.
	// EndReason is why it has ended, a value of mlattr.ProblemEndReason.
	Detected, Ended time.Time
	EndReason       string
	// Stale reports whether it lasts without new evidence, Updated whether it lasts and its
	// evidence has changed.
	Stale, Updated bool
	// Before has the changes before the onset, the newest first.
	Before []change.Change
	// Cause is the ID of the problem that this one follows from, or "".
	Cause string

	// Found is when the problem was last reported.
	Found time.Time

	// Restored reports whether it began before a restart, and no detector has reported
	// it since.
	Restored bool

	// back reports whether it began soon after the end of the same problem.
	back bool

	// said is what was last said of it, and when.
	said saying
}

// GPUHours returns the hours of GPUs that the problem has taken until now, or until
// it ended. Those without evidence do not count.
func (e *Entry) GPUHours(now time.Time) float64 {
	switch {
	case e.Stale || !e.Ended.IsZero() && e.EndReason == mlattr.ProblemNoEvidence:
		now = e.Evident
	case !e.Ended.IsZero():
		now = e.Ended
	}
	return max(e.GPUs*now.Sub(e.Onset).Hours(), 0)
}

// Sentence says what the problem is and of what, and since when or for how long.
func (e *Entry) Sentence() string {
	kind, _ := mlattr.ProblemNamed(e.Kind)
	onset, evident := e.Onset.UTC().Format(time.RFC3339), e.Evident.UTC().Format(time.RFC3339)
	text := e.subject() + ": " + kind.Title
	switch {
	case kind.Moment:
		text += " at " + onset
	case e.Stale:
		text += " since " + onset + ", without new evidence since " + evident
	case e.Ended.IsZero():
		text += " since " + onset
	case e.EndReason == mlattr.ProblemNoEvidence:
		text += " is not known any more, without new evidence since " + evident
	default:
		text += " no longer, after " + e.Ended.Sub(e.Onset).Round(time.Second).String()
	}
	return text + "."
}

// subject names what has the problem.
func (e *Entry) subject() string {
	s := e.Subject
	var parts []string
	for _, part := range [...]struct{ of, name string }{{"GPU ", s.GPU}, {"host ", s.Host}, {"run ", s.Run}, {"service ", s.Resource.Service}} {
		if part.name != "" {
			parts = append(parts, part.of+part.name)
		}
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		return "The fleet"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
