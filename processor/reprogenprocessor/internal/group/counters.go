// Package group decides which failures are the same defect, counts them, selects
// those that get an artifact, and keeps the groups' summaries on disk.
package group

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// Config bounds Counters.
type Config struct {
	// PerMinute is the number of artifacts a minute in the long run, and Burst
	// the number at once after a quiet time.
	PerMinute, Burst int
	// MaxGroups is the number of groups in memory. Those that have a folder stay, however
	// many there are.
	MaxGroups int
	// Capture reports whether texts of any form may be kept.
	Capture bool
}

// Verdict is what becomes of a failure.
type Verdict int

const (
	// Repeated means that another span of the trace brought the same failure.
	Repeated Verdict = iota
	// Consequence means that the failure follows from one further down in the
	// trace. It is not counted.
	Consequence
	// Counted means that the group has all its exemplars, or one of the same
	// variant.
	Counted
	// RateLimited means that the rate limit is used up.
	RateLimited
	// Wanted means that an artifact should be written.
	Wanted
)

// Decision is what Counters decides about a failure.
type Decision struct {
	Verdict Verdict
	// Fingerprint is the failure's group; for Repeated, the group of the
	// span that came first.
	Fingerprint string
	// HasFolder reports whether the group has an artifact or one on its way.
	HasFolder bool
	// Incident is the id of the incident that the failure belongs to.
	Incident uint64
}

// Counters counts failures by group and decides which of them get an artifact.
// It is safe for concurrent use; its lock is held for a few map operations.
type Counters struct {
	cfg     Config
	mu      sync.Mutex
	groups  map[string]*entry
	room    int // how many groups may be added until others make room
	seen    *lastused.Map[uint64, seenFailure]
	budget  *share.Budget
	hash    maphash.Seed
	history *share.History
	redact  func(string) string
}

// entry is a group in memory.
type entry struct {
	store.Group
	// origin is the last sender, but one that is established stays.
	origin share.Origin
	// pending has the variants of the failures that are on their way to the
	// disk.
	pending []string
	// changed reports whether the summary on disk is old.
	changed bool
}

// NewCounters returns Counters without groups.
func NewCounters(cfg Config, history *share.History) *Counters {
	return &Counters{
		cfg: cfg, hash: maphash.MakeSeed(), redact: redact.Text, groups: make(map[string]*entry), room: cfg.MaxGroups,
		budget: share.NewBudget(cfg.Burst, float64(cfg.PerMinute)), history: history,
		seen: lastused.NewMap[uint64, seenFailure](maxSeen),
	}
}

// Load takes the groups that the directory has at start.
func (c *Counters) Load(groups []store.Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range groups {
		c.groups[g.Fingerprint] = &entry{Group: g, origin: g.Origin()}
	}
	c.room -= len(groups)
}

// Len returns the number of groups in memory.
func (c *Counters) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.groups)
}

