// Package share divides what is limited among the senders of telemetry. It
// relies on what a sender cannot invent for free: the connection or its
// authentication, and how long a service has been sending spans that succeed.
package share

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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
	periods int   // in which something succeeded
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

// note counts a period, and reports whether it establishes.
func (s *record) note(at int64) (establishes bool) {
	if at > s.last {
		s.periods++
		establishes = s.periods == establishedAfter
	}
	s.last = at
	return establishes
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
	if sender.note(at) {
		t.established++
	}
	if known.note(at) {
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

// newFactorAmong returns newFactor, or 0 if nobody is established.
func newFactorAmong(established int) float64 { return float64(min(established, 1) * newFactor) }

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
	among := slices.Collect(maps.Keys(t.services))
	young := slices.DeleteFunc(slices.Clone(among), func(o Origin) bool { return t.services[o].established() })
	if len(young) > 0 {
		among = young
	}
	slices.SortFunc(among, func(a, b Origin) int {
		x, y := t.services[a], t.services[b]
		return cmp.Or(cmp.Compare(y.periods, x.periods), cmp.Compare(y.last, x.last))
	})
	_, leave := Divide(among, int64(max(0, len(among)-excess)), func(o Origin) Item {
		return Item{Path: Path{uint64(o.Sender)}, Weight: 1}
	})
	for _, o := range leave {
		t.forget(o)
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

// negligible is a use that is too small to count.
const negligible = 0.01

// Budget is an amount that refills over time, such as artifacts a minute. What
// a claim may use depends on what it leaves free: later claims find something, and a
// single one is hardly limited. It is not safe for concurrent use.
type Budget struct {
	size, perSecond float64
	at              time.Time
	// total is what is in use, and used the use of each node: what refills is taken from all
	// in proportion.
	total float64
	used  map[node]float64
}

// node is the beginning of a path.
type node struct {
	path  Path
	depth int
}

// NewBudget returns a full budget of size that refills by perMinute.
func NewBudget(size int, perMinute float64) *Budget {
	return &Budget{size: float64(size), perSecond: perMinute / 60, used: make(map[node]float64)}
}

// Take takes one for a claim, and reports whether there was one for it. If it
// is of little use, half of what the claim could ever have must be left.
func (b *Budget) Take(c Claim, useful bool, now time.Time) bool {
	b.refill(now)
	need := 1.0
	if !useful {
		need += b.free(c, b.size, nil) / 2
	}
	if b.free(c, b.size-b.total, b.used) < need-1e-9 {
		return false
	}
	b.total++
	for depth := range c.Path {
		b.used[nodeOf(c.Path, depth)]++
	}
	return true
}

func nodeOf(path Path, depth int) node {
	n := node{depth: depth}
	copy(n.path[:depth+1], path[:depth+1])
	return n
}

// free returns how much of what is left a claim may have, while the nodes use what inUse says.
// A branch that uses nothing may have one wherever there is one.
func (b *Budget) free(c Claim, left float64, inUse map[node]float64) float64 {
	for depth, factor := range c.factors {
		if factor == 0 {
			continue
		}
		used := inUse[nodeOf(c.Path, depth)]
		share := (factor*left - used) / (1 + factor)
		if used < negligible {
			share = max(share, min(left, 1))
		}
		left = share
	}
	return left
}

// refill gives back what has become free since the last time, and forgets the nodes that use
// nothing.
func (b *Budget) refill(now time.Time) {
	passed := now.Sub(b.at).Seconds()
	if b.at = now; passed <= 0 || b.total == 0 {
		return
	}
	left := b.total - min(passed*b.perSecond, b.total)
	if left < negligible {
		left = 0
	}
	for n, used := range b.used {
		if used *= left / b.total; used < negligible {
			delete(b.used, n)
		} else {
			b.used[n] = used
		}
	}
	b.total = left
}

// Item is something that takes room.
type Item struct {
	Path   Path
	Weight int64
}

// Keep reports which of the items may stay where all of them together may
// weigh limit. Branches of one node get equal shares, and what one
// does not need goes to the others. Within one path the items that
// come first stay.
func Keep(items []Item, limit int64) []bool {
	kept := make([]bool, len(items))
	all := make([]int, len(items))
	for i := range items {
		all[i] = i
	}
	divide(items, all, 0, limit, kept)
	return kept
}

// Divide returns which of all may stay where together they may weigh limit, as Keep says,
// and which may not, both in their order.
func Divide[T any](all []T, limit int64, item func(T) Item) (stay, leave []T) {
	for i, kept := range Keep(mlattr.Mapped(all, item), limit) {
		if kept {
			stay = append(stay, all[i])
		} else {
			leave = append(leave, all[i])
		}
	}
	return stay, leave
}

// KeepWithRoom is Keep for a limit that is passed again and again: of many items
// it leaves a sixteenth of the limit free, so that not each further one costs
// as much.
func KeepWithRoom(items []Item, limit int64) []bool {
	if len(items) > 64 {
		limit -= limit / 16
	}
	return Keep(items, limit)
}

// Leaving returns the indices of the items that leave first if some have to make room: as
// many as weigh room together, or less. Of the branches that have more than their share
// the items that come last leave first.
func Leaving(items []Item, room int64) []int {
	limit := -room
	for _, item := range items {
		limit += item.Weight
	}
	var leave []int
	for i, kept := range slices.Backward(Keep(items, max(limit, 0))) {
		if !kept {
			leave = append(leave, i)
		}
	}
	return leave
}

// branch is what has the same path down to a level.
type branch struct {
	items  []int
	weight int64
}

// divide marks the items of one branch that may stay, and returns their weight.
func divide(items []Item, among []int, level int, limit int64, kept []bool) (used int64) {
	if level == len(Path{}) {
		for _, i := range among {
			if items[i].Weight <= limit-used {
				kept[i] = true
				used += items[i].Weight
			}
		}
		return used
	}
	branches := branchesOf(items, among, level)
	for i, b := range branches {
		share := (limit - used) / int64(len(branches)-i)
		if b.weight <= share {
			for _, j := range b.items {
				kept[j] = true
			}
			used += b.weight
			continue
		}
		used += divide(items, b.items, level+1, share, kept)
	}
	return used
}

// branchesOf returns the branches at a level, the lightest first. Of equal
// ones the one whose first item comes last is first: a remainder goes to those
// whose items come first.
func branchesOf(items []Item, among []int, level int) []*branch {
	byKey := make(map[uint64]*branch)
	var out []*branch
	for _, i := range among {
		b := byKey[items[i].Path[level]]
		if b == nil {
			b = &branch{}
			byKey[items[i].Path[level]] = b
			out = append(out, b)
		}
		b.items = append(b.items, i)
		b.weight += items[i].Weight
	}
	slices.SortFunc(out, func(a, b *branch) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(b.items[0], a.items[0]))
	})
	return out
}
