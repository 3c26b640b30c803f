package problem

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// causeTolerance is how much later than the problem a cause may begin: GPUs are
// read, and telemetry arrives, at intervals.
const causeTolerance = 10 * time.Minute

// placesOf returns what problems of a kind may have in common with one, the most specific
// first: its run, the GPU of a host, a host, or a program. Such problems are related.
func placesOf(kind string, p *Problem) (places []key) {
	host, gpu := p.Place()
	if p.Subject.Run != "" {
		places = append(places, key{kind, Subject{Run: p.Subject.Run}})
	}
	if gpu != "" {
		places = append(places, key{kind, Subject{Host: host, GPU: gpu}})
	}
	if host != "" {
		places = append(places, key{kind, Subject{Host: host}})
	}
	if p.Subject.Run == "" && p.Subject.Resource.Service != "" {
		places = append(places, key{kind, Subject{Resource: p.Subject.Resource}})
	}
	return places
}

// causes finds open problems by their places.
type causes map[key][]*Entry

// maxAtOne limits the problems of one kind and place that may be causes.
const maxAtOne = 16

// causes returns an index of the open problems.
func (b *Board) causes() causes {
	index := make(causes)
	for id, entry := range b.open {
		for _, at := range placesOf(id.kind, &entry.Problem) {
			if len(index[at]) < maxAtOne {
				index[at] = append(index[at], entry)
			}
		}
	}
	return index
}

// of returns the ID of the problem that one follows from, or "".
func (c causes) of(e *Entry) string {
	of, _ := mlattr.ProblemNamed(e.Kind)
	for _, kind := range of.Follows {
		for _, at := range placesOf(kind, &e.Problem) {
			var first *Entry
			for _, cause := range c[at] {
				if cause.mayCause(e) && (first == nil || inOrder(*cause, *first) < 0) {
					first = cause
				}
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
