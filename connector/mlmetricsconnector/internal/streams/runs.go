package streams

import (
	"strings"
	"sync"
	"time"
)

const (
	// silentAfter is how long nothing must have updated a run of whose state
	// nothing is known before it gives way to a new one.
	silentAfter = 5 * time.Minute
	// searchAgain is how long no run is looked for that gives way after none was
	// found, so that a flood of new runs costs no search each.
	searchAgain = time.Second
)

// Standing is what is known of a run when there is no room for another.
type Standing uint8

const (
	// NotJudged is the standing of a run that nobody has judged: it is silent
	// where nothing has updated it for a while.
	NotJudged Standing = iota
	// Ended runs give way first.
	Ended
	// Silent runs give way when none has ended.
	Silent
	// Running runs do not give way.
	Running
	// Hung runs hold GPUs and make no steps. They do not give way.
	Hung
)

// RunKey names a run.
type RunKey struct {
	Resource Resource
	ID       string
}

// Evicted are runs that gave way to others, each with the time.
type Evicted map[RunKey]time.Time

// runs knows the runs that have streams of their own.
type runs struct {
	mu   sync.Mutex
	seen map[RunKey]*liveRun
	// evicted are those since Store.Evicted was called last.
	evicted  Evicted
	searched time.Time
}

// liveRun is what is known of a run with streams of its own.
type liveRun struct {
	// updated is when anything of the run changed last.
	updated  time.Time
	standing Standing
	// held is true while its processes hold GPUs.
	held bool
}

func newRuns() runs { return runs{seen: make(map[RunKey]*liveRun), evicted: make(Evicted)} }

// admit reports whether the run may have streams of its own, and keeps it
// alive if so. Where there are too many, one that has ended or is silent gives
// way.
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

// evict takes the streams of the run that gives way first, if there is one.
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

// expire forgets the runs that nothing has updated for longer than
// expiration and that hold no GPU. No stream of theirs is left then, as each
// update of a stream is one of its run.
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

// Judge says what is known of the runs: the standing of each that somebody
// judges, and which hold GPUs. The others are judged by nobody.
func (s *Store) Judge(standings map[RunKey]Standing, holds func(run string) bool) {
	r := &s.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, run := range r.seen {
		run.standing, run.held = standings[key], holds(key.ID)
	}
}

// Evicted returns the runs that gave way to others since it was called last.
func (s *Store) Evicted() Evicted {
	r := &s.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	evicted := r.evicted
	r.evicted = make(Evicted)
	return evicted
}
