package identity

import (
	"cmp"
	"slices"
	"sync"
	"time"

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
	expiration, swept uint32
	evicted           int64
	candidates        candidates
	// departures are the next to leave since the last sweep, of one group or of all.
	departures map[uint64][]departure
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
	displaced := max(1, limit*groups/displacedPart)
	return &table{
		admitted: make(map[uint64]admitted), groups: make(map[uint64]int), maxBytes: maxBytes,
		limit: limit, total: limit * groups, allowance: allowance, expiration: expiration,
		held: make(map[share.Sender]int), departures: make(map[uint64][]departure),
		displacements: share.NewBudget(displaced, float64(displaced)*60/float64(expiration)),
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
	clear(t.departures)
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

// use returns the fraction of the limit that is in use, of the group that uses most of it
// or of all together, without what would leave for new ones.
func (t *table) use(now uint32) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, most, bytes, groups := 0, 0, int64(0), make(map[uint64]int, len(t.groups))
	for _, a := range t.admitted {
		if a.turn(now) != turnIdle && now < a.seen+t.expiration {
			groups[a.group]++
			all, most, bytes = all+1, max(most, groups[a.group]), bytes+int64(a.bytes)
		}
	}
	used := max(float64(most)/float64(t.limit), float64(all)/float64(t.total))
	if t.maxBytes > 0 {
		used = max(used, float64(bytes)/float64(t.maxBytes))
	}
	return used
}

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

// departure is an identity that may leave for any new one if it is idle, and was not seen
// since, or else for one of a sender or a group that has fewer.
type departure struct {
	id   uint64
	idle bool
	seen uint32
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
	list, ordered := t.departures[scope]
	if !ordered {
		list = t.orderLeaving(scope, now)
	}
	for ; len(list) > 0; list = list[:len(list)-1] {
		next := list[len(list)-1]
		a, stays := t.admitted[next.id]
		if !stays || next.idle && a.seen != next.seen {
			continue
		}
		// The new one's sender, or its group of the same sender, must have fewer, also after
		// the new one took the place.
		fewer := t.groups[r.group]+1 < t.groups[a.group]
		if r.sender != a.sender {
			fewer = t.held[r.sender]+1 < t.held[a.sender]
		}
		id, ok = next.id, next.idle || fewer
		break
	}
	t.departures[scope] = list
	return id, ok
}

// orderLeaving returns those of a group, or of all, that leave first, the next one at the
// end: a sixteenth.
func (t *table) orderLeaving(scope uint64, now uint32) []departure {
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
		order := cmp.Compare(a.since, b.since)
		if a.turn(now) == turnIdle {
			order = cmp.Compare(b.seen, a.seen)
		}
		return cmp.Or(cmp.Compare(a.turn(now), b.turn(now)), order, cmp.Compare(x, y))
	})
	byBytes := t.maxBytes > 0 && t.bytes*int64(t.total) > t.maxBytes*int64(len(t.admitted))
	items := make([]share.Item, len(ids))
	var weight int64
	// No other sender displaces the first established ones of a sender, up to three quarters
	// of the limit.
	keeps, held := make([]bool, len(ids)), make(map[share.Sender]int)
	for i, id := range ids {
		a := t.admitted[id]
		if a.established() && 4*held[a.sender] < 3*t.total {
			held[a.sender]++
			keeps[i] = true
		}
		items[i] = share.Item{Path: share.Path{0, uint64(a.sender), a.group}, Weight: 1}
		if established[a.sender] {
			items[i].Path = share.Path{uint64(a.sender), a.group}
		}
		if byBytes {
			items[i].Weight = int64(a.bytes)
		}
		weight += items[i].Weight
	}
	var idle, others []departure
	for _, i := range slices.Backward(share.Leaving(items, weight/16+1)) {
		a := t.admitted[ids[i]]
		switch {
		case a.turn(now) == turnIdle:
			idle = append(idle, departure{ids[i], true, a.seen})
		case !keeps[i]:
			others = append(others, departure{id: ids[i]})
		}
	}
	return append(others, idle...)
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

const (
	// candidateSets × candidateWays is the number of unadmitted identities that
	// are remembered for each kind: 131072, in 2 MiB.
	candidateSets = 1 << 14
	candidateWays = 8

	// sightingGap is the shortest time in seconds between two sightings of an
	// identity that count separately.
	sightingGap = 5
	// candidateAge is the time in seconds after which an identity that was not
	// seen again is forgotten. Clients send metrics every 60 s.
	candidateAge = 300
)

// candidates counts sightings of unadmitted identities in fixed memory. If it
// is full, identities that were seen only once are replaced first.
type candidates struct {
	// sets is nil until the first identity is seen.
	sets [][candidateWays]candidate
}

// candidate is an identity that was seen; sightings is zero for an empty entry.
type candidate struct {
	id        uint64
	seen      uint32
	sightings uint32
}

// see records that an identity was seen at now, in seconds, and returns its
// number of sightings.
func (c *candidates) see(id uint64, now uint32) uint32 {
	if c.sets == nil {
		c.sets = make([][candidateWays]candidate, candidateSets)
	}
	set := &c.sets[id%candidateSets]
	victim := &set[0]
	for i := range set {
		at := &set[i]
		if at.id == id && at.live(now) {
			if now >= at.seen+sightingGap {
				at.seen = now
				at.sightings++
			}
			return at.sightings
		}
		if at.before(victim, now) {
			victim = at
		}
	}
	*victim = candidate{id: id, seen: now, sightings: 1}
	return 1
}

// live reports whether the entry is in use and has not expired.
func (c *candidate) live(now uint32) bool { return c.sightings > 0 && now <= c.seen+candidateAge }

// before reports whether c is replaced before d.
func (c *candidate) before(d *candidate, now uint32) bool {
	if c.live(now) != d.live(now) {
		return d.live(now)
	}
	if c.sightings != d.sightings {
		return c.sightings < d.sightings
	}
	return c.seen < d.seen
}
