package identity

const (
	// candidateSets and candidateWays are how many identities that are not
	// admitted are remembered for each kind: 131072, in 2 MiB.
	candidateSets = 1 << 14
	candidateWays = 8

	// sightingGap is the number of seconds from one sighting of an identity to
	// the next that counts. Whatever comes together is one sighting.
	sightingGap = 5
	// candidateAge is the number of seconds after which an identity that was not
	// seen again is forgotten. Clients send metrics every 60 s.
	candidateAge = 300
)

// candidates remembers which identities were seen, and how often, in a fixed
// space. Where there are more than it has room for, those that were seen once
// go first: one that comes again stays.
type candidates struct {
	// sets is nil until the first identity comes.
	sets [][candidateWays]candidate
}

// candidate is an identity that was seen. Sightings is zero where there is none.
type candidate struct {
	id        uint64
	seen      uint32
	sightings uint32
}

// see notes that an identity was seen at a second, and returns its sightings.
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

// live reports whether there is a candidate that is not forgotten.
func (c *candidate) live(now uint32) bool { return c.sightings > 0 && now <= c.seen+candidateAge }

// before reports whether c makes room for another one rather than d.
func (c *candidate) before(d *candidate, now uint32) bool {
	if c.live(now) != d.live(now) {
		return d.live(now)
	}
	if c.sightings != d.sightings {
		return c.sightings < d.sightings
	}
	return c.seen < d.seen
}
