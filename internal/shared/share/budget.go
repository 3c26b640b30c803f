package share

import "time"

// negligible is a use that is too small to count.
const negligible = 0.01

// Budget is an amount that refills over time, such as artifacts a minute. What
// a claim may use depends on what it leaves free: later claims find something, and a
// single one is hardly limited. It is not safe for concurrent use.
type Budget struct {
	size, perSecond float64
	at              time.Time
	// total is what is in use, and used the use of each node, in units of scale:
	// what refills is taken from all in proportion.
	total, scale float64
	used         map[node]float64
	pruneAt      int
}

// node is the beginning of a path.
type node struct {
	path  Path
	depth int
}

// NewBudget returns a full budget of size that refills by perMinute.
func NewBudget(size int, perMinute float64) *Budget {
	b := &Budget{size: float64(size), perSecond: perMinute / 60, scale: 1}
	b.used = make(map[node]float64)
	return b
}

// Take takes one for a claim, and reports whether there was one for it. If it
// is of little use, half of what the claim could ever have must be left.
func (b *Budget) Take(c Claim, useful bool, now time.Time) bool {
	b.refill(now)
	need := 1.0
	if !useful {
		need += b.free(c, b.size, func(node) float64 { return 0 }) / 2
	}
	if b.free(c, b.size-b.total, b.usedBy) < need-1e-9 {
		return false
	}
	b.total++
	for depth := range c.Path {
		b.used[nodeOf(c.Path, depth)] += 1 / b.scale
	}
	if len(b.used) > b.pruneAt {
		b.prune()
	}
	return true
}

func nodeOf(path Path, depth int) node {
	n := node{depth: depth}
	copy(n.path[:depth+1], path[:depth+1])
	return n
}

func (b *Budget) usedBy(n node) float64 { return b.used[n] * b.scale }

// free returns how much a claim may have. A branch that uses nothing may have
// one wherever there is one.
func (b *Budget) free(c Claim, left float64, usedBy func(node) float64) float64 {
	for depth, factor := range c.factors {
		if factor == 0 {
			continue
		}
		used := usedBy(nodeOf(c.Path, depth))
		share := (factor*left - used) / (1 + factor)
		if used < negligible {
			share = max(share, min(left, 1))
		}
		left = share
	}
	return left
}

// refill gives back what has become free since the last time.
func (b *Budget) refill(now time.Time) {
	passed := now.Sub(b.at).Seconds()
	if b.at = now; passed <= 0 || b.total == 0 {
		return
	}
	left := b.total - min(passed*b.perSecond, b.total)
	if left < negligible {
		b.total, b.scale = 0, 1
		clear(b.used)
		return
	}
	b.scale *= left / b.total
	b.total = left
	if b.scale < 1e-9 {
		b.prune()
	}
}

// prune forgets the nodes that use nothing.
func (b *Budget) prune() {
	for n, used := range b.used {
		if used *= b.scale; used < negligible {
			delete(b.used, n)
		} else {
			b.used[n] = used
		}
	}
	b.scale = 1
	b.pruneAt = 2*len(b.used) + 64
}
