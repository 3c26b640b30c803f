package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Connection is what is known of the collector that has sent a request.
type Connection struct {
	// Collector names it, "" if nothing does. Address is the address of its machine,
	// Version that of its distribution, as far as known.
	Collector, Address, Version string
}

// Name returns what tells the collector apart from others: its name, else its
// address, "" if neither is known.
func (c *Connection) Name() string { return cmp.Or(c.Collector, c.Address) }

// sender is a collector that sends to the page of a fleet.
type sender struct {
	id, address, version string
	// unnamed reports whether the address stands for the name.
	unnamed   bool
	firstSeen time.Time
	silence.Sender
	// forgotten reports whether the sender has left the page.
	forgotten bool
}

// senders are the collectors of a fleet by their names.
type senders struct {
	texts  *texts
	limits *limits
	// left is called with a collector that leaves the page.
	left func(one *sender, now time.Time)

	all map[string]*sender
	// full is when nothing could make room for one.
	full time.Time
}

func newSenders(texts *texts, limits *limits, left func(one *sender, now time.Time)) *senders {
	return &senders{texts: texts, limits: limits, left: left, all: make(map[string]*sender)}
}

// maxSenders limits the collectors that are told apart. Others count as one.
const maxSenders = 1024

// see notes that a collector has sent data, and returns it, nil if its name is not known.
func (s *senders) see(from *Connection, now time.Time) *sender {
	if from.Name() == "" {
		return nil
	}
	one := s.of(from.Name(), now)
	if one.id != mlattr.Other {
		if from.Address != "" && from.Address != one.address {
			one.address = s.texts.of(from.Address)
		}
		if from.Version != "" && from.Version != one.version {
			one.version = s.texts.of(from.Version)
		}
	}
	one.See(now)
	return one
}

// connected notes that a collector has sent a request.
func (s *senders) connected(from *Connection, now time.Time) {
	if one := s.see(from, now); one != nil {
		one.unnamed = from.Collector == ""
	}
}

// of returns a collector, which it adds. Beyond the limit, a new one replaces
// the one that has been silent for longest, else it counts as mlattr.Other.
func (s *senders) of(id string, now time.Time) *sender {
	if one := s.all[id]; one != nil {
		return one
	}
	id = s.texts.of(id)
	if one := s.all[id]; one != nil {
		return one
	}
	if len(s.all) >= maxSenders && !s.replace(now) {
		s.limits.refuse("collectors", id, now)
		if id = mlattr.Other; s.all[id] != nil {
			return s.all[id]
		}
	}
	one := &sender{id: id, firstSeen: now, Sender: silence.Sender{Last: now}}
	s.all[id] = one
	return one
}

// replace removes the collector that has been silent for longest.
func (s *senders) replace(now time.Time) bool {
	if now.Sub(s.full).Abs() < searchAgain {
		return false
	}
	var oldest *sender
	for _, one := range s.all {
		if one.Silent(now) && (oldest == nil || one.Last.Before(oldest.Last)) {
			oldest = one
		}
	}
	if oldest == nil {
		s.full = now
		return false
	}
	s.forget(oldest, now)
	return true
}

func (s *senders) forget(one *sender, now time.Time) {
	one.forgotten = true
	delete(s.all, one.id)
	s.left(one, now)
}

// seeAgain notes that a collector has sent data again, and returns it: it may have left
// the page meanwhile.
func (s *senders) seeAgain(one *sender, now time.Time) *sender {
	if one.forgotten {
		one = s.of(one.id, now)
	}
	one.See(now)
	return one
}

// prune forgets the collectors that have sent nothing for a time.
func (s *senders) prune(within time.Duration, now time.Time) {
	for _, one := range s.all {
		if now.Sub(one.Last) > within {
			s.forget(one, now)
		}
	}
}

// rows returns the collectors that send to the page, the silent ones first,
// those that are silent longest at the top, then by name. Data without a name from
// the address of a named collector is that collector's.
func (s *senders) rows(now time.Time) []SendingCollector {
	named := make(map[string][]*sender)
	for _, one := range s.all {
		if !one.unnamed && one.address != "" {
			named[one.address] = append(named[one.address], one)
		}
	}
	rows := make([]SendingCollector, 0, len(s.all))
	for _, one := range s.all {
		if one.unnamed && len(named[one.address]) > 0 {
			continue
		}
		last := one.Last
		if nameless := s.all[one.address]; nameless != nil && nameless.unnamed && len(named[one.address]) == 1 && nameless.Last.After(last) {
			last = nameless.Last
		}
		row := SendingCollector{
			Key: keyOf("collector", one.id), ID: one.id, Address: one.address, Version: one.version,
			FirstSeen: one.firstSeen.UTC(), LastSeen: last.UTC(),
		}
		if now.Sub(last) > one.After() {
			row.SilentSince = timePointer(last)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b SendingCollector) int {
		if a.SilentSince != nil && b.SilentSince != nil {
			return cmp.Or(a.SilentSince.Compare(*b.SilentSince), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(trueFirst(a.SilentSince != nil, b.SilentSince != nil), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// title names a collector, with its address if that is another text.
func (c *SendingCollector) title() string {
	if c.Address == "" || c.Address == c.ID {
		return c.ID
	}
	return c.ID + " (" + c.Address + ")"
}

// hosts are those that have sent data.
type hosts struct {
	texts *texts
	all   map[string]*silence.Sender
}

func newHosts(texts *texts) *hosts {
	return &hosts{texts: texts, all: make(map[string]*silence.Sender)}
}

// see notes that a host has sent data. It returns where that is noted, and nil
// without a host and without room for it.
func (h *hosts) see(host string, now time.Time) *silence.Sender {
	one := h.of(host)
	if one != nil {
		one.See(now)
	}
	return one
}

// of returns a host, which it adds, and nil without one and without room for it.
func (h *hosts) of(host string) *silence.Sender {
	if host == "" {
		return nil
	}
	one := h.all[host]
	if one == nil {
		if len(h.all) >= maxHosts {
			return nil
		}
		one = new(silence.Sender)
		h.all[h.texts.of(host)] = one
	}
	return one
}

// seeAgain notes that a host has sent data again, and returns it: one that has been
// silent may have been forgotten.
func (h *hosts) seeAgain(one *silence.Sender, host string, now time.Time) *silence.Sender {
	if one.Silent(now) {
		return h.see(host, now)
	}
	one.See(now)
	return one
}

// reporting reports whether a host is known and not silent.
func (h *hosts) reporting(host string, now time.Time) bool {
	one := h.all[host]
	return one != nil && !one.Silent(now)
}

// prune forgets the hosts that have sent nothing for a time.
func (h *hosts) prune(within time.Duration, now time.Time) {
	maps.DeleteFunc(h.all, func(_ string, one *silence.Sender) bool { return now.Sub(one.Last) > within })
}
