package streams

import (
	"strings"
	"sync"
	"time"
)

const (
	// silentAfter is the time without updates after which a run of unknown
	// standing may be replaced.
	silentAfter = 5 * time.Minute
	// searchAgain is the time after an unsuccessful search for a replaceable
	// run until the next one, so that a flood of new runs does not cause a
	// search each.
	searchAgain = time.Second
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
	// Running runs are not replaced.
	Running
	// Hung runs hold GPUs and take no steps. They are not replaced.
	Hung
)

// RunKey identifies a run.
type RunKey struct {
	Resource Resource
	ID       string
}

// Evicted are replaced runs, each with the time of its replacement.
type Evicted map[RunKey]time.Time

// runs are the runs with streams of their own.
type runs struct {
	mu   sync.Mutex
	seen map[RunKey]*liveRun
	// evicted are those since the last call of Store.Evicted.
	evicted  Evicted
	searched time.Time
}

// liveRun is a run with streams of its own.
type liveRun struct {
	// updated is the time of the latest change.
	updated  time.Time
	standing Standing
	// held reports whether its processes hold GPUs.
	held bool
}

func newRuns() runs { return runs{seen: make(map[RunKey]*liveRun), evicted: make(Evicted)} }

// admit reports whether the run may have streams of its own, and if so keeps it
// alive. At the limit it replaces a run that has ended or is silent.
func (r *runs) admit(key RunKey, limit int, now time.Time) bool {
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
		key = RunKey{Resource: key.Resource.Clone(), ID: strings.Clone(key.ID)}
		run = &liveRun{updated: now}
		r.seen[key] = run
	}
	if now.After(run.updated) {
		run.updated = now
	}
	return true
}

// evict replaces the first replaceable run, and reports whether there was one.
func (r *runs) evict(now time.Time) bool {
	if now.Before(r.searched.Add(searchAgain)) {
		return false
	}
	var first RunKey
	var standing Standing
	var updated time.Time
	for key, run := range r.seen {
		its := run.standing
		if its == NotJudged {
			its = Running
			if now.Sub(run.updated) > silentAfter {
				its = Silent
			}
		}
		if its > Silent || standing != NotJudged && (its > standing || its == standing && !run.updated.Before(updated)) {
			continue
		}
		first, standing, updated = key, its, run.updated
	}
	if standing == NotJudged {
		r.searched = now
		return false
	}
	delete(r.seen, first)
	r.evicted[first] = now
	return true
}

// held returns the runs whose processes hold GPUs.
func (r *runs) held() map[RunKey]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var held map[RunKey]bool
	for key, run := range r.seen {
		if run.held {
			if held == nil {
				held = make(map[RunKey]bool)
			}
			held[key] = true
		}
	}
	return held
}

// expire removes the runs without updates for longer than expiration that hold
// no GPU. They have no streams left, because each update of a stream is one of
// its run.
func (r *runs) expire(expiration time.Duration, now time.Time) {
	if expiration <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, run := range r.seen {
		if !run.held && now.Sub(run.updated) > expiration {
			delete(r.seen, key)
		}
	}
}

func (r *runs) len() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.seen))
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
