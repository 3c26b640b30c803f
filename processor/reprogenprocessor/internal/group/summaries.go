package group

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// Disk is where summaries and artifacts are kept. It is safe for concurrent use.
type Disk interface {
	ReadGroup(fingerprint string) (store.Group, bool)
	WriteGroup(store.Group) error
	WriteCounts([]store.Group) error
	Enforce(now time.Time, path func(share.Origin) share.Path) ([]store.Removed, error)
}

// Summaries keeps the groups on disk as Counters has them.
type Summaries struct {
	Counters *Counters
	Disk     Disk
	// Warn is called with what could not be written.
	Warn func(message string, err error)

	// mu is held from the making of a group's summary until it is on disk, so
	// that of two writers none leaves the older one there.
	mu sync.Mutex
}

// Written adds an artifact to its group's summary.
func (s *Summaries) Written(f *failure.Failure, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.Disk.ReadGroup(f.Fingerprint)
	s.write(s.Counters.Written(f, name, old))
}

func (s *Summaries) write(g store.Group) {
	if err := s.Disk.WriteGroup(g); err != nil {
		s.Counters.markDirty(g.Fingerprint)
		s.Warn("The summary of a group could not be written", err)
	}
}

// Flush writes the summaries that changed, and the counts of the groups without
// an artifact, which have no folder.
func (s *Summaries) Flush() {
	s.flushGroups()
	groups, changed := s.Counters.takeCounts()
	if !changed {
		return
	}
	if err := s.Disk.WriteCounts(groups); err != nil {
		s.Counters.markCounts()
		s.Warn("The counts of failures without an artifact could not be written", err)
	}
}

func (s *Summaries) flushGroups() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.Counters.takeDirty() {
		s.write(g)
	}
}

// Enforce removes the artifacts that exceed the retention limits, and returns
// their number.
func (s *Summaries) Enforce(now time.Time) int {
	removed, err := s.Disk.Enforce(now, s.Counters.history.Path)
	if err != nil {
		s.Warn("An artifact could not be removed", err)
	}
	for _, a := range removed {
		s.Counters.Removed(a.Fingerprint, a.Name)
	}
	return len(removed)
}

// markDirty asks for a group to be written again.
func (c *Counters) markDirty(fingerprint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g, ok := c.groups.Peek(fingerprint); ok {
		c.changed(g)
	}
}

// takeDirty returns the summaries that must be written.
func (c *Counters) takeDirty() []store.Group {
	c.mu.Lock()
	drafts := make([]draft, 0, len(c.dirty))
	for _, g := range c.dirty {
		drafts = append(drafts, draftOf(g))
	}
	clear(c.dirty)
	c.mu.Unlock()
	return c.summaries(drafts)
}

// takeCounts returns the groups without a folder that there is room for, those
// seen last first, if there is something to be written.
func (c *Counters) takeCounts() ([]store.Group, bool) {
	drafts, changed := c.draftCounts()
	return c.summaries(drafts), changed
}

func (c *Counters) draftCounts() (drafts []draft, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.countsChanged {
		return nil, false
	}
	c.countsChanged = false
	groups := c.newestFirst(func(g *entry) bool { return len(g.Exemplars) == 0 && g.Count > 0 })
	for i, kept := range c.keep(groups, store.MaxCounted) {
		if kept {
			d := draftOf(groups[i])
			d.Path = c.path(groups[i])
			drafts = append(drafts, d)
		}
	}
	return drafts, true
}

// markCounts asks for the groups without a folder to be written again.
func (c *Counters) markCounts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countsChanged = true
}

// draft is a copy of a group that is not redacted yet.
type draft struct {
	store.Group
	of    *entry
	clean map[string]string
}

func draftOf(g *entry) draft {
	d := draft{Group: g.Group, of: g, clean: g.clean} // texts are only added to the lists
	d.Variants, d.Exemplars = append([]store.Variant{}, g.Variants...), append([]string{}, g.Exemplars...)
	return d
}

// summaries redacts drafts. Redaction takes long, so nothing is locked meanwhile
// that failures wait for; and each text is redacted once.
func (c *Counters) summaries(drafts []draft) []store.Group {
	out := make([]store.Group, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		clean := make(map[string]string)
		redacted := func(list []string) []string {
			out := make([]string, len(list))
			for i, text := range list {
				known, ok := d.clean[text]
				if !ok {
					known = c.redact(text)
				}
				clean[text], out[i] = known, known
			}
			return out
		}
		d.Services, d.Versions, d.Ranks = redacted(d.Services), redacted(d.Versions), redacted(d.Ranks)
		for j := range d.Variants {
			d.Variants[j].Text = redacted([]string{d.Variants[j].Text})[0]
		}
		d.clean = clean
		out[i] = d.Group
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range drafts {
		drafts[i].of.clean = drafts[i].clean
	}
	return out
}
