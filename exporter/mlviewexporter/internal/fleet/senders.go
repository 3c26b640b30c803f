// Package fleet knows who sends: hosts, and the collectors of a fleet.
package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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

// Sender is a collector that sends to the page of a fleet.
type Sender struct {
	// SendingCollector is its row, without when it has sent.
	api.SendingCollector
	// unnamed reports whether the address stands for the name.
	unnamed bool
	silence.Sender
	// Forgotten reports whether the sender has left the page.
	Forgotten bool
}

// Senders are the collectors of a fleet by their names.
type Senders struct {
	texts  *kept.Texts
	limits *kept.Counts
	// Left is called with a collector that leaves the page.
	Left func(one *Sender, now time.Time)

	All map[string]*Sender
	// leaving are the silent ones.
	leaving kept.Leaving[*Sender]
}

// NewSenders returns no collectors.
func NewSenders(texts *kept.Texts, limits *kept.Counts) *Senders {
	return &Senders{texts: texts, limits: limits, All: make(map[string]*Sender)}
}

// maxSenders limits the collectors that are told apart. Others count as one.
const maxSenders = 1024

// See notes that a collector has sent data, and returns it, nil if its name is not known.
func (s *Senders) See(from *Connection, now time.Time) *Sender {
	if from.Name() == "" {
		return nil
	}
	one := s.of(from.Name(), now)
	if one.ID != mlattr.Other {
		s.texts.Set(&one.Address, from.Address)
		s.texts.Set(&one.Version, from.Version)
	}
	one.See(now)
	return one
}

// Connected notes that a collector has sent a request.
func (s *Senders) Connected(from *Connection, now time.Time) {
	if one := s.See(from, now); one != nil {
		one.unnamed = from.Collector == ""
	}
}

// of returns a collector, which it adds. Beyond the limit, a new one replaces
// the one that has been silent for longest, else it counts as mlattr.Other.
func (s *Senders) of(id string, now time.Time) *Sender {
	one := s.All[id]
	if one == nil {
		id = s.texts.Of(id)
		one = s.All[id]
	}
	if one != nil {
		return one
	}
	if len(s.All) >= maxSenders && !s.replace(now) {
		s.limits.Refuse("collectors", id, now)
		if id = mlattr.Other; s.All[id] != nil {
			return s.All[id]
		}
	}
	one = &Sender{
		SendingCollector: api.SendingCollector{Key: api.Key("collector", id), ID: id, FirstSeen: now.UTC()}, Sender: silence.Sender{Last: now},
	}
	s.All[id] = one
	return one
}

// replace removes the collector that has been silent for longest.
func (s *Senders) replace(now time.Time) bool {
	silent := func(one *Sender) bool { return !one.Forgotten && one.Silent(now) }
	last := func(one *Sender) time.Time { return one.Last }
	return s.leaving.RemoveOldest(now, maps.Values(s.All), silent, last, func(one *Sender) { s.forget(one, now) })
}

func (s *Senders) forget(one *Sender, now time.Time) {
	one.Forgotten = true
	delete(s.All, one.ID)
	s.Left(one, now)
}

// SeeAgain notes that a collector has sent data again, and returns it: it may have left
// the page meanwhile.
func (s *Senders) SeeAgain(one *Sender, now time.Time) *Sender {
	if one.Forgotten {
		one = s.of(one.ID, now)
	}
	one.See(now)
	return one
}

// Prune forgets the collectors that have sent nothing for a time.
func (s *Senders) Prune(within time.Duration, now time.Time) {
	for _, one := range s.All {
		if now.Sub(one.Last) > within {
			s.forget(one, now)
		}
	}
}

// Rows returns the collectors that send to the page, the silent ones first,
// those that are silent longest at the top, then by name. Data without a name from
// the address of a named collector is that collector's.
func (s *Senders) Rows(now time.Time) []api.SendingCollector {
	named := make(map[string][]*Sender)
	for _, one := range s.All {
		if !one.unnamed && one.Address != "" {
			named[one.Address] = append(named[one.Address], one)
		}
	}
	rows := make([]api.SendingCollector, 0, len(s.All))
	for _, one := range s.All {
		if one.unnamed && len(named[one.Address]) > 0 {
			continue
		}
		last := one.Last
		if nameless := s.All[one.Address]; nameless != nil && nameless.unnamed && len(named[one.Address]) == 1 && nameless.Last.After(last) {
			last = nameless.Last
		}
		row := one.SendingCollector
		if row.LastSeen = last.UTC(); now.Sub(last) > one.After() {
			row.SilentSince = api.TimeOf(last)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b api.SendingCollector) int {
		return cmp.Or(api.TrueFirst(a.SilentSince != nil, b.SilentSince != nil),
			api.Value(a.SilentSince).Compare(api.Value(b.SilentSince)), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// Hosts are those that have sent data.
type Hosts struct {
	texts *kept.Texts
	All   map[string]*silence.Sender
}

// NewHosts returns no hosts.
func NewHosts(texts *kept.Texts) *Hosts {
	return &Hosts{texts: texts, All: make(map[string]*silence.Sender)}
}

// See notes that a host has sent data. It returns where that is noted, and nil
// without a host and without room for it.
func (h *Hosts) See(host string, now time.Time) *silence.Sender {
	one := h.Of(host)
	if one != nil {
		one.See(now)
	}
	return one
}

// Of returns a host, which it adds, and nil without one and without room for it.
func (h *Hosts) Of(host string) *silence.Sender {
	if host == "" {
		return nil
	}
	return shared.Bounded(&h.All, host, MaxHosts, h.texts.Of)
}

// SeeAgain notes that a host has sent data again, and returns it: one that has been
// silent may have been forgotten.
func (h *Hosts) SeeAgain(one *silence.Sender, host string, now time.Time) *silence.Sender {
	if one.Silent(now) {
		return h.See(host, now)
	}
	one.See(now)
	return one
}

// Reporting reports whether a host is known and not silent.
func (h *Hosts) Reporting(host string, now time.Time) bool {
	one := h.All[host]
	return one != nil && !one.Silent(now)
}

// Prune forgets the hosts that have sent nothing for a time.
func (h *Hosts) Prune(within time.Duration, now time.Time) {
	maps.DeleteFunc(h.All, func(_ string, one *silence.Sender) bool { return now.Sub(one.Last) > within })
}

// MaxHosts limits the hosts.
const MaxHosts = 4096
