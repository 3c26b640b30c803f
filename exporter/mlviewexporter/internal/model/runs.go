package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// runID identifies a run: its id within one service.
type runID struct{ namespace, service, id string }

// run is a run and its ranks.
type run struct {
	runID
	in        *runs
	key       string
	origin    share.Origin
	firstSeen time.Time
	lastSeen  time.Time
	// again reports whether its program sent something againAfter its first data.
	again bool
	// news is when its programs have sent anything: what is computed of them is none.
	news silence.Sender

	facts
	processes
	runStreams
	timeline

	// state is the last known state, stateNoted when it was first seen, zero after a
	// restart. kept reports whether the run was considered as a good one since it ended.
	state      string
	stateNoted time.Time
	kept       bool

	// gpus are the GPUs that the run holds, by the last State.
	gpus []heldGPU
	// needs are the kinds of its problems, by the last State. slowSince is the
	// onset of its last slowness.
	needs     []string
	slowSince time.Time
	// slowNoted is when it was noted.
	slowNoted time.Time
}

// runs are the runs.
type runs struct {
	settings Settings
	texts    *texts
	limits   *limits
	streams  *streamTable
	changes  *changes
	gpus     *gpus
	owners   owners
	good     goodRuns

	all   map[runID]*run
	byID  map[string][]*run
	byKey map[string]*run
	// found has the answers of withID since the runs or their hosts changed.
	found map[runRef]*run
	// users are those of GPU workloads by the service that they name, by the last
	// State; empty for a service of several users.
	users map[string]string
	// ranks is the number of ranks of all runs.
	ranks int
	// leaving are the next runs to be replaced, leavingRanks those whose ranks are.
	leaving, leavingRanks leavingRuns
	// full is when nothing could make room for a stream.
	full time.Time
	// due are the runs that have new numbers, which are recorded together once all of an
	// emission have arrived, in the order of run.due. Those that were removed meanwhile
	// are not due.
	due []*run
}

func newRuns(settings Settings, texts *texts, limits *limits, streams *streamTable, changes *changes, gpus *gpus) *runs {
	return &runs{
		settings: settings, texts: texts, limits: limits, streams: streams, changes: changes, gpus: gpus, owners: settings.Owners,
		all: make(map[runID]*run), byID: make(map[string][]*run), byKey: make(map[string]*run),
		found: make(map[runRef]*run), users: make(map[string]string),
	}
}

// againAfter is when a run that sends something has not come only once.
const againAfter = time.Minute

// sent notes that the program of the run has sent something.
func (r *run) sent(now time.Time) { r.again = r.again || now.Sub(r.firstSeen) >= againAfter }

// of returns a run, which it adds for an origin if there is room, else nil.
func (s *runs) of(namespace, service, id string, from share.Origin, now time.Time) *run {
	key := runID{namespace, service, id}
	if known := s.all[key]; known != nil {
		return known
	}
	if service == "" {
		// The first series of a run that holds GPUs can come before its service.
		if known := s.withID(id, "", ""); known != nil {
			return known
		}
	} else if nameless := s.all[runID{id: id}]; nameless != nil {
		s.remove(nameless)
	}
	key = runID{s.texts.of(namespace), s.texts.of(service), s.texts.of(id)}
	if known := s.all[key]; known != nil {
		return known
	}
	hash := keyOf("run", key.namespace, key.service, key.id)
	if len(s.all) >= s.settings.MaxRuns && !s.replace(now) {
		s.limits.refuse("runs", hash, now)
		return nil
	}
	s.limits.accept("runs", hash)
	one := &run{
		in: s, runID: key, key: hash, origin: from, firstSeen: now, lastSeen: now, state: mlattr.RunUnknown,
		processes: processes{ranks: make(map[string]*rank), hosts: make(map[string]bool)},
	}
	s.all[key], s.byKey[hash] = one, one
	clear(s.found)
	s.byID[key.id] = append(s.byID[key.id], one)
	return one
}

// replace removes the run that matters least. A run that takes steps or looks
// hung is never removed.
func (s *runs) replace(now time.Time) bool {
	least := s.runLeaves(&s.leaving, now, func(*run) int { return 1 })
	if least == nil {
		return false
	}
	s.limits.refuse("runs", least.key, now)
	s.remove(least)
	return true
}

// leavingRuns are the next runs to be replaced, in the order of the time ordered. vain is
// when there was none.
type leavingRuns struct {
	next          []leaving
	ordered, vain time.Time
}

// leaving is a run that may leave, unless it was seen again.
type leaving struct {
	*run
	turn int
	seen time.Time
}

// class orders the runs that may not leave before others, and those that came only once
// behind them.
func (l *leaving) class() int {
	switch {
	case l.turn == 0:
		return 0
	case l.again:
		return 1
	}
	return 2
}

