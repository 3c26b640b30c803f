// Package runs holds the runs with their ranks, numbers and curves.
package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Ref identifies a run: its id within one service.
type Ref struct {
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service"`
	ID        string `json:"id"`
}

// Known is what is known of a run, and kept over restarts.
type Known struct {
	Ref
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	// State is the last known state.
	State     string `json:"state,omitempty"`
	Job       string `json:"job,omitempty"`
	JobName   string `json:"job_name,omitempty"`
	User      string `json:"user,omitempty"`
	Version   string `json:"version,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`
	// Checkpoint is when the last one was saved.
	Checkpoint time.Time `json:"checkpoint,omitzero"`
}

// Run is a run and its ranks.
type Run struct {
	Known
	in     *Set
	Key    string
	origin share.Origin
	// Again reports whether its program sent something againAfter its first data.
	Again bool
	// News is when its programs have sent anything: what is computed of them is none.
	News silence.Sender

	facts
	processes
	runStreams
	timeline

	// stateNoted is when State was first seen, zero after a restart. kept reports whether
	// the run was considered as a good one since it ended.
	stateNoted time.Time
	kept       bool

	// GPUs are the GPUs that the run holds, by the last State.
	GPUs []Held
	// Needs are the kinds of its problems, by the last State.
	Needs []string
}

// Set are the runs.
type Set struct {
	*input.Bounds
	streams *series.Table
	changes *changes.Log
	gpus    *gpus.Set
	Owners  gpus.Owners
	Good    goodRuns

	All   map[Ref]*Run
	byID  map[string][]*Run
	ByKey map[string]*Run
	// found has the answers of withID since the runs or their hosts changed.
	found map[runRef]*Run
	// users are those of GPU workloads by the service that they name, by the last
	// State; empty for a service of several users.
	users map[string]string
	// ranks is the number of ranks of all runs.
	ranks int
	// leaving are the next runs to be replaced, leavingRanks those whose ranks are.
	leaving, leavingRanks kept.Leaving[leaving]
	// replacements limit how many runs that only spans name take the places of others.
	replacements *share.Budget
	// full is when nothing could make room for a stream.
	full time.Time
	// due are the runs that have new numbers, which are recorded together once all of an
	// emission have arrived, in the order of run.due. Those that were removed meanwhile
	// are not due.
	due []*Run
}

// New returns a Set without runs.
func New(of *input.Bounds, streams *series.Table, changes *changes.Log, gpus *gpus.Set) *Set {
	return &Set{
		Bounds: of, streams: streams, changes: changes, gpus: gpus, Owners: of.Owners,
		replacements: share.NewBudget(of.MaxRuns, float64(of.MaxRuns)),
		All:          make(map[Ref]*Run), byID: make(map[string][]*Run), ByKey: make(map[string]*Run),
		found: make(map[runRef]*Run), users: make(map[string]string),
	}
}

// againAfter is when a run that sends something has not come only once.
const againAfter = time.Minute

// sent notes that the program of the run has sent something.
func (r *Run) sent(now time.Time) { r.Again = r.Again || now.Sub(r.FirstSeen) >= againAfter }

// OfSpans is Of for a run that spans name. If the list is full, such runs replace at most
// MaxRuns others in a minute: otherwise each would leave before somebody reads it.
func (s *Set) OfSpans(namespace, service, id string, from share.Origin, now time.Time) *Run {
	if known := s.All[Ref{namespace, service, id}]; known != nil {
		return known
	}
	if service != "" && len(s.All) >= s.MaxRuns && !s.replacements.Take(s.Limits.Shares.Claim(from), true, now) {
		s.Limits.Refuse("runs", api.Key("run", namespace, service, id), now)
		return nil
	}
	return s.Of(namespace, service, id, from, now)
}

