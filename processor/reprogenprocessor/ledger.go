package reprogenprocessor

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"golang.org/x/time/rate"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// The bounds of the ledger. The least recently seen entry makes room.
const (
	maxGroups   = 10_000
	maxSeen     = 10_000
	maxServices = 1_000
)

// occurrence is what the ledger needs to know about a failure.
type occurrence struct {
	fingerprint string
	service     string
	trace       pcommon.TraceID
	errorType   string
	message     string
	hasCall     bool
}

// verdict is what the ledger says about an occurrence.
type verdict int

const (
	// verdictRepeated means that another span of the trace told of it.
	verdictRepeated verdict = iota
	// verdictCounted means that its group has all its exemplars.
	verdictCounted
	// verdictLimited means that the rate limit is used up.
	verdictLimited
	// verdictWanted means that an artefact should be written.
	verdictWanted
)

// ruling is what the ledger decides about an occurrence.
type ruling struct {
	verdict verdict
	// fingerprint is the group that the occurrence belongs to: where another
	// span of the trace told of it, that span's group.
	fingerprint string
	// folder says that the group has an artefact, or that one is on its way.
	folder bool
}

// ledger counts failures by group and decides which of them get an artefact.
// It is safe for concurrent use; its lock is held for a few map operations.
type ledger struct {
	mu       sync.Mutex
	groups   *simplelru.LRU[string, *entry]
	seen     *simplelru.LRU[seenKey, told]
	services *simplelru.LRU[string, *rate.Limiter]
	all      *rate.Limiter
	limit    RateLimitConfig
	hash     maphash.Seed
	dirty    map[string]*entry // groups with a folder, to be written
}

// entry is a group in memory.
type entry struct {
	store.Group
	// pending counts the failures that are on their way to the disk.
	pending int
	// merged says that what the directory knew is in the counts.
	merged bool
}

// seenKey is a failure of a trace, whichever span told of it.
type seenKey struct {
	trace pcommon.TraceID
	what  uint64
}

// told is what was made of a failure when a span first told of it.
type told struct {
	fingerprint string
	hasCall     bool
}

func newLedger(limit RateLimitConfig) (*ledger, error) {
	l := &ledger{limit: limit, hash: maphash.MakeSeed(), dirty: make(map[string]*entry)}
	l.all = limiter(float64(limit.PerMinute), limit.Burst)
	var err error
	if l.groups, err = simplelru.NewLRU[string, *entry](maxGroups, nil); err != nil {
		return nil, err
	}
	if l.seen, err = simplelru.NewLRU[seenKey, told](maxSeen, nil); err != nil {
		return nil, err
	}
	l.services, err = simplelru.NewLRU[string, *rate.Limiter](maxServices, nil)
	return l, err
}

func limiter(perMinute float64, burst int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perMinute/60), burst)
}

// load takes over what the directory knew at start.
func (l *ledger) load(groups []store.Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range groups {
		l.groups.Add(g.Fingerprint, &entry{Group: g, merged: true})
	}
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.groups.Len()
}

// admit counts an occurrence and decides what becomes of it.
func (l *ledger) admit(o occurrence, now time.Time) ruling {
	key := seenKey{trace: o.trace, what: maphash.Comparable(l.hash, [2]string{o.errorType, o.message})}
	l.mu.Lock()
	defer l.mu.Unlock()
	// One trace tells of an error once, but a span that can be replayed is
	// better than the one that came first and cannot.
	if first, ok := l.seen.Get(key); ok && (first.hasCall || !o.hasCall) {
		g, known := l.groups.Peek(first.fingerprint)
		return ruling{verdictRepeated, first.fingerprint, known && g.hasFolder()}
	}
	l.seen.Add(key, told{fingerprint: o.fingerprint, hasCall: o.hasCall})

	g, ok := l.groups.Get(o.fingerprint)
	if !ok {
		// It may have left the cache with counts that are not on disk yet.
		if g, ok = l.dirty[o.fingerprint]; ok {
			l.groups.Add(o.fingerprint, g)
		}
	}
	if !ok {
		g = &entry{Group: store.Group{Fingerprint: o.fingerprint, FirstSeen: now}}
		l.groups.Add(o.fingerprint, g)
	}
	g.Count++
	g.LastSeen = now
	g.AddService(o.service)
	l.changed(g)
	folder := g.hasFolder()
	if len(g.Exemplars)+g.pending >= store.MaxExemplars {
		return ruling{verdictCounted, o.fingerprint, folder}
	}
	if !l.allow(o.service, !folder, now) {
		g.Suppressed++
		return ruling{verdictLimited, o.fingerprint, folder}
	}
	g.pending++
	return ruling{verdictWanted, o.fingerprint, folder}
}

