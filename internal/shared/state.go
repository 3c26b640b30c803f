package shared

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
)

// State is what the components of one collector tell each other: what they have left
// out, and when they last refused data. The extension ml_state has it. The zero value
// is ready to use. It is safe for concurrent use.
type State struct {
	// readers have their owners, and identities those that admit identities, by the ids of
	// their components.
	readers, identities sync.Map
	// refused is the time of the last refusal in nanoseconds since 1970.
	refused atomic.Int64
}

// PublishIdentities lets other components ask which identities of spans are admitted by
// the component with an id, until withdraw is called.
func (s *State) PublishIdentities(id component.ID, of admission.Identities) (withdraw func()) {
	s.identities.Store(id, of)
	return func() { s.identities.Delete(id) }
}

// IdentitiesOf returns what the component with an id has published, or nil. Components
// start one after the other: what is not there in Start can come.
func (s *State) IdentitiesOf(id component.ID) admission.Identities {
	of, _ := s.identities.Load(id)
	found, _ := of.(admission.Identities)
	return found
}

// StateExtension is an extension that has the State of its collector.
type StateExtension interface {
	component.Component
	// State returns the same State at each call, also before Start.
	State() *State
}

// StateOf returns the State of the collector that host belongs to, that of the first
// extension by id if several have one. If none has one, it returns a new State with a
// notice that says so. A component must call it in Start and not earlier.
func StateOf(host component.Host) *State {
	extensions := host.GetExtensions()
	ids := slices.SortedFunc(maps.Keys(extensions), func(a, b component.ID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		if extension, ok := extensions[id].(StateExtension); ok {
			return extension.State()
		}
	}
	alone := new(State)
	alone.PublishNotices("ml_state", func() []Notice {
		return []Notice{{
			Key: "missing", Kind: "state", What: "What other components left out or refused",
			Why: "The extension ml_state is not configured, so the components of this collector share nothing.",
			Fix: "service: {extensions: [ml_state]}",
		}}
	})
	return alone
}

// Refused notes that the collector has refused data that its sender may send again.
// What then does not arrive says nothing about the sender.
func (s *State) Refused(at time.Time) { s.refused.Store(at.UnixNano()) }

// LastRefusal returns when the collector last refused data, the zero time if it never
// has.
func (s *State) LastRefusal() time.Time {
	if at := s.refused.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// PublishNotices lets Notices call read, until withdraw is called. owner is the id
// of the component; its instances may each publish their own. read must be safe for
// concurrent use and must not block. Publishing costs nothing until somebody reads.
func (s *State) PublishNotices(owner string, read func() []Notice) (withdraw func()) {
	s.readers.Store(&read, owner)
	return func() { s.readers.Delete(&read) }
}

// Notices returns the notices of all components by owner, ordered by Key. Of equal
// keys, counts are added up and the earliest Since stays.
func (s *State) Notices() map[string][]Notice {
	merged := make(map[string]map[string]Notice)
	for read, owner := range s.readers.Range {
		for _, notice := range (*read.(*func() []Notice))() {
			byKey := Entry(merged, owner.(string), func() map[string]Notice { return make(map[string]Notice) })
			other := byKey[notice.Key]
			notice.Count += other.Count
			notice.Since = Earlier(notice.Since, other.Since)
			byKey[notice.Key] = notice
		}
	}
	all := make(map[string][]Notice, len(merged))
	for owner, byKey := range merged {
		all[owner] = slices.SortedFunc(maps.Values(byKey), func(a, b Notice) int { return cmp.Compare(a.Key, b.Key) })
	}
	return all
}

// Notice says what a component left out, why, and what changes it.
type Notice struct {
	// Key tells the notices of a component apart.
	Key string
	// Kind groups notices with similar causes, such as limit or content.
	Kind string
	// What was left out, in a few words, and Why in a sentence.
	What, Why string
	// Count is how often, since the component started. 0 means that it cannot be
	// counted.
	Count int64
	// Since is when it began, if it goes on and somebody has to know now. Such
	// notices stand at the top of the page. It is zero for all others.
	Since time.Time
	// Fix is the line of configuration, or the command, that changes it.
	Fix string
}

// Tally counts by reason what a component leaves out. The zero value is ready. It
// is safe for concurrent use. It is meant for what is rare: Add takes a lock.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

// Add adds n to the count of a reason.
func (t *Tally) Add(reason string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mlattr.Put(&t.counts, reason, t.counts[reason]+n)
}

// Notices returns a notice for each counted reason that describe knows, with its
// count and with the reason as its key.
func (t *Tally) Notices(describe func(reason string) (notice Notice, ok bool)) []Notice {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	t.mu.Unlock()
	var all []Notice
	for reason, n := range counts {
		if notice, ok := describe(reason); ok {
			notice.Key, notice.Count = reason, n
			all = append(all, notice)
		}
	}
	return all
}
