package streams

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
	// Identity tells apart those that are shown as one, 0 if there is no more to tell.
	Identity int64

	// The following fields apply to updates that arrived at settled. silent is
	// what the program sends itself.
	settled  time.Time
	hash     uint64
	admitted bool
	silent   Set
}

// Identity is the owner of a stream.
type Identity struct {
	Resource Resource
	Run      Run
	// Overflow reports whether it is of the runs beyond a limit.
	Overflow bool
}

// identity returns the owner of the streams of the source.
func (s *Source) identity() Identity {
	if !s.admitted {
		return Identity{Resource: s.Resource, Overflow: true}
	}
	return Identity{Resource: s.Resource, Run: s.Run}
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

// ValueAt returns the update of a gauge or state of a source.
func ValueAt(source *Source, id series.ID, value float64, now time.Time, labels ...string) Update {
	u := Update{Source: source, Series: id, Value: value, At: now.UnixNano()}
	copy(u.Labels[:], labels)
	return u
}

// Batch collects what one emission concludes about a source. Its Source must not change
// after the first update.
type Batch struct {
	Source  Source
	Now     time.Time
	Updates []Update
}

// Value adds the value of a series.
func (b *Batch) Value(id series.ID, value float64, labels ...string) {
	b.Updates = append(b.Updates, ValueAt(&b.Source, id, value, b.Now, labels...))
}

// Time adds a time, in seconds since 1970.
func (b *Batch) Time(id series.ID, at time.Time, labels ...string) {
	b.Value(id, float64(at.UnixNano())/1e9, labels...)
}

// Choose adds 1 for the current value of a label, and 0 for another.
func (b *Batch) Choose(id series.ID, label string, is bool) {
	b.Value(id, shared.OneIf[float64](is), label)
}

// maxSilences limits the programs that are remembered.
const maxSilences = 8192

// Set is a set of series.
type Set [series.Count]bool

// Silences records which series programs send themselves, so that the connector
// does not write them. It is safe for concurrent use.
type Silences struct {
	mu sync.RWMutex
	// heard is when each program has last sent each series, zero if it does not.
	heard map[Resource]*[series.Count]time.Time
}

// Note records that a program sent a series at now.
func (s *Silences) Note(of Resource, id series.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := shared.Bounded(&s.heard, of, maxSilences, Resource.Clone); known != nil {
		known[id] = now
	}
}

// of returns the series that a program sends itself.
func (s *Silences) of(resource Resource) (sends Set) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known := s.heard[resource]; known != nil {
		for id := range known {
			sends[id] = !known[id].IsZero()
		}
	}
	return sends
}

// all returns the series that each program sends itself. It removes programs
// that have sent none for longer than expiration; 0 removes none.
func (s *Silences) all(expiration time.Duration, now time.Time) map[Resource]Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[Resource]Set)
	for resource, known := range s.heard {
		var sends Set
		for id, at := range known {
			if sends[id] = !at.IsZero() && (expiration <= 0 || now.Sub(at) <= expiration); !sends[id] {
				known[id] = time.Time{}
			}
		}
		if sends == (Set{}) {
			delete(s.heard, resource)
			continue
		}
		all[resource] = sends
	}
	return all
}
