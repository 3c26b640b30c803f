package sample

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

// fewTokens is added to the output tokens that a duration is divided by: the time
// to the first token counts as so many.
const fewTokens = 50

// patience is how many times the usual step a step without an end waits for its
// next span, if that is longer than the configured wait. forgotten is after how
// long without spans the retained steps of a run are removed.
const (
	patience  = 3
	forgotten = int64(time.Hour)
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
	for len(s.calls) > 0 && s.calls[0].due <= at {
		s.decideCall(pop(&s.calls), now.UnixNano())
	}
	for _, r := range s.runs {
		s.decideRun(r, at)
	}
	for len(s.groups) > 0 && s.groups[0].state != waiting {
		pop(&s.groups)
	}
	for len(s.retained) > 0 && s.retained[0].state != retained {
		pop(&s.retained)
	}
	return len(s.out) > 0
}

// decideRun decides the groups of a run that are due at a time, and frees those that are
// retained if it has long had no spans.
func (s *Sampler) decideRun(r *run, at int64) {
	for _, g := range r.groups {
		if g.state == waiting && g.due(s.cfg.Wait) <= at {
			s.decideGroup(g)
		}
	}
	if at-r.seen > forgotten {
		s.freeRetained(r, 0)
	}
}

// due returns when a group is decided.
func (g *group) due(wait time.Duration) int64 {
	if g.over > 0 {
		return g.over + int64(wait)
	}
	return g.arrived + max(int64(wait), int64(patience*g.run.durations.Median()*float64(time.Second)))
}

// decideGroup decides the steps that the ranks took at the same time.
func (s *Sampler) decideGroup(g *group) {
	reason := s.reasonOf(g)
	if longest := g.longest(); longest > 0 {
		g.run.durations.Add(longest)
	}
	g.state, g.count = reason.outcome(s.cfg.Steps.OneIn)
	if g.state == dropped && s.cfg.Steps.Before > 0 {
		g.state = retained
		g.run.retained = append(g.run.retained, g)
		s.retained = append(s.retained, g)
	} else {
		s.counts.Units[Step][reason] += int64(len(g.steps))
	}
	for _, of := range g.steps {
		for _, u := range of.units {
			s.settle(u, g.state, g.count)
		}
	}
	s.freeRetained(g.run, s.cfg.Steps.Before)
}

// longest returns the duration of the slowest rank's step, in seconds, or 0 if none is
// known.
func (g *group) longest() float64 {
	longest := int64(0)
	for _, of := range g.steps {
		if of.end > 0 {
			longest = max(longest, of.end-of.begin-of.excluded)
		}
	}
	return float64(longest) / 1e9
}

// reasonOf returns why a group is kept if it is decided now.
func (s *Sampler) reasonOf(g *group) Reason {
	why, cfg := g.why, &s.cfg.Steps
	why.add(Slow, g.run.durations.Slow(g.longest(), cfg.SlowQuantile, cfg.Slow))
	why.add(Systematic, rule.Step(g.run.key, g.number, g.begin, uint64(cfg.OneIn)))
	return why.first()
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
	reason := s.reasonOfCall(u, now)
	durations, duration := s.durationsOf(u)
	durations.Add(duration)
	s.counts.Units[Call][reason]++
	to, count := reason.outcome(s.cfg.Calls.OneIn)
	s.settle(u, to, count)
}

// reasonOfCall returns why a call is kept if it is decided now.
func (s *Sampler) reasonOfCall(u *Unit, now int64) Reason {
	why, cfg, chosen := u.why, &s.cfg.Calls, u.conversation
	if chosen == 0 {
		chosen = rule.Hash(string(u.trace.id[:]))
	} else {
		until, fails := s.failing.Get(chosen)
		why.add(Conversation, fails && until >= now)
	}
	durations, duration := s.durationsOf(u)
	why.add(Slow, durations.Slow(duration, cfg.SlowQuantile, cfg.Slow))
	why.add(Systematic, rule.Conversation(chosen, uint64(cfg.OneIn)))
	return why.first()
}

// durationsOf returns the durations that a call is compared with, and its own.
func (s *Sampler) durationsOf(u *Unit) (*rule.Durations, float64) {
	key, duration := u.like, float64(u.end-u.start)/1e9
	if u.tokens > 0 {
		key, duration = ^key, duration/float64(u.tokens+fewTokens)
	}
	of, known := s.durations.Get(key)
	if !known {
		of = new(rule.Durations)
		s.durations.Put(key, of)
	}
	return of, duration
}

