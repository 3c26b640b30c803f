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

// Flush writes the summaries that changed.
func (s *Summaries) Flush() {
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
	groups := make([]store.Group, 0, len(c.dirty))
	for _, g := range c.dirty {
		groups = append(groups, g.Copy())
	}
	clear(c.dirty)
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
