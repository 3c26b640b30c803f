package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// runID identifies a run: its id within one service.
type runID struct{ namespace, service, id string }

// run is a run and its ranks.
type run struct {
	runID
	key       string
	firstSeen time.Time
	lastSeen  time.Time

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
	// share is 1, or less if other runs use the GPU as well.
	share float64
}

// runOf returns a run, which it adds if there is room, else nil.
func (s *Store) runOf(namespace, service, id string, now time.Time) *run {
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
		s.refuse("runs", hash, now)
		return nil
	}
	delete(s.refused["runs"], hash)
	one := &run{
		runID: key, key: hash, firstSeen: now, lastSeen: now, state: mlattr.RunUnknown,
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

// searchAgain is when a run that can be replaced is looked for again.
const searchAgain = time.Second

// replaceRun removes the run that matters least: the ended one that was seen
// longest ago, else such a silent or unknown one. A run that takes steps or looks
// hung is never removed.
func (s *Store) replaceRun(now time.Time) bool {
	least := s.nextToLeave(now)
	if least == nil && now.Sub(s.vain).Abs() >= searchAgain {
		s.orderLeaving(now)
		if least = s.nextToLeave(now); least == nil {
			s.vain = now
		}
	}
	if least == nil {
		return false
	}
	s.refuse("runs", least.key, now)
	s.removeRun(least)
	return true
}

// leaving is a run that may leave, unless it was seen again.
type leaving struct {
	*run
	turn int
	seen time.Time
}

// nextToLeave returns the next run of the order that still may leave, or nil.
func (s *Store) nextToLeave(now time.Time) *run {
	if now.Sub(s.ordered).Abs() >= searchAgain {
		s.leaving = nil // others may have ended since
	}
	for len(s.leaving) > 0 {
		next := s.leaving[0]
		s.leaving[0] = leaving{}
		s.leaving = s.leaving[1:]
		if s.byKey[next.key] == next.run && next.seen.Equal(next.lastSeen) && next.removable(now) == next.turn {
			return next.run
		}
	}
	return nil
}

// orderLeaving puts the runs that leave first in order: a sixteenth of all, because a
// flood of new runs replaces one for each.
func (s *Store) orderLeaving(now time.Time) {
	var all []leaving
	for _, one := range s.runs {
		if turn := one.removable(now); turn != 0 {
			all = append(all, leaving{one, turn, one.lastSeen})
		}
	}
	slices.SortFunc(all, func(a, b leaving) int { return cmp.Or(cmp.Compare(a.turn, b.turn), a.seen.Compare(b.seen)) })
	s.leaving, s.ordered = slices.Clone(all[:min(len(all), s.settings.MaxRuns/16+1)]), now
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
	s.refuse("runs", most.key, now)
	s.removeRun(most)
	return true
}

// replaceRanks forgets the ranks of the run that may leave and was seen longest
// ago.
func (s *Store) replaceRanks(now time.Time) bool {
	if now.Sub(s.fullRanks).Abs() < searchAgain {
		return false
	}
	oldest := s.firstToLeave(now, func(a, b *run) int {
		return cmp.Or(cmp.Compare(min(1, len(b.ranks)), min(1, len(a.ranks))), a.lastSeen.Compare(b.lastSeen))
	})
	if oldest == nil || len(oldest.ranks) == 0 {
		s.fullRanks = now
		return false
	}
	s.allRanks -= len(oldest.ranks)
	clear(oldest.ranks)
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
