package model

import (
	"cmp"
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

// maxSenders limits the collectors that are told apart. Others count as one.
const maxSenders = 1024

// Fleet reports whether all data comes from other collectors.
func (s *Store) Fleet() bool { return s.settings.Fleet }

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *Connection) {
	if !s.settings.Fleet || from.Name() == "" {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.senderOf(from.Name(), now)
	one.unnamed = from.Collector == ""
	one.describe(s, from)
	one.See(now)
}

// describe takes over what the connection says of the collector.
func (c *sender) describe(s *Store, from *Connection) {
	if c.id == mlattr.Other {
		return
	}
	if from.Address != "" && from.Address != c.address {
		c.address = s.texts.of(from.Address)
	}
	if from.Version != "" && from.Version != c.version {
		c.version = s.texts.of(from.Version)
	}
}

// senderOf returns a collector, which it adds. Beyond the limit, a new one replaces
// the one that has been silent for longest, else it counts as mlattr.Other.
func (s *Store) senderOf(id string, now time.Time) *sender {
	if one := s.senders[id]; one != nil {
		return one
	}
	id = s.texts.of(id)
	if one := s.senders[id]; one != nil {
		return one
	}
	if len(s.senders) >= maxSenders && !s.replaceSender(now) {
		s.refuse("collectors", id, now)
		if id = mlattr.Other; s.senders[id] != nil {
			return s.senders[id]
		}
	}
	one := &sender{id: id, firstSeen: now, Sender: silence.Sender{Last: now}}
	s.senders[id] = one
	return one
}

// replaceSender removes the collector that has been silent for longest.
func (s *Store) replaceSender(now time.Time) bool {
	if now.Sub(s.fullSenders).Abs() < searchAgain {
		return false
	}
	var oldest *sender
	for _, one := range s.senders {
		if one.Silent(now) && (oldest == nil || one.Last.Before(oldest.Last)) {
			oldest = one
		}
	}
	if oldest == nil {
		s.fullSenders = now
		return false
	}
	s.forgetSender(oldest)
	return true
}

func (s *Store) forgetSender(one *sender) {
	one.forgotten = true
	delete(s.senders, one.id)
}

// senderOfPoint returns the collector that a point names, which it adds, or nil.
func (s *Store) senderOfPoint(p *Point, now time.Time) *sender {
	if !s.settings.Fleet || p.From.Name() == "" {
		return nil
	}
	one := s.senderOf(p.From.Name(), now)
	one.describe(s, &p.From)
	one.See(now)
	return one
}

// seeSenderAgain notes that the collector of a stream has sent data.
func (s *Store) seeSenderAgain(one *stream, now time.Time) {
	if one.sender.forgotten {
		one.sender = s.senderOf(one.sender.id, now)
	}
	one.sender.See(now)
}

// collectorRows returns the collectors that send to the page, the silent ones first,
// those that are silent longest at the top, then by name. Data without a name from
// the address of a named collector is that collector's.
func (s *Store) collectorRows(now time.Time) []SendingCollector {
	named := make(map[string][]*sender)
	for _, one := range s.senders {
		if !one.unnamed && one.address != "" {
			named[one.address] = append(named[one.address], one)
		}
	}
	rows := make([]SendingCollector, 0, len(s.senders))
	for _, one := range s.senders {
		if one.unnamed && len(named[one.address]) > 0 {
			continue
		}
		last := one.Last
		if nameless := s.senders[one.address]; nameless != nil && nameless.unnamed && len(named[one.address]) == 1 && nameless.Last.After(last) {
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
		return cmp.Or(compareSilent(a.SilentSince, b.SilentSince), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// compareSilent orders those that are silent before others, the longest first.
func compareSilent(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(*b)
	}
}

// missingSenders returns a row for each collector, and for each host of GPUs, that is
// silent. Of very many, the last row counts the others.
func (s *Store) missingSenders(state *State, now time.Time) (rows []Missing) {
	silent := slices.DeleteFunc(slices.Clone(state.Collectors), func(c SendingCollector) bool { return c.SilentSince == nil })
	for _, one := range silent[:min(len(silent), maxNamedSilent)] {
		rows = append(rows, Missing{
			Key: "silent " + one.Key, Kind: "collector", What: "Data of the collector " + one.title(),
			Why: "It has been silent since " + clock(*one.SilentSince, now) + ". What only this collector sends shows its last values, then leaves.",
		})
	}
	rows = append(rows, moreSilent("collectors", len(silent))...)
	hosts := s.silentHosts(now)
	for _, one := range hosts[:min(len(hosts), maxNamedSilent)] {
		rows = append(rows, Missing{
			Key: keyOf("silent host", one.host), Kind: "host", What: "GPUs of " + cmp.Or(one.host, "an unknown host"),
			Why: "No reading has come since " + clock(one.last, now) + ". Its GPUs show what they did then, those that nobody held for an hour.",
		})
	}
	return append(rows, moreSilent("hosts", len(hosts))...)
}

// maxNamedSilent limits the collectors, and the hosts, that are named as silent.
const maxNamedSilent = 16

// moreSilent returns a row for those that are not named.
func moreSilent(things string, n int) []Missing {
	if n <= maxNamedSilent {
		return nil
	}
	return []Missing{{
		Key: "silent " + things, Kind: things[:len(things)-1], What: "Data of more " + things, Count: int64(n - maxNamedSilent),
		Why: "They are silent, too.",
	}}
}

// silentHost is a host of GPUs without a recent reading.
type silentHost struct {
	host string
	last time.Time
}

// silentHosts returns the hosts none of whose GPUs is read any more, those that were read
// last at the end.
func (s *Store) silentHosts(now time.Time) (silent []silentHost) {
	newest, read := make(map[string]time.Time), make(map[string]bool)
	for _, g := range s.gpus {
		if g.lastSeen.After(newest[g.host]) {
			newest[g.host] = g.lastSeen
		}
		read[g.host] = read[g.host] || !g.readings.Silent(now)
	}
	for host, last := range newest {
		if !read[host] {
			silent = append(silent, silentHost{host, last})
		}
	}
	slices.SortFunc(silent, func(a, b silentHost) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.host, b.host)) })
	return silent
}

// title names a collector, with its address if that is another text.
func (c *SendingCollector) title() string {
	if c.Address == "" || c.Address == c.ID {
		return c.ID
	}
	return c.ID + " (" + c.Address + ")"
}