// Drops reports whether the span of a trace that ended at a time, in nanoseconds since
// 1970, is dropped, or would be if it were decided now. Of what is not remembered it
// reports false.
func (s *Sampler) Drops(id TraceID, span SpanID, ended int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := cmp.Or(s.young[id], s.old[id])
	if t == nil || t.current == nil || slices.Contains(t.alone, span) {
		return false
	}
	u := t.current
	if u.step == nil {
		return u.state == dropped || u.state == waiting && s.reasonOfCall(u, u.arrived) == Dropped
	}
	of := u.step
	if ended <= of.begin { // of an earlier step
		if of = of.rank.at(ended); ended <= of.begin {
			return false // it is forgotten
		}
	}
	switch g := of.group; g.state {
	case waiting:
		return s.reasonOf(g) == Dropped
	default:
		return g.state != kept
	}
}

// settle applies a decision to a unit.
func (s *Sampler) settle(u *Unit, to state, count int64) {
	if u.state == waiting {
		u.trace.waits--
		s.live--
	}
	if u.state <= retained {
		s.bytes -= unitBytes
	}
	u.state, u.count = to, count
	if to == retained {
		s.bytes += unitBytes
		return
	}
	spans := int64(0)
	for i := range u.fragments {
		spans += u.fragments[i].spans
	}
	switch {
	case len(u.fragments) == 0:
	case to == kept:
		s.counts.Kept += spans
		s.out = append(s.out, Kept{Trace: u.trace.id, Count: count, Spans: spans, fragments: u.fragments})
	default:
		s.counts.Dropped += spans
		s.free(u.fragments)
	}
	u.fragments = nil
}

// freeRetained removes the oldest retained groups of a run, of more than a number.
func (s *Sampler) freeRetained(r *run, most int) {
	for len(r.retained) > most {
		g := r.retained[0]
		r.retained = slices.Delete(r.retained, 0, 1)
		s.counts.Units[Step][Dropped] += int64(len(g.steps))
		s.unretain(g, dropped)
	}
}

// unretain decides a retained group for good.
func (s *Sampler) unretain(g *group, to state) {
	g.state = to
	for _, of := range g.steps {
		for _, u := range of.units {
			s.settle(u, to, 0)
		}
	}
}

// release keeps the steps before a group, or the newest ones for nil. Those that
// were decided already count 0: the sample represents them without these.
func (s *Sampler) release(r *run, before *group) {
	left := s.cfg.Steps.Before
	for i := len(r.groups) - 1; i >= 0 && left > 0; i-- {
		g := r.groups[i]
		if before != nil && g.begin >= before.begin {
			continue
		}
		left--
		switch g.state {
		case waiting:
			g.why.add(Before, true)
		case retained:
			r.retained = slices.DeleteFunc(r.retained, func(other *group) bool { return other == g })
			s.counts.Units[Step][Before] += int64(len(g.steps))
			s.unretain(g, kept)
		}
	}
}

// Release keeps the newest steps of a run, and of those that have a rank on a host, by
// their hashes. 0 is none.
func (s *Sampler) Release(id, host uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.key == id || host != 0 && r.isOn(host) {
			s.release(r, nil)
		}
	}
}

// makeRoom frees memory for size bytes: first steps that are retained, the oldest
// first, then by deciding early what has waited longest.
func (s *Sampler) makeRoom(size int64) {
	for s.bytes+size > s.cfg.MaxBytes {
		if len(s.retained) > 0 {
			// With the retained groups of the run that are older.
			for g := pop(&s.retained); g.state == retained; {
				s.freeRetained(g.run, len(g.run.retained)-1)
			}
			continue
		}
		hasGroup, hasCall := len(s.groups) > 0, len(s.calls) > 0
		switch {
		case hasGroup && s.groups[0].state != waiting:
			pop(&s.groups)
		case hasCall && (s.calls[0].state != waiting || s.calls[0].step != nil):
			pop(&s.calls)
		case hasGroup && (!hasCall || s.groups[0].created <= s.calls[0].arrived):
			g := pop(&s.groups)
			s.counts.Early += int64(len(g.steps))
			s.decideGroup(g)
		case hasCall:
			u := pop(&s.calls)
			s.counts.Early++
			s.decideCall(u, u.due)
		default:
			return
		}
	}
}

// forgetRuns decides and forgets the quarter of the runs that were not seen for
// longest.
func (s *Sampler) forgetRuns() {
	all := slices.SortedFunc(maps.Values(s.runs), func(a, b *run) int { return cmp.Compare(a.seen, b.seen) })
	for _, r := range all[:len(all)/4+1] {
		s.decideRun(r, math.MaxInt64)
		delete(s.runs, r.key)
	}
	s.last = nil
}
