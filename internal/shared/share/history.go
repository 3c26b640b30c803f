// Package share divides what is limited among the senders of telemetry. It
// relies on what a sender cannot invent for free: the connection or its
// authentication, and how long a service has been sending spans that succeed.
package share

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

const (
	// A service or sender is established after successes in establishedAfter
	// periods: twelve of five minutes.
	period           = 5 * time.Minute
	establishedAfter = 12
	// againAfter is how long after its first success a service must have another one to
	// count as a service of its own.
	againAfter = time.Minute
	// maxServices is the number of services of all senders whose record is
	// remembered.
	maxServices = 4096
)

// The branches of a Path for senders and services that are not established, and for
// services that came only once.
const (
	newSenders  = 0
	newServices = 0
	onceSeen    = 0
)

// Path is an origin's branch at each level of a tree of shares: branches of one node
// get equal shares. All services of a sender that are not established are one
// branch beside those that are, and so are all senders that are not established. Of
// those services, all that came only once are one.
type Path [4]uint64

// EstablishedPath returns the path of an origin that is established.
func EstablishedPath(o Origin) Path {
	return Path{uint64(o.Sender), o.Service, o.Service, o.Service}
}

// Claim is a Path with how much may be taken at each of its levels, in multiples
// of what must stay free for the others there; 0 means that there are none.
type Claim struct {
	Path
	factors [len(Path{})]float64
}

// ClaimOf returns the claim of a sender where its services do not matter.
func ClaimOf(s Sender) Claim {
	return Claim{Path: Path{uint64(s)}, factors: [len(Path{})]float64{senderFactor}}
}

// A sender may take three quarters of what is free, and a service two thirds of what
// its sender may, which is half. All that are not established may together take half
// of what is free beside established ones.
const (
	senderFactor  = 3
	serviceFactor = 2
	newFactor     = 1
)

// record is what is known of a service or a sender.
type record struct {
	periods int   // in which something succeeded, up to establishedAfter
	last    int64 // the last of them
	// first is the time of the first success in seconds since 1970, again reports
	// whether there was another one later than againAfter.
	first int64
	again bool
}

func (s *record) established() bool { return s != nil && s.periods >= establishedAfter }

// branch returns the branch of a service among those that are not established.
func (s *record) branch(o Origin) uint64 {
	if s == nil || !s.again {
		return onceSeen
	}
	return o.Service
}

// note counts a period.
func (s *record) note(at int64) {
	if at > s.last {
		s.periods++
	}
	s.last = at
}

type senderHistory struct {
	record
	services, established int
}

// History remembers which services succeed, and since when. It is safe for
// concurrent use and bounded: services that are not established make room
// first, those of the sender that has most of them.
type History struct {
	mu       sync.RWMutex
	services map[Origin]*record
	senders  map[Sender]*senderHistory
	// established is the number of senders that are.
	established int
}

// NewHistory returns an empty table.
func NewHistory() *History {
	return &History{services: make(map[Origin]*record), senders: make(map[Sender]*senderHistory)}
}

// Succeeded notes that an origin sent something that did not fail.
func (t *History) Succeeded(o Origin, now time.Time) {
	at := now.Unix() / int64(period/time.Second)
	t.mu.RLock()
	known := t.services[o]
	noted := known != nil && known.last == at && (known.again || now.Unix() < known.first+int64(againAfter/time.Second))
	t.mu.RUnlock()
	if noted {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sender := t.senders[o.Sender]
	if known = t.services[o]; known == nil {
		if len(t.services) >= maxServices {
			t.makeRoom()
			sender = t.senders[o.Sender]
		}
		if sender == nil {
			sender = &senderHistory{}
			t.senders[o.Sender] = sender
		}
		known = &record{first: now.Unix()}
		t.services[o] = known
		sender.services++
	}
	known.again = known.again || now.Unix() >= known.first+int64(againAfter/time.Second)
	wasSender, was := sender.record.established(), known.established()
	sender.note(at)
	known.note(at)
	if !wasSender && sender.record.established() {
		t.established++
	}
	if !was && known.established() {
		sender.established++
	}
}

// Claim returns where an origin stands.
func (t *History) Claim(o Origin) Claim {
	t.mu.RLock()
	defer t.mu.RUnlock()
	service, sender := t.services[o], t.senders[o.Sender]
	switch {
	case service.established(): // and so is its sender
		return Claim{EstablishedPath(o), [...]float64{senderFactor, serviceFactor, 0, 0}}
	case sender != nil && sender.record.established():
		return Claim{
			Path{uint64(o.Sender), newServices, service.branch(o), o.Service},
			[...]float64{senderFactor, newFactorAmong(sender.established), 0, serviceFactor},
		}
	}
	return Claim{
		Path{newSenders, uint64(o.Sender), service.branch(o), o.Service},
		[...]float64{newFactorAmong(t.established), senderFactor, 0, serviceFactor},
	}
}

func newFactorAmong(established int) float64 {
	if established == 0 {
		return 0
	}
	return newFactor
}

// Path returns the path of an origin.
func (t *History) Path(o Origin) Path { return t.Claim(o).Path }

// Newcomer reports whether an origin is not established while others are.
func (t *History) Newcomer(o Origin) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.established > 0 && !t.services[o].established()
}

// makeRoom forgets an eighth of the services. The caller holds mu.
func (t *History) makeRoom() {
	const excess = maxServices / 8
	var young, established []Origin
	for o, s := range t.services {
		if s.established() {
			established = append(established, o)
		} else {
			young = append(young, o)
		}
	}
	among := young
	if len(young) == 0 {
		among = established
	}
	slices.SortFunc(among, func(a, b Origin) int {
		x, y := t.services[a], t.services[b]
		return cmp.Or(cmp.Compare(y.periods, x.periods), cmp.Compare(y.last, x.last))
	})
	items := make([]Item, len(among))
	for i, o := range among {
		items[i] = Item{Path: Path{uint64(o.Sender)}, Weight: 1}
	}
	for i, kept := range Keep(items, int64(max(0, len(among)-excess))) {
		if !kept {
			t.forget(among[i])
		}
	}
}

// forget removes a service, and its sender with its last one.
func (t *History) forget(o Origin) {
	sender := t.senders[o.Sender]
	if t.services[o].established() {
		sender.established--
	}
	delete(t.services, o)
	if sender.services--; sender.services > 0 {
		return
	}
	if sender.record.established() {
		t.established--
	}
	delete(t.senders, o.Sender)
}

// seed keeps a sender from choosing names whose hashes are those of others.
var seed = maphash.MakeSeed()

// Sender identifies who sent a request. It is valid for the life of the
// process.
type Sender uint64

// Origin identifies a service of a sender. Two senders that use the same
// service.name are two origins.
type Origin struct {
	Sender  Sender
	Service uint64
}

// SenderOf returns the Sender with an id.
func SenderOf(id sender.ID) Sender { return Sender(maphash.Comparable(seed, id)) }

// OriginOf returns the origin of a service of a sender.
func OriginOf(from Sender, service string) Origin {
	return Origin{Sender: from, Service: maphash.String(seed, service)}
}
