package identity

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// establishedAfter is the time in seconds from the admission of an identity to its
	// last sighting after which it never leaves for one of its own sender.
	establishedAfter = 3600
	// idleAfter is the time in seconds without a sighting after which an identity that
	// is not established leaves for a new one.
	idleAfter = 300
	// displacedPart is the part of a limit whose identities leave at once, and within
	// each expiration.
	displacedPart = 8
)

// departures are the identities that leave next, in order, each list from its end.
type departures struct {
	at uint32
	// idle leave for any new identity, others only for those of a sender or a group
	// that has fewer.
	idle, others []departure
}

// departure is an identity that may leave, and when it was last seen.
type departure struct {
	id   uint64
	seen uint32
}

func newDisplacements(total int, expiration uint32) *share.Budget {
	size := max(1, total/displacedPart)
	return share.NewBudget(size, float64(size)*60/float64(expiration))
}

// makeRoom displaces identities of a full table until a new one fits, and reports
// whether it does. Each sender has an equal share, and all that are not established
// have one together. What leaves is of a sender that has more than its share: an identity
// that was not seen for a while, whoever sends the new one, else the youngest, if the
// new one is of a sender that has fewer.
func (t *table) makeRoom(r *request, now uint32) bool {
	for {
		scope := uint64(everyGroup)
		if t.groups[r.group] >= t.limit {
			scope = r.group
		} else if t.used(r) < 1 {
			return true
		}
		id, ok := t.nextToLeave(r, scope, now)
		if !ok || !t.displacements.Take(share.ClaimOf(r.sender), true, time.Unix(int64(now), 0)) {
			return false
		}
		t.remove(id, t.admitted[id])
	}
}

// everyGroup is the scope of departures of all groups.
const everyGroup = 0

// nextToLeave returns the identity that leaves for a new one, if there is one.
func (t *table) nextToLeave(r *request, scope uint64, now uint32) (id uint64, ok bool) {
	d := t.departures[scope]
	if d == nil || now >= d.at+sweepInterval {
		d = t.orderLeaving(scope, now)
		t.departures[scope] = d
	}
	for ; len(d.idle) > 0; d.idle = d.idle[:len(d.idle)-1] {
		next := d.idle[len(d.idle)-1]
		if a, ok := t.admitted[next.id]; ok && a.seen == next.seen {
			return next.id, true
		}
	}
	for ; len(d.others) > 0; d.others = d.others[:len(d.others)-1] {
		next := d.others[len(d.others)-1].id
		if a, ok := t.admitted[next]; ok {
			return next, t.hasFewer(r, &a)
		}
	}
	return 0, false
}

// hasFewer reports whether the sender of a new identity, or its group of the same sender,
// has fewer than that of an admitted one, also after it took its place.
func (t *table) hasFewer(r *request, a *admitted) bool {
	if r.sender != a.sender {
		return t.held[r.sender]+1 < t.held[a.sender]
	}
	return t.groups[r.group]+1 < t.groups[a.group]
}

// orderLeaving returns those of a group, or of all, that leave first: a sixteenth.
func (t *table) orderLeaving(scope uint64, now uint32) *departures {
	var ids []uint64
	established := make(map[share.Sender]bool)
	for id, a := range t.admitted {
		if scope == everyGroup || a.group == scope {
			ids = append(ids, id)
			established[a.sender] = established[a.sender] || a.established()
		}
	}
	slices.SortFunc(ids, func(x, y uint64) int {
		a, b := t.admitted[x], t.admitted[y]
		if turn := cmp.Compare(a.turn(now), b.turn(now)); turn != 0 {
			return turn
		}
		if a.turn(now) == turnIdle {
			return cmp.Or(cmp.Compare(b.seen, a.seen), cmp.Compare(x, y))
		}
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(x, y))
	})
	byBytes := t.maxBytes > 0 && t.bytes*int64(t.total) > t.maxBytes*int64(len(t.admitted))
	items := make([]share.Item, len(ids))
	var weight int64
	for i, id := range ids {
		a := t.admitted[id]
		items[i] = share.Item{Path: share.Path{0, uint64(a.sender), a.group}, Weight: 1}
		if established[a.sender] {
			items[i].Path = share.Path{uint64(a.sender), a.group}
		}
		if byBytes {
			items[i].Weight = int64(a.bytes)
		}
		weight += items[i].Weight
	}
	d := &departures{at: now}
	keeps := t.keeps(ids)
	for _, i := range slices.Backward(share.Leaving(items, weight/16+1)) {
		a := t.admitted[ids[i]]
		switch leaving := (departure{ids[i], a.seen}); {
		case a.turn(now) == turnIdle:
			d.idle = append(d.idle, leaving)
		case !keeps[ids[i]]:
			d.others = append(d.others, leaving)
		}
	}
	return d
}

// keeps returns the identities that no other sender displaces: of the established ones of a
// sender the first, up to three quarters of the limit.
func (t *table) keeps(ids []uint64) map[uint64]bool {
	keeps, held := make(map[uint64]bool), make(map[share.Sender]int)
	for _, id := range ids {
		if a := t.admitted[id]; a.established() && 4*held[a.sender] < 3*t.total {
			held[a.sender]++
			keeps[id] = true
		}
	}
	return keeps
}

// turn is when an admitted identity leaves among those of its sender: the last first.
type turn uint8

const (
	turnOld turn = iota
	turnYoung
	turnIdle
)

func (a *admitted) turn(now uint32) turn {
	switch {
	case a.established():
		return turnOld
	case now < a.seen+idleAfter:
		return turnYoung
	default:
		return turnIdle
	}
}

func (a *admitted) established() bool { return a.seen-a.since >= establishedAfter }
