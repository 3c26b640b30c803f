package identity

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
