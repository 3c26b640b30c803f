package streams

import (
	"cmp"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Resource identifies the program of a stream.
type Resource struct {
	// Namespace is service.namespace, or "".
	Namespace string
	// Service is service.name.
	Service string
}

// Run holds the values of series.RunLabels; empty ones are omitted.
type Run struct {
	ID, Job, Rank, Host string
}

// Source is the origin of updates. Many updates share one, so that their limits
// are checked once. Its fields must not change after an update with it was
// applied: use another Source. It is not safe for concurrent use.
type Source struct {
	Resource Resource
	Run      Run
	// Origin has sent the updates. It is zero for those that the connector concludes.
	Origin share.Origin

	// The following fields apply to updates that arrived at settled. silent is
	// what the program sends itself, or nil.
	settled  time.Time
	hash     uint64
	admitted bool
	silent   *Set
}

// identity is the owner of a stream.
type identity struct {
	resource Resource
	run      Run
	overflow bool
}

// Compare orders programs by namespace and name.
func (r Resource) Compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Service, other.Service))
}

// Clone returns a copy that shares no memory.
func (r Resource) Clone() Resource {
	return Resource{Namespace: strings.Clone(r.Namespace), Service: strings.Clone(r.Service)}
}

// Clone returns a copy that shares no memory.
func (r Run) Clone() Run {
	return Run{
		ID: strings.Clone(r.ID), Job: strings.Clone(r.Job),
		Rank: strings.Clone(r.Rank), Host: strings.Clone(r.Host),
	}
}