// runLeaves returns the next run that makes room for what weighs in a run, or nil.
func (s *runs) runLeaves(l *leavingRuns, now time.Time, weigh func(*run) int) *run {
	least := s.nextToLeave(l, now)
	if least == nil && now.Sub(l.vain).Abs() >= searchAgain {
		s.orderLeaving(l, now, weigh)
		if least = s.nextToLeave(l, now); least == nil {
			l.vain = now
		}
	}
	return least
}

// nextToLeave returns the next run of the order that still may leave, or nil.
func (s *runs) nextToLeave(l *leavingRuns, now time.Time) *run {
	if now.Sub(l.ordered).Abs() >= searchAgain {
		l.next = nil // others may have ended since
	}
	for len(l.next) > 0 {
		next := l.next[0]
		l.next[0] = leaving{}
		l.next = l.next[1:]
		if s.byKey[next.key] == next.run && next.seen.Equal(next.lastSeen) && next.removable(now) == next.turn {
			return next.run
		}
	}
	return nil
}

// orderLeaving puts the runs that leave first in order: a sixteenth of all, because a
// flood of new runs replaces one for each. They are of senders and services with more
// than their share; if none of these may leave, they are others. Of one service, runs that
// came only once leave first, then the ended one that was seen longest ago, then such a
// silent or unknown one.
func (s *runs) orderLeaving(l *leavingRuns, now time.Time, weigh func(*run) int) {
	all := make([]leaving, 0, len(s.all))
	for _, one := range s.all {
		if weigh(one) > 0 {
			all = append(all, leaving{one, one.removable(now), one.lastSeen})
		}
	}
	slices.SortFunc(all, func(a, b leaving) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(b.turn, a.turn), b.seen.Compare(a.seen))
	})
	*l = leavingRuns{ordered: now, vain: l.vain}
	for _, i := range s.limits.leave(len(all), func(i int) (share.Origin, int) { return all[i].origin, weigh(all[i].run) }) {
		if all[i].turn != 0 {
			l.next = append(l.next, all[i])
		}
	}
	for i := len(all) - 1; i >= 0 && len(l.next) == 0; i-- {
		if all[i].turn != 0 {
			l.next = append(l.next, all[i])
		}
	}
}

// replaceStreams removes the run with most streams among those that may leave, if
// it has more of them than the run that needs one.
func (s *runs) replaceStreams(of *Labels, now time.Time) bool {
	if now.Sub(s.full).Abs() < searchAgain {
		return false
	}
	own := s.all[runID{of.Namespace, of.Service, of.Run}]
	if own != nil && own.size() >= maxStreamsOfRun {
		return false
	}
	most := s.firstToLeave(now, func(a, b *run) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), a.lastSeen.Compare(b.lastSeen))
	})
	if most == nil {
		s.full = now
		return false
	}
	if own != nil && own.size() >= most.size() {
		return false
	}
	s.limits.refuse("runs", most.key, now)
	s.remove(most)
	return true
}

// replaceRanks forgets the ranks of the run that matters least.
func (s *runs) replaceRanks(now time.Time) bool {
	least := s.runLeaves(&s.leavingRanks, now, func(r *run) int { return len(r.ranks) })
	if least == nil {
		return false
	}
	s.ranks -= len(least.ranks)
	clear(least.ranks)
	return true
}

// firstToLeave returns the first of the runs that may leave, by an order, or nil.
func (s *runs) firstToLeave(now time.Time, order func(a, b *run) int) (first *run) {
	for _, one := range s.all {
		if one.removable(now) != 0 && (first == nil || order(one, first) < 0) {
			first = one
		}
	}
	return first
}

// removable is 0 for a run that must stay, else its turn to leave.
func (r *run) removable(now time.Time) int {
	switch r.currentState(now) {
	case mlattr.RunEnded:
		return 1
	case mlattr.RunSilent, mlattr.RunFailed:
		return 2
	case mlattr.RunUnknown:
		// Spans can name any number of runs; of a real one ml_metrics has series.
		if r.size() == 0 || now.Sub(r.lastSeen) > goneAfter {
			return 3
		}
	}
	return 0
}

func (s *runs) remove(r *run) {
	owners := make(map[owner]bool)
	for _, one := range slices.Concat(r.streams, r.durations) {
		s.streams.remove(one)
		one.removed = true
		if one.owner != nil {
			owners[one.owner] = true
		}
	}
	for of := range owners {
		of.dropRemoved()
	}
	s.ranks -= len(r.ranks)
	clear(s.found)
	delete(s.all, r.runID)
	delete(s.byKey, r.key)
	others := slices.DeleteFunc(s.byID[r.id], func(other *run) bool { return other == r })
	if len(others) == 0 {
		delete(s.byID, r.id)
	} else {
		s.byID[r.id] = others
	}
	r.due = time.Time{}
}

