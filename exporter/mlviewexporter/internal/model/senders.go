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
	// problem is that it is silent although somebody worked, nil if that is none.
	problem *Need
}

// maxSenders limits the collectors that are told apart. Others count as one.
const maxSenders = 1024

// Fleet reports whether all data comes from other collectors.
func (s *Store) Fleet() bool { return s.settings.Fleet }

// SeeConnection notes that a collector has sent a request.
func (s *Store) SeeConnection(from *Connection) {
	if !s.settings.Fleet {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.seeSender(from, now); one != nil {
		one.unnamed = from.Collector == ""
	}
}

// seeSender notes that a collector has sent data, and returns it, nil if its name is not
// known or the page is not that of a fleet.
func (s *Store) seeSender(from *Connection, now time.Time) *sender {
	if !s.settings.Fleet || from.Name() == "" {
		return nil
	}
	one := s.senderOf(from.Name(), now)
	one.describe(s, from)
	one.See(now)
	return one
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
		s.limits.refuse("collectors", id, now)
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
	s.forgetSender(oldest, now)
	return true
}

func (s *Store) forgetSender(one *sender, now time.Time) {
	one.forgotten = true
	delete(s.senders, one.id)
	s.endSilence(one, mlattr.ProblemNoEvidence, now)
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
		if a.SilentSince != nil && b.SilentSince != nil {
			return cmp.Or(a.SilentSince.Compare(*b.SilentSince), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(trueFirst(a.SilentSince != nil, b.SilentSince != nil), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// reportSilence is how long a collector is silent until that is a problem: the usual
// stall_timeout of ml_metrics.
const reportSilence = 5 * time.Minute

// silentCollectors returns the collectors as problems that fell silent while somebody
// worked of whom only they told. ml_metrics of a collector that has died cannot say so.
func (s *Store) silentCollectors(state *State, now time.Time) (rows []Need) {
	for i := range state.Collectors {
		row := &state.Collectors[i]
		one := s.senders[row.ID]
		n := s.silenceOf(one, row, now)
		if n == nil {
			s.endSilence(one, mlattr.ProblemOver, now)
			continue
		}
		one.problem = n
		rows = append(rows, *n)
	}
	return rows
}

// silenceOf returns the problem that a collector is silent, nil if it is none.
func (s *Store) silenceOf(one *sender, row *SendingCollector, now time.Time) *Need {
	if row.SilentSince == nil || now.Sub(*row.SilentSince) < reportSilence {
		return nil
	}
	kind, _ := mlattr.ProblemNamed(HostSilent)
	n := &Need{
		Key: keyOf("need", HostSilent, "collector", one.id), Kind: kind.Name, Severity: string(kind.Severity), Since: *row.SilentSince,
		Subject: "collector " + row.title(), Before: []Change{},
		Next: "See whether the collector runs and reaches this page, and the hosts behind it.",
	}
	var runs []*run
	for _, r := range s.runs {
		w := r.writers[r.writer]
		if w != nil && w.sender == one && r.news.Silent(now) && severity(r.currentState(now)) >= severity(mlattr.RunRunning) {
			runs = append(runs, r)
		}
	}
	for _, g := range s.gpus {
		if all := g.workloads(now); len(all) > 0 && all[0].sender == one {
			n.GPUs = append(n.GPUs, g.key)
		}
	}
	held := len(n.GPUs)
	if len(runs)+held == 0 {
		return nil
	}
	slices.Sort(n.GPUs)
	n.say("no data since %s", clock(n.Since, now))
	n.say("%s worked then, and %s held", counted(len(runs), "run", "runs"), counted(held, "GPU was", "GPUs were"))
	if len(runs) == 1 {
		r := runs[0]
		n.Run, n.RunID, n.Service, n.Job, n.Owner, n.Team = r.key, r.id, r.service, cmp.Or(r.jobName, r.job), s.ownerOf(r), r.namespace
	}
	if held > 0 {
		n.GPUHours = finite(float64(held) * now.Sub(n.Since).Hours())
	}
	return n
}

// endSilence keeps as resolved that a collector was silent, if that was a problem.
func (s *Store) endSilence(one *sender, reason string, now time.Time) {
	if n := one.problem; n != nil {
		n.Key, n.Ended, n.EndReason, n.Next = keyOf("resolved", n.Key, n.Since.String()), timePointer(now), reason, ""
		s.addResolved(n)
		one.problem = nil
	}
}

// noticeTexts have what collectors say of themselves, by ml.notice, and what that means.
var noticeTexts = [...]struct{ notice, what, why string }{
	{"refused", "Collectors that refuse data", "A queue is full, or memory is short. What their senders give up is missing here, too."},
	{"dropped", "Collectors that drop data for a back end", "It takes none, or a queue is full. This page is computed from all data."},
	{"withheld", "Collectors that withhold problems of silence", "They refused data, so what is missing may be what they refused."},
}

// noticeRows returns what collectors lose now: by ml_metrics, which knows its process.
func (s *Store) noticeRows(now time.Time) (rows []Missing) {
	for _, known := range noticeTexts {
		m := Missing{Key: "collectors " + known.notice, Kind: known.notice, Why: known.why + " Their pages and logs say more."}
		var names []string
		for _, one := range s.ofHosts {
			at, ok := unix(one.value)
			if one.series != CollectorNotice || one.labels.Own[0] != known.notice || one.sender == nil || !ok || one.old(now) || one.gone {
				continue
			}
			names = append(names, one.sender.id)
			if m.Since == nil || at.Before(*m.Since) {
				m.Since = &at
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			m.What = known.what + ": " + list(names, maxNamedServices)
			rows = append(rows, m)
		}
	}
	return rows
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
	rows = append(append(rows, moreSilent("collectors", len(silent))...), s.noticeRows(now)...)
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