// Admit counts a failure and decides what becomes of it, and of its incident. consequence
// reports whether a span below it failed before, waits whether an incident is not written yet.
func (c *Counters) Admit(n *incident.Incident, consequence bool, waits func(incident uint64) bool, now time.Time) Decision {
	f, keys := n.Failure, c.keysOf(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Parent != n.Span {
		c.noteParent(n.Parent, n.OfRequest())
	}
	// Where the first artifact is written, a span that can be replayed is worth another one.
	switch first, again := c.first(keys); {
	case again && (f.Call == nil || first.hasCall || waits(first.incident)):
		g, known := c.groups[first.fingerprint]
		return Decision{Verdict: Repeated, Fingerprint: first.fingerprint, HasFolder: known && g.hasFolder(), Incident: first.incident}
	case !again && consequence:
		return Decision{Verdict: Consequence}
	}
	for _, key := range keys {
		c.seen.Put(key, seenFailure{fingerprint: f.Fingerprint, incident: n.ID, hasCall: f.Call != nil})
	}
	claim := c.history.Claim(f.SentBy)
	g := c.group(f.Fingerprint, now)
	g.sentBy(f.SentBy, claim.Path)
	g.Count++
	g.LastSeen = now
	c.seenIn(g, f)
	variant := g.Variant(f.Variant.ID, f.Variant.Text)
	if variant != nil {
		variant.Count++
	}
	g.changed = true
	d := Decision{Verdict: Counted, Fingerprint: f.Fingerprint, HasFolder: g.hasFolder(), Incident: n.ID}
	if variant == nil || variant.Exemplar != "" ||
		len(g.Exemplars)+len(g.pending) >= store.MaxExemplars || slices.Contains(g.pending, f.Variant.ID) {
		return d
	}
	if !c.budget.Take(claim, !d.HasFolder, now) {
		g.Suppressed++
		d.Verdict = RateLimited
		return d
	}
	g.pending = append(g.pending, f.Variant.ID)
	d.Verdict = Wanted
	return d
}

// seenIn notes where a failure was seen.
func (c *Counters) seenIn(g *entry, f *failure.Failure) {
	service, version, rank := f.Service, f.Version, f.Rank
	if !c.cfg.Capture {
		service, version, rank = redact.Word(service), redact.Word(version), redact.Word(rank)
	}
	g.SeenIn(service, version, rank)
}

// group returns a group that may be new.
func (c *Counters) group(fingerprint string, now time.Time) *entry {
	return shared.Entry(c.groups, fingerprint, func() *entry {
		if c.room <= 0 {
			c.makeRoom()
		}
		c.room--
		return &entry{Group: store.Group{Fingerprint: fingerprint, FirstSeen: now}}
	})
}

// sentBy notes the sender of a failure. A sender that uses the name of an
// established service does not replace it.
func (e *entry) sentBy(o share.Origin, path share.Path) {
	established := path == share.EstablishedPath(o)
	if established || !e.Established {
		e.origin, e.Established = o, established
	}
}

// makeRoom gives up groups without a folder, so that there is room for a sixteenth. A
// service that was established before the collector started stays so. The caller holds mu.
func (c *Counters) makeRoom() {
	groups := slices.DeleteFunc(slices.Collect(maps.Values(c.groups)), (*entry).hasFolder)
	slices.SortFunc(groups, func(a, b *entry) int { return b.LastSeen.Compare(a.LastSeen) })
	room, folders := max(1, c.cfg.MaxGroups/16), len(c.groups)-len(groups)
	_, leave := share.Divide(groups, int64(max(0, c.cfg.MaxGroups-room-folders)), func(g *entry) share.Item {
		if g.Established {
			return share.Item{Path: share.EstablishedPath(g.origin), Weight: 1}
		}
		return share.Item{Path: c.history.Path(g.origin), Weight: 1}
	})
	for _, g := range leave {
		delete(c.groups, g.Fingerprint)
	}
	c.room = max(room, c.cfg.MaxGroups-len(c.groups))
}

// hasFolder reports whether the group has an artifact or will have one, as far
// as is known: the disk may still refuse it.
func (e *entry) hasFolder() bool { return len(e.Exemplars)+len(e.pending) > 0 }

// settle ends the pending state of a failure.
func (c *Counters) settle(f *failure.Failure) *entry {
	g := c.group(f.Fingerprint, f.SeenAt)
	g.pending = slices.DeleteFunc(g.pending, func(id string) bool { return id == f.Variant.ID })
	return g
}

// Suppressed notes that a Wanted failure got no artifact.
func (c *Counters) Suppressed(f *failure.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.settle(f)
	g.Suppressed++
	g.changed = true
}

// Withdrawn notes that a Wanted failure needs no artifact: it was on disk
// before, or another one has everything that is known of it.
func (c *Counters) Withdrawn(f *failure.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(f)
}

// Written notes an artifact and returns the group's summary.
func (c *Counters) Written(f *failure.Failure, name string) store.Group {
	// The names of services and errors come from telemetry, and what is
	// written is redacted.
	message := redact.Text(attr.Cut(f.Error.Message, 1024))
	errorType := cmp.Or(redact.Text(f.Error.Type), mlattr.Other)
	c.mu.Lock()
	g := c.settle(f)
	g.Kind, g.Type, g.Message = string(f.Kind), errorType, message
	g.Exemplars = append(g.Exemplars, name)
	if v := g.Variant(f.Variant.ID, f.Variant.Text); v != nil {
		v.Exemplar = name
	}
	g.changed = false
	summary := g.Copy()
	c.mu.Unlock()
	c.clean(&summary)
	return summary
}

// Removed notes that retention took an artifact.
func (c *Counters) Removed(fingerprint, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g, ok := c.groups[fingerprint]; ok {
		g.Forget(name)
		g.changed = true
	}
}

// Path returns an origin's share of what is kept.
func (c *Counters) Path(o share.Origin) share.Path { return c.history.Path(o) }

// Changed asks for a group to be written again.
func (c *Counters) Changed(fingerprint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g, ok := c.groups[fingerprint]; ok {
		g.changed = true
	}
}

// TakeChanged returns the summaries that must be written.
func (c *Counters) TakeChanged() []store.Group {
	c.mu.Lock()
	var groups []store.Group
	for _, g := range c.groups {
		if g.changed && len(g.Exemplars) > 0 {
			groups = append(groups, g.Copy())
			g.changed = false
		}
	}
	c.mu.Unlock()
	for i := range groups {
		c.clean(&groups[i])
	}
	return groups
}

// clean redacts the texts of a copy. Redaction takes long, so nothing is locked
// meanwhile that failures wait for.
func (c *Counters) clean(g *store.Group) {
	for _, list := range [...][]string{g.Services, g.Versions, g.Ranks} {
		for i, text := range list {
			list[i] = c.redact(text)
		}
	}
	for i := range g.Variants {
		g.Variants[i].Text = c.redact(g.Variants[i].Text)
	}
}
