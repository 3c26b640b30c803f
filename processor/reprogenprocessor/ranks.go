package reprogenprocessor

import (
	"time"
)

// rankRuling says what a failure is beside those of the job's other ranks.
type rankRuling int

const (
	rankAlone   rankRuling = iota // no other rank has failed just now
	rankLater                     // another rank failed before it
	rankEarlier                   // it failed before the one that waits
)

// rankOf says whether another rank of the run failed before n, and waits.
func (b *book) rankOf(n *incident) rankRuling {
	if n.run == "" || n.rank == "" {
		return rankAlone
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.jobs[n.run]
	switch {
	case first == nil || first.rank == n.rank || first.stage == stageGone:
		return rankAlone
	case first.stage != stageWaiting:
		return rankAlone
	case n.at.Before(first.at):
		return rankEarlier
	}
	return rankLater
}

// listRank notes n in the artefact of the rank that failed first, also after
// that was written.
func (b *book) listRank(n *incident) {
	if n.run == "" || n.rank == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.jobs[n.run]
	if first == nil || first == n || first.rank == n.rank || first.stage == stageGone {
		return
	}
	if first.list(n.asRank()) && first.stage != stageWaiting {
		b.dirty[first] = struct{}{}
	}
}

// leadRanks makes n, which failed earlier, the artefact of its job, and
// withdraws the one that waited.
func (b *book) leadRanks(n *incident) *incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	later := b.jobs[n.run]
	if later == nil || later == n || later.stage != stageWaiting || n.stage != stageWaiting || later.rank == n.rank {
		return nil
	}
	for _, r := range later.failure.Ranks {
		if r.Rank != n.rank {
			n.list(r)
		}
	}
	n.list(later.asRank())
	n.due = later.due
	b.withdraw(later)
	b.jobs[n.run] = n
	return later
}

// lead puts n, which failed earlier on another rank and in the same group, in
// the place of the incident that waits.
func (b *book) lead(n *incident, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.jobs[n.run]
	if i == nil || i.stage != stageWaiting || i.group != n.group || !b.makeRoom(int64(n.failure.Weight), n.trace, n.failure.SentBy) || i.stage != stageWaiting {
		return
	}
	later := i.asRank()
	f := n.failure
	f.SeenAt, f.Variant = i.failure.SeenAt, i.failure.Variant
	for _, r := range i.failure.Ranks {
		if r.Rank != n.rank {
			n.list(r)
		}
	}
	n.list(later)
	b.bytes += int64(n.failure.Weight) - int64(i.failure.Weight)
	was := i.trace
	i.failure = n.failure
	i.trace, i.span, i.parent, i.fromLog = n.trace, n.span, n.parent, n.fromLog
	i.rank, i.host, i.name, i.at, i.correlation = n.rank, n.host, n.name, n.at, n.correlation
	b.move(i, was, now)
}
