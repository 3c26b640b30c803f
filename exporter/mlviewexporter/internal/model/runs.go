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
	key       string
	origin    share.Origin
	firstSeen time.Time
	lastSeen  time.Time
	// again reports whether its program sent something againAfter its first data.
	again bool
	// news is when its programs have sent anything: what is computed of them is none.
	news silence.Sender

	job, jobName, user, version string
	simulated                   bool
	// ratesOver is the time in seconds that the rates of tokens and samples cover.
	ratesOver float64

	ranks map[string]*rank
	// streams are those of metrics that name the run without durations, those of
	// ml.step.duration, which are most. states are those of its state, whole counts
	// those of other series of the whole run.
	streams, durations, states []*stream
	// ratios are those of ml.run.time.ratio.
	ratios []*stream
	whole  [seriesCount]uint16

	// writers are the collectors of a fleet that have computed series of the run, writer
	// is the one with the newest evidence.
	writers map[string]*writer
	writer  string

	// hosts are those of all attempts.
	hosts map[string]bool

	// state is the last known state, stateNoted when it was first seen, zero after a
	// restart.
	state      string
	stateNoted time.Time
	checkpoint time.Time
	curves     curves
	last       lastNumbers
	spent      spentTime
	facts      facts
	// failed reports whether the span of the whole training failed, kept whether the
	// run was considered as a good one since it ended.
	failed, kept bool
	// due is since when there are numbers that its curves do not have, zero for none.
	due time.Time

	// gpus are the GPUs that the run holds, by the last State.
	gpus []heldGPU
	// needs are the kinds of its problems, by the last State. slowSince is the
	// onset of its last slowness.
	needs     []string
	slowSince time.Time
	// slowNoted is when it was noted.
	slowNoted time.Time
}

// heldGPU is a GPU of a run.
type heldGPU struct {
	gpu    *gpu
	rank   string
	memory float64
	// silent reports whether the GPU is not read any more.
	silent bool
	// share is 1, or less if other runs use the GPU as well.
	share float64
}

// againAfter is when a run that sends something has not come only once.
const againAfter = time.Minute

// sent notes that the program of the run has sent something.
func (r *run) sent(now time.Time) { r.again = r.again || now.Sub(r.firstSeen) >= againAfter }

// runOf returns a run, which it adds for an origin if there is room, else nil.
func (s *Store) runOf(namespace, service, id string, from share.Origin, now time.Time) *run {
	key := runID{namespace, service, id}
	if known := s.runs[key]; known != nil {
		return known
	}
	if service == "" {
		// The first series of a run that holds GPUs can come before its service.
		if known := s.runWithID(id, "", ""); known != nil {
			return known
		}
	} else if nameless := s.runs[runID{id: id}]; nameless != nil {
		s.removeRun(nameless)
	}
	key = runID{s.texts.of(namespace), s.texts.of(service), s.texts.of(id)}
	if known := s.runs[key]; known != nil {
		return known
	}
	hash := keyOf("run", key.namespace, key.service, key.id)
	if len(s.runs) >= s.settings.MaxRuns && !s.replaceRun(now) {
		s.limits.refuse("runs", hash, now)
		return nil
	}
	s.limits.accept("runs", hash)
	one := &run{
		runID: key, key: hash, origin: from, firstSeen: now, lastSeen: now, state: mlattr.RunUnknown,
		ranks: make(map[string]*rank), hosts: make(map[string]bool),
	}
	s.runs[key], s.byKey[hash] = one, one
	clear(s.withID)
	s.runsByID[key.id] = append(s.runsByID[key.id], one)
	return one
}

// attach adds a stream, and reports whether there is room for it.
func (r *run) attach(one *stream) bool {
	if r.size() >= maxStreamsOfRun {
		return false
	}
	if one.series == StepDuration {
		r.durations = append(r.durations, one)
		return true
	}
	if one.series.ofWholeRun() {
		if r.whole[one.series] >= maxStreamsOfWhole || one.series == RunState && severity(one.labels.Own[0]) <= 0 {
			return false
		}
		r.whole[one.series]++
	}
	switch one.series {
	case RunState:
		r.states = append(r.states, one)
	case RunTimeRatio:
		r.ratios = append(r.ratios, one)
	}
	r.streams = append(r.streams, one)
	return true
}

// size is the number of streams of the run.
func (r *run) size() int { return len(r.streams) + len(r.durations) }