// Of returns a run, which it adds for an origin if there is room, else nil.
func (s *Set) Of(namespace, service, id string, from share.Origin, now time.Time) *Run {
	key := Ref{namespace, service, id}
	if known := s.All[key]; known != nil {
		return known
	}
	if service == "" {
		// The first series of a run that holds GPUs can come before its service.
		if known := s.withID(id, "", ""); known != nil {
			return known
		}
	} else if nameless := s.All[Ref{ID: id}]; nameless != nil {
		s.remove(nameless)
	}
	key = Ref{s.Texts.Of(namespace), s.Texts.Of(service), s.Texts.Of(id)}
	if known := s.All[key]; known != nil {
		return known
	}
	hash := api.Key("run", key.Namespace, key.Service, key.ID)
	if len(s.All) >= s.MaxRuns && !s.replace(now) {
		s.Limits.Refuse("runs", hash, now)
		return nil
	}
	s.Limits.Accept("runs", hash)
	one := &Run{
		Known: Known{Ref: key, FirstSeen: now, LastSeen: now, State: mlattr.RunUnknown}, in: s, Key: hash, origin: from,
		processes: processes{Ranks: make(map[string]*rank), Hosts: make(map[string]bool)},
	}
	s.All[key], s.ByKey[hash] = one, one
	clear(s.found)
	s.byID[key.ID] = append(s.byID[key.ID], one)
	return one
}

// replace removes the run that matters least. A run that takes steps or looks
// hung is never removed.
func (s *Set) replace(now time.Time) bool {
	least := s.runLeaves(&s.leaving, now, func(*Run) int { return 1 })
	if least == nil {
		return false
	}
	s.Limits.Refuse("runs", least.Key, now)
	s.remove(least)
	return true
}

// leaving is a run that may leave, unless it was seen again.
type leaving struct {
	*Run
	turn int
	seen time.Time
}

// runLeaves returns the next run that makes room for what weighs in a run, or nil. A flood of
// new runs replaces one for each. They are of senders and services with more than their
// share; if none of these may leave, they are others. Of one service, runs that came only
// once leave first, then the ended one that was seen longest ago, then such a silent or
// unknown one.
func (s *Set) runLeaves(l *kept.Leaving[leaving], now time.Time, weigh func(*Run) int) *Run {
	next, _ := l.Next(now, func(l leaving) bool {
		return s.ByKey[l.Key] == l.Run && l.seen.Equal(l.LastSeen) && l.turn != 0 && l.removable(now) == l.turn
	}, func() []leaving {
		heavy := mlattr.Where(maps.Values(s.All), func(one *Run) bool { return weigh(one) > 0 })
		all := mlattr.Mapped(heavy, func(one *Run) leaving { return leaving{one, one.removable(now), one.LastSeen} })
		slices.SortFunc(all, func(a, b leaving) int {
			// Those that may not leave come first, those that came only once last.
			return cmp.Or(api.TrueFirst(a.turn == 0, b.turn == 0), api.TrueFirst(a.turn == 0 || a.Again, b.turn == 0 || b.Again),
				cmp.Compare(b.turn, a.turn), b.seen.Compare(a.seen))
		})
		next := kept.First(s.Limits, all, func(l leaving) (share.Origin, int) { return l.origin, weigh(l.Run) })
		next = slices.DeleteFunc(next, func(l leaving) bool { return l.turn == 0 })
		if len(next) == 0 && len(all) > 0 {
			next = all[len(all)-1:]
		}
		return next
	})
	return next.Run
}

// ReplaceStreams removes the run with most streams among those that may leave, if
// it has more of them than the run that needs one.
func (s *Set) ReplaceStreams(of *series.Labels, now time.Time) bool {
	if now.Sub(s.full).Abs() < kept.SearchAgain {
		return false
	}
	own := s.All[Ref{of.Namespace, of.Service, of.Run}]
	if own != nil && own.size() >= maxStreamsOfRun {
		return false
	}
	others := mlattr.Where(maps.Values(s.All), func(one *Run) bool { return one.removable(now) != 0 })
	if len(others) == 0 {
		s.full = now
		return false
	}
	most := slices.MinFunc(others, func(a, b *Run) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), a.LastSeen.Compare(b.LastSeen))
	})
	if own != nil && own.size() >= most.size() {
		return false
	}
	s.Limits.Refuse("runs", most.Key, now)
	s.remove(most)
	return true
}

