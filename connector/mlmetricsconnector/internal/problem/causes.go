package problem

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// causesOf has the kinds that a kind follows from, the most likely first. No kind
// follows from itself, not even over others.
var causesOf = map[string][]string{
	mlattr.ProblemRankMissing:    {mlattr.ProblemGPUFailed, mlattr.ProblemHostSilent, mlattr.ProblemRunFailed},
	mlattr.ProblemRunSilent:      {mlattr.ProblemHostSilent},
	mlattr.ProblemLooksHung:      {mlattr.ProblemGPUFailed, mlattr.ProblemHostSilent, mlattr.ProblemRunFailed, mlattr.ProblemRankMissing},
	mlattr.ProblemRestartLoop:    {mlattr.ProblemGPUFailed, mlattr.ProblemRunFailed, mlattr.ProblemNonfinite},
	mlattr.ProblemRunFailed:      {mlattr.ProblemGPUFailed, mlattr.ProblemNonfinite},
	mlattr.ProblemNonfinite:      {mlattr.ProblemLossDiverged},
	mlattr.ProblemSlow:           {mlattr.ProblemThrottled, mlattr.ProblemSlowHost},
	mlattr.ProblemThroughputDrop: {mlattr.ProblemSlowRequests, mlattr.ProblemFailing, mlattr.ProblemThrottled},
	mlattr.ProblemCheckpoint:     {mlattr.ProblemLooksHung, mlattr.ProblemRestartLoop, mlattr.ProblemSlow},
	mlattr.ProblemHeldIdle:       {mlattr.ProblemGPUFailed, mlattr.ProblemLooksHung},
	mlattr.ProblemFailing:        {mlattr.ProblemToolErrors},
	mlattr.ProblemRetryStorm:     {mlattr.ProblemFailing, mlattr.ProblemSlowRequests},
	mlattr.ProblemCostly:         {mlattr.ProblemRetryStorm, mlattr.ProblemLooping, mlattr.ProblemCacheCollapsed},
	mlattr.ProblemSlowRequests:   {mlattr.ProblemCacheCollapsed},
}

// causeTolerance is how much later than the problem a cause may begin: GPUs are
// read, and telemetry arrives, at intervals.
const causeTolerance = 10 * time.Minute

// place is something that problems of one kind have in common: a run, a GPU of a
// host, a host, or a program.
type place struct {
	kind string
	of   Subject
}

// placesOf returns the places of a problem. Problems of different kinds with a
// place in common are related.
func placesOf(kind string, p *Problem) (places [4]place) {
	host, gpu := p.Place()
	if p.Subject.Run != "" {
		places[0] = place{kind, Subject{Run: p.Subject.Run}}
	} else if p.Subject.Resource.Service != "" {
		places[3] = place{kind, Subject{Resource: p.Subject.Resource}}
	}
	if gpu != "" {
		places[1] = place{kind, Subject{Host: host, GPU: gpu}}
	}
	if host != "" {
		places[2] = place{kind, Subject{Host: host}}
	}
	return places
}

// causes finds open problems by their places.
type causes map[place][]*Entry

// maxAtOne limits the problems of one kind and place that may be causes.
const maxAtOne = 16

// causes returns an index of the open problems.
func (b *Board) causes() causes {
	index := make(causes)
	for id, entry := range b.open {
		for _, at := range placesOf(id.kind, &entry.Problem) {
			if at.kind != "" && len(index[at]) < maxAtOne {
				index[at] = append(index[at], entry)
			}
		}
	}
	return index
}

// of returns the ID of the problem that one follows from, or "".
func (c causes) of(e *Entry) string {
	for _, kind := range causesOf[e.Kind] {
		for _, at := range placesOf(kind, &e.Problem) {
			if at.kind == "" {
				continue
			}
			var first *Entry
			for _, cause := range c[at] {
				if !cause.mayCause(e) || first != nil && inOrder(*first, *cause) < 0 {
					continue
				}
				first = cause
			}
			if first != nil {
				return first.ID
			}
		}
	}
	return ""
}

// mayCause reports whether a problem with a place in common is of the same run,
// if both are of one, and began early enough.
func (e *Entry) mayCause(other *Entry) bool {
	a, b := e.Subject.Run, other.Subject.Run
	return (a == "" || b == "" || a == b) && !e.Onset.After(other.Onset.Add(causeTolerance))
}
