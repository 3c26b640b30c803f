package sample

import (
	"math"
	"slices"
	"time"
)

// Tick decides what has waited long enough. It reports whether there is anything
// to send.
func (s *Sampler) Tick(now time.Time) bool { return s.decide(now, now.UnixNano()) }

// DecideAll decides everything, for the end.
func (s *Sampler) DecideAll(now time.Time) { s.decide(now, math.MaxInt64) }

// decide decides what is due at a time.
func (s *Sampler) decide(now time.Time, at int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.calls.queue) > 0 && s.calls.queue[0].due <= at {
		s.decideCall(pop(&s.calls.queue), now.UnixNano())
	}
	for _, r := range s.runs.byKey {
		r.decide(at)
	}
	for len(s.groups) > 0 && s.groups[0].state != waiting {
		pop(&s.groups)
	}
	for len(s.retained) > 0 && s.retained[0].state != retained {
		pop(&s.retained)
	}
	return len(s.out) > 0
}

// decideCall decides a unit, unless it is part of a step. Spans between the last
// step of their trace and no further one follow that step.
func (s *Sampler) decideCall(u *Unit, now int64) {
	if u.state != waiting || u.step != nil {
		return
	}
	if t := u.trace; t.next == u && t.current != nil && t.current.step != nil {
		t.next = nil
		s.bind(u, t.current.step)
		return
	}
	reason := s.calls.reasonOf(u, &s.cfg.Calls, now)
	durations, duration := s.calls.durationsOf(u)
	durations.Add(duration)
	s.counts.Units[Call][reason]++
	to, count := reason.outcome(s.cfg.Calls.OneIn)
	s.settle(u, to, count)
}

// Drops reports whether the span of a trace that ended at a time, in nanoseconds since
// 1970, is dropped, or would be if it were decided now. Of what is not remembered it
// reports false.
func (s *Sampler) Drops(id TraceID, span SpanID, ended int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.traces.known(id)
	if t == nil || t.current == nil || slices.Contains(t.alone, span) {
		return false
	}
	u := t.current
	if u.step == nil {
		return u.state == dropped || u.state == waiting && s.calls.reasonOf(u, &s.cfg.Calls, u.arrived) == Dropped
	}
	of := u.step
	if ended <= of.begin { // of an earlier step
		if of = of.rank.at(ended); ended <= of.begin {
			return false // it is forgotten
		}
	}
	g := of.group
	return g.state != kept && (g.state != waiting || g.reason() == Dropped)
}

// Release keeps the newest steps of a run, and of those that have a rank on a host, by
// their hashes. 0 is none.
func (s *Sampler) Release(id, host uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs.byKey {
		if r.key == id || host != 0 && r.isOn(host) {
			r.release(nil)
		}
	}
}

// makeRoom frees memory for size bytes: first steps that are retained, the oldest
// first, then by deciding early what has waited longest.
func (s *Sampler) makeRoom(size int64) {
	for s.bytes+size > s.most {
		hasGroup, hasCall := len(s.groups) > 0, len(s.calls.queue) > 0
		switch {
		case len(s.retained) > 0:
			if g := pop(&s.retained); g.state == retained {
				g.conclude(Dropped, dropped, 0)
			}
		case hasGroup && s.groups[0].state != waiting:
			pop(&s.groups)
		case hasCall && (s.calls.queue[0].state != waiting || s.calls.queue[0].step != nil):
			pop(&s.calls.queue)
		case hasGroup && (!hasCall || s.groups[0].created <= s.calls.queue[0].arrived):
			g := pop(&s.groups)
			s.counts.Early += int64(len(g.steps))
			g.decide()
		case hasCall:
			u := pop(&s.calls.queue)
			s.counts.Early++
			s.decideCall(u, u.due)
		default:
			return
		}
	}
}
