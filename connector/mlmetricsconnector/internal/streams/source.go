package streams

import (
	"strings"
	"time"
)

// Resource identifies the program that a stream belongs to.
type Resource struct {
	// Namespace is service.namespace; empty where there is none.
	Namespace string
	// Service is service.name.
	Service string
}

// Run holds the values of series.RunLabels; an empty one is left out.
type Run struct {
	ID, Job, Rank, Host string
}

// Source is whose streams updates change. Many updates share one, so that what
// holds for all of them is found out once. Neither field may be changed after
// an update with it was applied: another source is another value. It is not
// safe for concurrent use.
type Source struct {
	Resource Resource
	Run      Run

	// What follows holds for updates that arrived at settled: silent is what
	// the program sends itself, or nil.
	settled  time.Time
	hash     uint64
	admitted bool
	silent   *Set
}

// identity is whose a stream is.
type identity struct {
	resource Resource
	run      Run
	overflow bool
}

// Clone returns a copy that keeps nothing else alive.
func (r Resource) Clone() Resource {
	return Resource{Namespace: strings.Clone(r.Namespace), Service: strings.Clone(r.Service)}
}

// Clone returns a copy that keeps nothing else alive.
func (r Run) Clone() Run {
	return Run{
		ID: strings.Clone(r.ID), Job: strings.Clone(r.Job),
		Rank: strings.Clone(r.Rank), Host: strings.Clone(r.Host),
	}
}