// replaceRun removes the run that matters least. A run that takes steps or looks
// hung is never removed.
func (s *Store) replaceRun(now time.Time) bool {
	least := s.runLeaves(&s.leaving, now, func(*run) int { return 1 })
	if least == nil {
		return false
	}
	s.limits.refuse("runs", least.key, now)
	s.removeRun(least)
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
func (s *Store) runLeaves(l *leavingRuns, now time.Time, weigh func(*run) int) *run {
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
func (s *Store) nextToLeave(l *leavingRuns, now time.Time) *run {
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
func (s *Store) orderLeaving(l *leavingRuns, now time.Time, weigh func(*run) int) {
	all := make([]leaving, 0, len(s.runs))
	for _, one := range s.runs {
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
func (s *Store) replaceStreams(of *Labels, now time.Time) bool {
	if now.Sub(s.full).Abs() < searchAgain {
		return false
	}
	own := s.runs[runID{of.Namespace, of.Service, of.Run}]
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
	s.removeRun(most)
	return true
}

// replaceRanks forgets the ranks of the run that matters least.
func (s *Store) replaceRanks(now time.Time) bool {
	least := s.runLeaves(&s.leavingRanks, now, func(r *run) int { return len(r.ranks) })
	if least == nil {
		return false
	}
	s.allRanks -= len(least.ranks)
	clear(least.ranks)
	return true
}

// firstToLeave returns the first of the runs that may leave, by an order, or nil.
func (s *Store) firstToLeave(now time.Time, order func(a, b *run) int) (first *run) {
	for _, one := range s.runs {
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

func (s *Store) removeRun(r *run) {
	owners := make(map[any]bool)
	for _, one := range slices.Concat(r.streams, r.durations) {
		s.streams.remove(one)
		one.removed = true
		owners[one.owner] = true
	}
	removed := func(one *stream) bool { return one.removed }
	for owner := range owners {
		switch of := owner.(type) {
		case *modelUse:
			of.streams = slices.DeleteFunc(of.streams, removed)
		case *service:
			of.streams = slices.DeleteFunc(of.streams, removed)
		}
	}
	s.allRanks -= len(r.ranks)
	clear(s.withID)
	delete(s.runs, r.runID)
	delete(s.byKey, r.key)
	others := slices.DeleteFunc(s.runsByID[r.id], func(other *run) bool { return other == r })
	if len(others) == 0 {
		delete(s.runsByID, r.id)
	} else {
		s.runsByID[r.id] = others
	}
	r.due = time.Time{}
}

// touchRun takes over what a point of a run says besides its value. changed reports
// whether it says anything new: most points of a fleet repeat the last one.
func (s *Store) touchRun(one *stream, changed bool, now time.Time) {
	r, l := one.run, &one.labels
	r.lastSeen = now
	if changed && (one.series == StepDuration || one.series == LastStep) {
		r.sent(now) // also of a client without spans
	}
	s.history.due(r, now)
	if changed && s.settings.Fleet {
		r.noteWriter(one)
	}
	if !changed && len(r.ranks) > 0 {
		if one.series == RunState && one.value == 1 {
			s.noteState(r, now) // that of another collector may have ended
		}
		return
	}
	r.simulated = r.simulated || one.simulated
	if l.Job != "" {
		r.job = l.Job
	}
	// The series of a whole run have neither rank nor host.
	if l.Rank != "" || l.Host != "" {
		rank := s.rankOf(r, l.Rank, l.Host)
		// Series of an earlier host stay for a while.
		if rank != nil && (rank.host == "" || one.series == LastStep && one.value > rank.lastStep) {
			rank.lastStep = max(rank.lastStep, one.value)
			s.moveRank(r, rank, l.Host)
		}
	}
	switch one.series {
	case RunState:
		s.noteState(r, now)
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

// severity orders states as ml_metrics orders those of the ranks of a run. It is
// not positive for anything else.
func severity(state string) int {
	return slices.Index([]string{"", mlattr.RunEnded, mlattr.RunUnknown, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunRunning, mlattr.RunStalled}, state)
}

// moveRank notes on which host a rank is.
func (s *Store) moveRank(r *run, one *rank, host string) {
	if host == "" || host == one.host && r.hosts[host] {
		return
	}
	host = s.texts.of(host)
	one.host = host
	if r.hosts[host] || len(r.hosts) >= maxHosts {
		return
	}
	r.hosts[host] = true
	clear(s.withID)
}

// noteState notes a new state of a run.
func (s *Store) noteState(r *run, now time.Time) {
	state := r.currentState(now)
	if state == r.state || state == mlattr.RunUnknown {
		return
	}
	was := r.state
	r.state, r.stateNoted = state, now
	if was != mlattr.RunUnknown {
		s.changes.mark(r.key, Mark{Time: now.UTC(), Kind: "state", Text: stateWord(state) + " (was " + stateWord(was) + ")"})
	}
}

// noteChange adds a change that ml_metrics has recorded.
func (s *Store) noteChange(c *Change, namespace string, now time.Time) {
	run := ""
	if r := s.runs[runID{namespace, c.Service, c.RunID}]; r != nil {
		run = r.key
	} else if c.RunID != "" {
		if r := s.runWithID(c.RunID, c.Service, c.Host); r != nil {
			run = r.key
		}
	}
	s.changes.note(c, run, now)
}