// replaceRanks forgets the ranks of the run that matters least.
func (s *Set) replaceRanks(now time.Time) bool {
	least := s.runLeaves(&s.leavingRanks, now, func(r *Run) int { return len(r.Ranks) })
	if least == nil {
		return false
	}
	s.ranks -= len(least.Ranks)
	clear(least.Ranks)
	return true
}

// removable is 0 for a run that must stay, else its turn to leave.
func (r *Run) removable(now time.Time) int {
	switch r.CurrentState(now) {
	case mlattr.RunEnded:
		return 1
	case mlattr.RunSilent, mlattr.RunFailed:
		return 2
	case mlattr.RunUnknown:
		// Spans can name any number of runs; of a real one ml_metrics has series.
		if r.size() == 0 || now.Sub(r.LastSeen) > series.GoneAfter {
			return 3
		}
	}
	return 0
}

func (s *Set) remove(r *Run) {
	for _, one := range slices.Concat(r.streams, r.Durations) {
		s.streams.Remove(one)
		one.Gone, one.Run = true, nil // so that its other owner drops it
	}
	s.ranks -= len(r.Ranks)
	clear(s.found)
	delete(s.All, r.Ref)
	delete(s.ByKey, r.Key)
	s.byID[r.ID] = slices.DeleteFunc(s.byID[r.ID], func(other *Run) bool { return other == r })
	if len(s.byID[r.ID]) == 0 {
		delete(s.byID, r.ID)
	}
	r.due = time.Time{}
}

// Updated takes over what a point of a stream says of the run besides its value.
func (r *Run) Updated(one *series.Stream, changed bool, now time.Time) {
	l := &one.Labels
	r.LastSeen = now
	if changed && (one.Series == series.StepDuration || one.Series == series.LastStep) {
		r.sent(now) // also of a client without spans
	}
	if r.due.IsZero() {
		r.due = now
		r.in.due = append(r.in.due, r)
	}
	if changed && r.in.Fleet {
		r.noteWriter(one)
	}
	if !changed && len(r.Ranks) > 0 {
		if one.Series == series.RunState && one.Value == 1 {
			r.noteState(now) // that of another collector may have ended
		}
		return
	}
	r.Simulated = r.Simulated || one.Simulated
	if l.Job != "" {
		r.Job = l.Job
	}
	// The series of a whole run have neither rank nor host.
	if l.Rank != "" || l.Host != "" {
		rank := r.in.rankOf(r, l.Rank, l.Host, now)
		// Series of an earlier host stay for a while.
		if rank != nil && (rank.host == "" || one.Series == series.LastStep && one.Value > rank.lastStep) {
			rank.lastStep = max(rank.lastStep, one.Value)
			r.in.moveRank(r, rank, l.Host)
		}
	}
	if one.Series == series.RunState {
		r.noteState(now)
	}
}