// hasFolder reports whether the group has an artefact or will have one, as
// far as the ledger can know: the disk may still refuse it.
func (e *entry) hasFolder() bool { return len(e.Exemplars)+e.pending > 0 }

// allow takes one from the service's share and from what belongs to all, or
// from neither. A group's first artefact may use up both; a further one must
// leave half, so that a rare failure finds something left when a frequent one
// has just had its three.
func (l *ledger) allow(service string, first bool, now time.Time) bool {
	own, ok := l.services.Get(service)
	if !ok {
		own = limiter(float64(l.limit.PerMinute)/2, max(1, l.limit.Burst/2))
		l.services.Add(service, own)
	}
	for _, share := range [...]*rate.Limiter{own, l.all} {
		keep := 0.0
		if !first {
			keep = float64(share.Burst()) / 2
		}
		if share.TokensAt(now) < 1+keep {
			return false
		}
	}
	return own.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// changed notes that a group's summary on disk is old. A group stays noted
// when it leaves the cache, so that its counts are not lost; there are at most
// as many as there are folders.
func (l *ledger) changed(g *entry) {
	if len(g.Exemplars) > 0 {
		l.dirty[g.Fingerprint] = g
	}
}

// settle ends the pending state of a failure. The group may have left the
// cache meanwhile.
func (l *ledger) settle(fingerprint string) *entry {
	g, ok := l.groups.Get(fingerprint)
	if !ok {
		return nil
	}
	g.pending = max(0, g.pending-1)
	return g
}

// gaveUp notes that an admitted failure got no artefact.
func (l *ledger) gaveUp(fingerprint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.settle(fingerprint); g != nil {
		g.Suppressed++
		l.changed(g)
	}
}

// repeated notes that an admitted failure was on disk before.
func (l *ledger) repeated(fingerprint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(fingerprint)
}

// wrote notes an artefact and returns the group's summary. old is what the
// directory knew; it counts once.
func (l *ledger) wrote(f *failure.Failure, name string, old store.Group) store.Group {
	// The names of services and errors come from telemetry, and what is
	// written is redacted.
	message := redact.Text(cut(f.Error.Message, 1024))
	errorType := cmp.Or(redact.Text(f.Error.Type), otherError)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.settle(f.Fingerprint)
	if g == nil {
		g = &entry{Group: store.Group{Fingerprint: f.Fingerprint, Count: 1, FirstSeen: f.SeenAt, LastSeen: f.SeenAt}}
		g.AddService(f.Service)
		l.groups.Add(f.Fingerprint, g)
	}
	if !g.merged {
		g.Merge(old)
		g.merged = true
		g.Exemplars = slices.DeleteFunc(old.Exemplars, func(e string) bool { return e == name })
	}
	g.Kind, g.Type, g.Message = string(f.Kind), errorType, message
	g.Exemplars = append(g.Exemplars, name)
	delete(l.dirty, f.Fingerprint)
	return summary(g)
}

// removed notes that retention took an artefact.
func (l *ledger) removed(fingerprint, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.groups.Get(fingerprint)
	if !ok {
		return
	}
	g.Exemplars = slices.DeleteFunc(g.Exemplars, func(e string) bool { return e == name })
	if len(g.Exemplars) == 0 {
		delete(l.dirty, fingerprint)
	} else {
		l.dirty[fingerprint] = g
	}
}

// markDirty asks for a group to be written again.
func (l *ledger) markDirty(fingerprint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.groups.Peek(fingerprint); ok {
		l.changed(g)
	}
}

// takeDirty returns the summaries that must be written.
func (l *ledger) takeDirty() []store.Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]store.Group, 0, len(l.dirty))
	for _, g := range l.dirty {
		out = append(out, summary(g))
	}
	clear(l.dirty)
	return out
}

// summary copies a group as it is written.
func summary(g *entry) store.Group {
	out := g.Group
	out.Services = make([]string, len(g.Services))
	for i, s := range g.Services {
		out.Services[i] = redact.Text(s)
	}
	out.Exemplars = slices.Clone(g.Exemplars)
	return out
}
