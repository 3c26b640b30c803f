package identity

import (
	"sync"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// againSightings is how often an identity must be seen to be admitted once
	// a quarter of the limit is used, and patientSightings once three quarters
	// are.
	againSightings   = 2
	patientSightings = 4

	// sweepInterval is the time in seconds between two searches for expired
	// identities.
	sweepInterval = 30
	// groupsOfTable is how many groups can be at their limit at one time.
	groupsOfTable = 20

	// combinationsAtOnce and streamsAtOnce are how many of each an instance of
	// a service gets at once, so that its first series appear during a flood
	// from others.
	combinationsAtOnce = 16
	streamsAtOnce      = 200
)

// table admits the identities of one kind. An admitted identity stays until it
// has not been seen for expiration, unless the table is full and it is one of those
// that leave for new ones: see makeRoom. It is safe for concurrent use.
type table struct {
	mu       sync.Mutex
	admitted map[uint64]admitted
	// held has the number of admitted identities of each sender.
	held map[share.Sender]int
	// groups has the number of admitted identities of each group.
	groups map[uint64]int
	// limit applies to each group, total to all together. allowance is how many
	// each group gets at once as long as less than three quarters of total are
	// used.
	limit, total, allowance int
	// bytes is what the admitted identities take of a scrape, maxBytes its limit, 0
	// for none.
	bytes, maxBytes int64
	// expiration is in seconds.
	expiration uint32
	swept      uint32
	evicted    int64
	candidates candidates
	// departures are the next to leave, of one group or of all.
	departures map[uint64]*departures
	// displacements limits how many leave: Prometheus shows their series until it
	// expires there.
	displacements *share.Budget
}

// admitted is an admitted identity.
type admitted struct {
	// group is what the limit applies to: the values of one label, or the
	// identities of one program.
	group uint64
	// owner, if not 0, is the only one that may use the identity.
	owner uint64
	// sender is who sent it first.
	sender share.Sender
	// since is when it was admitted, seen is when it was last seen, checked when its parts were last looked
	// up.
	since, seen, checked uint32
	// bytes is what the identity takes of a scrape.
	bytes uint32
}

// request asks for the admission of an identity.
type request struct {
	id, group, owner uint64
	sender           share.Sender
	// bytes is what the identity takes of a scrape.
	bytes uint32
	// known limits the request to identities that are already admitted.
	known bool
}

func newTable(limit, groups, allowance int, maxBytes int64, expiration uint32) *table {
	return &table{
		admitted: make(map[uint64]admitted), groups: make(map[uint64]int), maxBytes: maxBytes,
		limit: limit, total: limit * groups, allowance: allowance, expiration: expiration,
		held: make(map[share.Sender]int), departures: make(map[uint64]*departures),
		displacements: newDisplacements(limit*groups, expiration),
	}
}

// fresh reports whether an identity is admitted and its parts were looked up
// less than age seconds ago.
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

// admit reports whether an identity is admitted.
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
	t.admitted[r.id] = admitted{
		group: r.group, owner: r.owner, sender: r.sender, since: now, seen: now, checked: now, bytes: r.bytes,
	}
	t.groups[r.group]++
	t.held[r.sender]++
	t.bytes += int64(r.bytes)
	return true
}

// note records a sighting of an identity that cannot be admitted yet.
func (t *table) note(id uint64, now uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.admitted[id]; !ok {
		t.candidates.see(id, now)
	}
}

// room reports whether a new identity may be admitted. If not, its sighting is
// recorded.
func (t *table) room(r *request, now uint32) bool {
	taken, all := t.groups[r.group], t.used(r)
	if 4*taken < t.limit && all < 1./4 || taken < t.allowance && all < 3./4 {
		return true
	}
	sightings := t.candidates.see(r.id, now)
	if taken >= t.limit || all >= 1 {
		return sightings >= patientSightings && t.makeRoom(r, now)
	}
	if 4*taken >= 3*t.limit || all >= 3./4 {
		return sightings >= patientSightings
	}
	return sightings >= againSightings
}

// used returns which part of what all groups may have is used: of the number or, if
// that is more, of the bytes with those of a request.
func (t *table) used(r *request) float64 {
	used := float64(len(t.admitted)) / float64(t.total)
	if bytes := t.bytes + int64(r.bytes); t.maxBytes > 0 && bytes > 0 {
		used = max(used, float64(bytes-1)/float64(t.maxBytes))
	}
	return used
}

// sweep removes expired identities.
func (t *table) sweep(now uint32) {
	t.swept = now
	for id, a := range t.admitted {
		if now >= a.seen+t.expiration {
			t.remove(id, a)
		}
	}
	for scope, d := range t.departures {
		if now >= d.at+sweepInterval {
			delete(t.departures, scope)
		}
	}
}

func (t *table) remove(id uint64, a admitted) {
	delete(t.admitted, id)
	t.evicted++
	t.bytes -= int64(a.bytes)
	if t.groups[a.group]--; t.groups[a.group] == 0 {
		delete(t.groups, a.group)
	}
	if t.held[a.sender]--; t.held[a.sender] == 0 {
		delete(t.held, a.sender)
	}
}

// size returns the number of admitted identities, and how many have expired
// since the start.
func (t *table) size() (admitted, evicted int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.admitted)), t.evicted
}