// CurrentState returns the state of a run by ml_metrics: of several collectors, by the
// one with the newest evidence.
func (r *Run) CurrentState(now time.Time) string {
	worst := ""
	for _, one := range r.states {
		if one.Value == 1 && one.Live(now) && r.Written(one) {
			if state := one.Labels.Own[0]; Severity(state) > Severity(worst) || worst == "" {
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
	if mlattr.RunOver(r.State) || r.State == mlattr.RunSilent {
		return r.State
	}
	return mlattr.RunUnknown
}

// moveRank notes on which host a rank is.
func (s *Set) moveRank(r *Run, one *rank, host string) {
	if host == "" || host == one.host && r.Hosts[host] {
		return
	}
	host = s.Texts.Of(host)
	one.host = host
	if r.Hosts[host] || len(r.Hosts) >= fleet.MaxHosts {
		return
	}
	r.Hosts[host] = true
	clear(s.found)
}

// noteState notes a new state of a run.
func (r *Run) noteState(now time.Time) {
	state := r.CurrentState(now)
	if state == r.State || state == mlattr.RunUnknown {
		return
	}
	was := r.State
	r.State, r.stateNoted = state, now
	if was != mlattr.RunUnknown {
		r.in.changes.Mark(r.Key, api.Mark{Time: now.UTC(), Kind: "state", Text: api.StateWord(state) + " (was " + api.StateWord(was) + ")"})
	}
}

// Find returns the run of a service with an id, else any with the id, one that has a
// process on the host first, and nil if there is none.
func (s *Set) Find(namespace, service, id, host string) *Run {
	if id == "" {
		return nil
	}
	if r := s.All[Ref{namespace, service, id}]; r != nil {
		return r
	}
	return s.withID(id, service, host)
}

// withID returns the run with an id: that of the service, else one that has a
// process on the host, else the one that was seen first. Services that share an
// id, such as a program and its model server, are several runs.
func (s *Set) withID(id, service, host string) *Run {
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
		if len(s.found) < series.MaxStreams {
			s.found[ref] = best
		}
	}
	return best
}

// KeyOf returns the key of the run of a service with an id, "" if there is none.
func (s *Set) KeyOf(id, service string) string {
	if r := s.withID(id, service, ""); r != nil {
		return r.Key
	}
	return ""
}

// runRef is what a run is looked for by.
type runRef struct{ id, service, host string }

func firstOf(all []*Run, service, host string) *Run {
	turn := func(r *Run) int {
		switch {
		case service != "" && r.Service == service:
			return 0
		case host != "" && r.Hosts[host]:
			return 1
		default:
			return 2
		}
	}
	return slices.MinFunc(all, func(a, b *Run) int {
		return cmp.Or(cmp.Compare(turn(a), turn(b)), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
}

// Prune removes the runs that have sent nothing for long, and good ones of more than a week
// ago.
func (s *Set) Prune(now time.Time) {
	s.leaving.Forget()
	s.leavingRanks.Forget()
	for _, r := range s.All {
		if now.Sub(r.LastSeen) > s.History {
			s.remove(r)
		}
	}
	s.Good = slices.DeleteFunc(s.Good, func(g *GoodRun) bool { return now.Sub(g.Ended) > kept.Week })
}

// SavedRun is what is known of a run.
type SavedRun struct {
	Known
	// Fine and Coarse are its curves, as far as there was room for them.
	Fine   *curves.SavedPoints `json:"fine,omitempty"`
	Coarse *curves.SavedPoints `json:"coarse,omitempty"`
}

// maxCurves limits the curves that are written, in bytes.
const maxCurves = 6 << 20

// Saved returns the runs for restore, those that were seen last at the end.
func (s *Set) Saved() (all []SavedRun) {
	// The curves of runs that were seen longest ago have no room first.
	room := maxCurves
	for _, r := range slices.SortedFunc(maps.Values(s.All), func(a, b *Run) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Key, b.Key))
	}) {
		one := SavedRun{Known: r.Known}
		if room -= r.Curves.Fine.Size() + r.Curves.Coarse.Size(); room >= 0 {
			one.Fine, one.Coarse = r.Curves.Fine.Saved(), r.Curves.Coarse.Saved()
		}
		all = append(all, one)
	}
	slices.Reverse(all)
	return all
}

// Restore adds a run that saved has returned, unless it is older than what is kept.
func (s *Set) Restore(in SavedRun, now time.Time) {
	if s.All[in.Ref] != nil || len(s.All) >= s.MaxRuns || now.Sub(in.LastSeen) > s.History {
		return
	}
	r := s.Of(in.Namespace, in.Service, in.ID, share.OriginOf(0, in.Service), now)
	if r == nil {
		return
	}
	r.FirstSeen, r.LastSeen = kept.Plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	r.Again = r.LastSeen.Sub(r.FirstSeen) >= againAfter
	r.Job, r.JobName, r.User, r.Version = s.Texts.Of(in.Job), s.Texts.Of(in.JobName), s.Texts.Of(in.User), s.Texts.Of(in.Version)
	if r.Simulated = in.Simulated; !in.Checkpoint.IsZero() {
		r.Checkpoint = kept.Plausible(in.Checkpoint, in.LastSeen)
	}
	if Severity(in.State) > 0 {
		r.State = in.State
	}
	r.Curves.Restore(in.Fine, in.Coarse, now, s.Interval, s.History)
}
