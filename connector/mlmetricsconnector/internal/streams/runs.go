package streams

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// silentAfter is the time without updates after which a run of unknown
	// standing may be replaced.
	silentAfter = 5 * time.Minute
	// searchAgain is the time after an unsuccessful search for a replaceable
	// run until the next one, so that a flood of new runs does not cause a
	// search each.
	searchAgain = time.Second
	// againAfter is when a run whose program sends something has not come only once.
	againAfter = time.Minute
)

// Standing determines whether a run may be replaced by a new one.
type Standing uint8

const (
	// NotJudged is the standing of a run without one: it is silent if nothing
	// has updated it for a while.
	NotJudged Standing = iota
	// Ended runs are replaced first.
	Ended
	// Silent runs are replaced if none has ended.
	Silent
	// Running runs are not replaced, nor are those that hang and hold GPUs.
	Running
)

// RunKey identifies a run.
type RunKey struct {
	Resource Resource
	ID       string
}

// Clone returns a copy that shares no memory.
func (k RunKey) Clone() RunKey { return RunKey{k.Resource.Clone(), strings.Clone(k.ID)} }

// Evicted are replaced runs, each with the time of its replacement.
type Evicted map[RunKey]time.Time

// runs are the runs with streams of their own.
type runs struct {
	mu   sync.Mutex
	seen map[RunKey]*liveRun
	// evicted are those since the last call of Store.Evicted.
	evicted  Evicted
	searched time.Time
	// shares has since when senders and their services have sent data.
	shares *share.History
}

// liveRun is a run with streams of its own.
type liveRun struct {
	origin share.Origin
	// first is when the run was admitted, updated the time of the latest change.
	first, updated time.Time
	// again reports whether its program has sent something againAfter that.
	again    bool
	standing Standing
	// held reports whether its processes hold GPUs.
	held bool
}

// admit reports whether the run may have streams of its own, and if so keeps it
// alive. At the limit it replaces a run that has ended or is silent.
func (r *runs) admit(key RunKey, from share.Origin, limit int, now time.Time) bool {
	sent := from != (share.Origin{})
	if sent {
		r.shares.Succeeded(from, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	run, live := r.seen[key]
	if at, gone := r.evicted[key]; gone && !now.After(at) {
		return false // the state of a run that has just given way is no sign of life
	}
	if !live && len(r.seen) >= limit && !r.evict(now) {
		return false
	}
	if !live {
		key = key.Clone()
		run = &liveRun{origin: from, first: now, updated: now}
		r.seen[key] = run
	}
	run.updated = shared.Later(run.updated, now)
	run.origin = cmp.Or(run.origin, from) // a restart forgets it
	run.again = run.again || sent && now.Sub(run.first) >= againAfter
	return true
}

// Live reports whether a run has streams of its own.
func (s *Store) Live(key RunKey) bool {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	_, live := s.runs.seen[key]
	return live
}

// evict replaces a run, and reports whether one could be. It is one of a sender and a
// service that has more than its share, of one service first one that came only once, then
// the ended one that was updated longest ago, then such a silent one. Unless those that
// have more than their share came only once, any run that has ended or is silent may be
// replaced.
func (r *runs) evict(now time.Time) bool {
	if now.Before(r.searched.Add(searchAgain)) {
		return false
	}
	keys := slices.SortedFunc(maps.Keys(r.seen), func(x, y RunKey) int {
		a, b := r.seen[x], r.seen[y]
		return cmp.Or(cmp.Compare(a.class(now), b.class(now)), cmp.Compare(b.judged(now), a.judged(now)), b.updated.Compare(a.updated))
	})
	items := mlattr.Mapped(keys, func(key RunKey) share.Item { return share.Item{Path: r.shares.Path(r.seen[key].origin), Weight: 1} })
	leave := share.Leaving(items, int64(len(keys)/16+1))
	if !slices.ContainsFunc(leave, func(i int) bool { return !r.seen[keys[i]].again }) {
		for i := range slices.Backward(keys) {
			leave = append(leave, i)
		}
	}
	for _, i := range leave {
		if r.seen[keys[i]].judged(now) <= Silent {
			delete(r.seen, keys[i])
			r.evicted[keys[i]] = now
			return true
		}
	}
	r.searched = now
	return false
}

// judged returns the standing of the run, also of one without.
func (l *liveRun) judged(now time.Time) Standing {
	silence := now.Sub(l.updated)
	switch {
	case l.standing == Running && !l.held && silence > max(againAfter, 2*l.updated.Sub(l.first)):
		return Silent // a short one that has probably ended without a sign
	case l.standing != NotJudged:
		return l.standing
	case silence > silentAfter:
		return Silent
	default:
		return Running
	}
}

// class orders the runs that are not replaced before others, and those that came only once
// behind them.
func (l *liveRun) class(now time.Time) int {
	switch {
	case !l.again:
		return 2
	case l.judged(now) <= Silent:
		return 1
	}
	return 0
}

// held returns the runs whose processes hold GPUs.
func (r *runs) held() map[RunKey]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(map[RunKey]bool)
	for key, run := range r.seen {
		if run.held {
			held[key] = true
		}
	}
	return held
}

// expire removes the runs without updates for longer than expiration that hold
// no GPU. They have no streams left, because each update of a stream is one of
// its run.
func (r *runs) expire(expiration time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.seen, func(_ RunKey, run *liveRun) bool {
		return expiration > 0 && !run.held && now.Sub(run.updated) > expiration
	})
}

// Judge sets the standing of the given runs, and which runs hold GPUs. All
// other runs are NotJudged.
func (s *Store) Judge(standings map[RunKey]Standing, holds func(run string) bool) {
	r := &s.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, run := range r.seen {
		run.standing, run.held = standings[key], holds(key.ID)
	}
}

// Owners returns the program of each live run, by its id: the first in order if
// there are several.
func (s *Store) Owners() map[string]Resource {
	r := &s.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	owners := make(map[string]Resource, len(r.seen))
	for key := range r.seen {
		if of, known := owners[key.ID]; !known || key.Resource.Compare(of) < 0 {
			owners[key.ID] = key.Resource
		}
	}
	return owners
}

// Evicted returns the runs that were replaced since the last call.
func (s *Store) Evicted() Evicted {
	r := &s.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	evicted := r.evicted
	r.evicted = make(Evicted)
	return evicted
}
