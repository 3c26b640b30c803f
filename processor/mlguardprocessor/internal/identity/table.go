package identity

import "sync"

const (
	// againSightings is how often an identity must have been seen to be admitted
	// while at least a quarter of the places is taken, and patientSightings
	// while at least three quarters are.
	againSightings   = 2
	patientSightings = 4

	// sweepInterval is the number of seconds from one search for expired
	// identities to the next.
	sweepInterval = 30
	// groupsOfTable is how many groups can be at their limit at once.
	groupsOfTable = 20

	// combinationsAtOnce and streamsAtOnce are how many of each an instance of a
	// service has at once, so that what it has not sent before is shown though
	// others flood.
	combinationsAtOnce = 16
	streamsAtOnce      = 200
)

// table admits the identities of one kind. Those that are admitted stay until
// nothing was seen of them for the time of expiration, so that nobody who comes
// later takes their place. It is safe for concurrent use.
type table struct {
	mu       sync.Mutex
	admitted map[uint64]admitted
	// groups has the number of identities of each group.
	groups map[uint64]int
	// limit is that of each group, and total that of all. Allowance is how many
	// each group gets at once as long as less than three quarters of all are taken.
	limit, total, allowance int
	// expiration is in seconds.
	expiration uint32
	swept      uint32
	evicted    int64
	candidates candidates
}

// admitted is an identity that has its place.
type admitted struct {
	// group is what is limited together: the values of one label, or what belongs
	// to one program.
	group uint64
	// owner, where it is not 0, is who alone may use the identity.
	owner uint64
	// seen is when it was seen last, and checked when what it is made of was.
	seen, checked uint32
}

// request is an identity that asks for its place.
type request struct {
	id, group, owner uint64
	// known is true where an identity must have its place already.
	known bool
}

func newTable(limit, groups, allowance int, expiration uint32) *table {
	return &table{
		admitted: make(map[uint64]admitted), groups: make(map[uint64]int),
		limit: limit, total: limit * groups, allowance: allowance, expiration: expiration,
	}
}

// fresh reports whether an identity is admitted, and what it is made of was
// checked at most age seconds ago.
func (t *table) fresh(id uint64, now, age uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.admitted[id]
	if !ok || now >= a.checked+age {
		return false
	}
	if a.seen != now {
		a.seen = now
		t.admitted[id] = a
	}
	return true
}

// admit reports whether an identity has a place.
func (t *table) admit(r request, now uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now >= t.swept+sweepInterval {
		t.sweep(now)
	}
	if a, ok := t.admitted[r.id]; ok {
		if a.owner != r.owner {
			return false
		}
		a.seen, a.checked = now, now
		t.admitted[r.id] = a
		return true
	}
	if r.known || !t.room(&r, now) {
		return false
	}
	t.admitted[r.id] = admitted{group: r.group, owner: r.owner, seen: now, checked: now}
	t.groups[r.group]++
	return true
}

// note remembers an identity that was seen and that cannot be admitted yet.
func (t *table) note(id uint64, now uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.admitted[id]; !ok {
		t.candidates.see(id, now)
	}
}

// room reports whether an identity that is not admitted may be. One for which
// there is no place is remembered, for when there is.
func (t *table) room(r *request, now uint32) bool {
	taken, all := t.groups[r.group], len(t.admitted)
	if 4*taken < t.limit && 4*all < t.total || taken < t.allowance && 4*all < 3*t.total {
		return true
	}
	sightings := t.candidates.see(r.id, now)
	if taken >= t.limit || all >= t.total {
		return false
	}
	if 4*taken >= 3*t.limit || 4*all >= 3*t.total {
		return sightings >= patientSightings
	}
	return sightings >= againSightings
}

// sweep removes the identities that have expired.
func (t *table) sweep(now uint32) {
	t.swept = now
	for id, a := range t.admitted {
		if now < a.seen+t.expiration {
			continue
		}
		delete(t.admitted, id)
		t.evicted++
		if t.groups[a.group]--; t.groups[a.group] == 0 {
			delete(t.groups, a.group)
		}
	}
}

// size returns how many identities are admitted, and how many ever expired.
func (t *table) size() (admitted, evicted int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.admitted)), t.evicted
}