func (r *run) updated(one *stream, changed bool, now time.Time) {
	l := &one.labels
	r.lastSeen = now
	if changed && (one.series == StepDuration || one.series == LastStep) {
		r.sent(now) // also of a client without spans
	}
	if at, ok := unix(one.value); ok && one.series == RunLastData {
		r.news.Hear(earlier(at, now))
	}
	if r.due.IsZero() {
		r.due = now
		r.in.due = append(r.in.due, r)
	}
	if changed && r.in.settings.Fleet {
		r.noteWriter(one)
	}
	if !changed && len(r.ranks) > 0 {
		if one.series == RunState && one.value == 1 {
			r.noteState(now) // that of another collector may have ended
		}
		return
	}
	r.simulated = r.simulated || one.simulated
	if l.Job != "" {
		r.job = l.Job
	}
	// The series of a whole run have neither rank nor host.
	if l.Rank != "" || l.Host != "" {
		rank := r.in.rankOf(r, l.Rank, l.Host, now)
		// Series of an earlier host stay for a while.
		if rank != nil && (rank.host == "" || one.series == LastStep && one.value > rank.lastStep) {
			rank.lastStep = max(rank.lastStep, one.value)
			r.in.moveRank(r, rank, l.Host)
		}
	}
	if one.series == RunState {
		r.noteState(now)
	}
}

// currentState returns the state of a run by ml_metrics: of several collectors, by the
// one with the newest evidence.
func (r *run) currentState(now time.Time) string {
	worst := ""
	for _, one := range r.states {
		if one.value == 1 && one.live(now) && r.written(one) {
			if state := one.labels.Own[0]; severity(state) > severity(worst) || worst == "" {
				worst = state
			}
		}
	}
	if worst == mlattr.RunSilent && r.heldElsewhere(now) {
		return mlattr.RunStalled
	}
	if worst != "" {
		return worst
	}
	// Its series have ended.
	if mlattr.RunOver(r.state) || r.state == mlattr.RunSilent {
		return r.state
	}
	return mlattr.RunUnknown
}

// moveRank notes on which host a rank is.
func (s *runs) moveRank(r *run, one *rank, host string) {
	if host == "" || host == one.host && r.hosts[host] {
		return
	}
	host = s.texts.of(host)
	one.host = host
	if r.hosts[host] || len(r.hosts) >= maxHosts {
		return
	}
	r.hosts[host] = true
	clear(s.found)
}

// noteState notes a new state of a run.
func (r *run) noteState(now time.Time) {
	state := r.currentState(now)
	if state == r.state || state == mlattr.RunUnknown {
		return
	}
	was := r.state
	r.state, r.stateNoted = state, now
	if was != mlattr.RunUnknown {
		r.in.changes.mark(r.key, Mark{Time: now.UTC(), Kind: "state", Text: stateWord(state) + " (was " + stateWord(was) + ")"})
	}
}

// find returns the run of a service with an id, else any with the id, one that has a
// process on the host first, and nil if there is none.
func (s *runs) find(namespace, service, id, host string) *run {
	if id == "" {
		return nil
	}
	if r := s.all[runID{namespace, service, id}]; r != nil {
		return r
	}
	return s.withID(id, service, host)
}

// withID returns the run with an id: that of the service, else one that has a
// process on the host, else the one that was seen first. Services that share an
// id, such as a program and its model server, are several runs.
func (s *runs) withID(id, service, host string) *run {
	all := s.byID[id]
	if len(all) < 2 {
		for _, only := range all {
			return only
		}
		return nil
	}
	ref := runRef{id, service, host}
	best, known := s.found[ref]
	if !known {
		best = firstOf(all, service, host)
		if len(s.found) < maxStreams {
			s.found[ref] = best
		}
	}
	return best
}

// keyOf returns the key of the run of a service with an id, "" if there is none.
func (s *runs) keyOf(id, service string) string {
	if r := s.withID(id, service, ""); r != nil {
		return r.key
	}
	return ""
}

// runRef is what a run is looked for by.
type runRef struct{ id, service, host string }

func firstOf(all []*run, service, host string) (best *run) {
	turn := func(r *run) int {
		switch {
		case service != "" && r.service == service:
			return 0
		case host != "" && r.hosts[host]:
			return 1
		default:
			return 2
		}
	}
	for _, r := range all {
		if best == nil || cmp.Or(cmp.Compare(turn(r), turn(best)), r.firstSeen.Compare(best.firstSeen), cmp.Compare(r.key, best.key)) < 0 {
			best = r
		}
	}
	return best
}

// prune removes the runs that have sent nothing for long.
func (s *runs) prune(now time.Time) {
	s.leaving.next, s.leavingRanks.next = nil, nil
	for _, r := range s.all {
		if now.Sub(r.lastSeen) > s.settings.History {
			s.remove(r)
		}
	}
	s.good.prune(now)
}
