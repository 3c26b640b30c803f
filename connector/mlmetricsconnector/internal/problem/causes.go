package problem

import "time"

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
type causes struct {
	follows map[string][]string
	open    map[place][]*Entry
}

// maxAtOne limits the problems of one kind and place that may be causes.
const maxAtOne = 16

// causes returns an index of the open problems.
func (b *Board) causes() causes {
	index := make(map[place][]*Entry)
	for id, entry := range b.open {
		for _, at := range placesOf(id.kind, &entry.Problem) {
			if at.kind != "" && len(index[at]) < maxAtOne {
				index[at] = append(index[at], entry)
			}
		}
	}
	return causes{b.follows, index}
}

// of returns the ID of the problem that one follows from, or "".
func (c causes) of(e *Entry) string {
	for _, kind := range c.follows[e.Kind] {
		for _, at := range placesOf(kind, &e.Problem) {
			if at.kind == "" {
				continue
			}
			var first *Entry
			for _, cause := range c.open[at] {
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
