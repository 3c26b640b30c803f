package incident

import (
	"time"
)

// RankOrder says when a rank failed, compared to the other ranks of its run.
type RankOrder int

const (
	// Alone means that no other rank's incident waits.
	Alone RankOrder = iota
	// Later means that another rank failed before it.
	Later
	// Earlier means that it failed before the one that waits.
	Earlier
)

// RankOrder returns whether n failed before or after the incident of another rank
// of the run that waits.
func (tr *Tracker) RankOrder(n *Incident) RankOrder {
	if n.Run == "" || n.Rank == "" {
		return Alone
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	first := tr.runs[n.Run]
	switch {
	case first == nil || first.Rank == n.Rank || first.stage != waiting:
		return Alone
	case n.At.Before(first.At):
		return Earlier
	}
	return Later
}

// ListRank lists n in the artifact of the rank that failed first, also after
// that was written.
func (tr *Tracker) ListRank(n *Incident) {
	if n.Run == "" || n.Rank == "" {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	first := tr.runs[n.Run]
	if first == nil || first == n || first.Rank == n.Rank || first.stage == gone {
		return
	}
	if first.list(n.asRank()) && first.stage != waiting {
		tr.stale[first] = struct{}{}
	}
}

// LeadRanks makes n, which failed earlier, the incident of its run, and withdraws
// and returns the one that waited.
func (tr *Tracker) LeadRanks(n *Incident) *Incident {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	later := tr.runs[n.Run]
	if later == nil || later == n || later.stage != waiting || n.stage != waiting || later.Rank == n.Rank {
		return nil
	}
	n.listRanksOf(later)
	n.due = later.due
	tr.withdraw(later)
	tr.runs[n.Run] = n
	return later
}

// Lead replaces the incident that waits by n, which failed earlier on another rank
// and in the same group.
func (tr *Tracker) Lead(n *Incident, now time.Time) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i := tr.runs[n.Run]
	if i == nil || i.stage != waiting || i.Group != n.Group || !tr.makeRoom(int64(n.Failure.Weight), n.trace, n.Failure.SentBy) || i.stage != waiting {
		return
	}
	f := n.Failure
	f.SeenAt, f.Variant = i.Failure.SeenAt, i.Failure.Variant
	n.listRanksOf(i)
	tr.bytes += int64(n.Failure.Weight) - int64(i.Failure.Weight)
	was := i.trace
	i.Failure = n.Failure
	i.trace, i.span, i.parent, i.fromLog = n.trace, n.span, n.parent, n.fromLog
	i.Rank, i.host, i.name, i.At, i.Correlation = n.Rank, n.host, n.name, n.At, n.Correlation
	tr.move(i, was, now)
}
