package correlate

import (
	"slices"
	"time"
)

// joins are the ids that tie traces together, and what comes with each. A
// request shares everything, since the two sides of a call may have nothing
// else in common. A training run or sampling session is of one session; a
// fine-tuning service names both on some of its spans only. A session is of one
// run, except for the training runs of such a service.
var joins = [...]struct {
	key  int
	from origin
	of   func(*branches, *span) set[symbol]
}{
	{keyRequest, fromRequest, (*branches).requestKeys},
	{keyTrainingRun, fromTrainingRun, sessionOf},
	{keySamplingSession, fromSamplingSession, sessionOf},
	{keySession, fromSession, runOf},
}

func sessionOf(_ *branches, n *span) set[symbol] { return set[symbol]{keySession: n.own[keySession]} }

func runOf(_ *branches, n *span) set[symbol] { return set[symbol]{keyRun: n.namedRun()} }

// joinGroup is the spans of a batch that report the same id.
type joinGroup struct {
	key int
	id  symbol
	agreement[symbol]
	agreed set[symbol]
}

// joinSearch is the ids that spans of a batch report.
type joinSearch struct {
	groups []joinGroup
	// at has for each of joins the index in groups, plus one, of each symbol.
	at [len(joins)][]int32
}

// join lets spans of different traces that report the same id share keys.
func (g *joinSearch) join(b *branches, s *Store, now time.Time) {
	if len(b.texts.texts) == 0 {
		return // no span reports anything
	}
	for j := range g.at {
		g.at[j] = slices.Grow(g.at[j][:0], len(b.texts.texts))[:len(b.texts.texts)]
		clear(g.at[j])
	}
	for i := range b.spans {
		g.add(b, &b.spans[i])
	}
	if len(g.groups) == 0 {
		return
	}
	s.join(g.groups, &b.texts, now)
	for i := range g.groups {
		g.groups[i].agreed = g.groups[i].agreement.agreed()
	}
	for i := range b.spans {
		n := &b.spans[i]
		for j, by := range joins {
			if id := n.own[by.key]; id != 0 && g.at[j][id] != 0 {
				n.take(&g.groups[g.at[j][id]-1].agreed, by.from)
			}
		}
	}
}

// add adds to the groups of a span's ids what it contributes.
func (g *joinSearch) add(b *branches, n *span) {
	for j, by := range joins {
		id := n.own[by.key]
		if id == 0 || by.key == keySession && !n.needs(keyRun) && n.namedRun() == 0 {
			continue
		}
		if g.at[j][id] == 0 {
			g.groups = append(g.groups, joinGroup{key: by.key, id: id})
			g.at[j][id] = int32(len(g.groups))
		}
		keys := by.of(b, n)
		g.groups[g.at[j][id]-1].observe(&keys)
	}
}

// requestKeys returns what a span contributes to its request: its own keys, and
// the run of its resource.
func (b *branches) requestKeys(n *span) set[symbol] {
	keys := n.own
	if keys[keyRun] == 0 && n.of.run != 0 {
		keys[keyRun] = n.of.run
		if n.of.inferred {
			keys[keyInferred] = b.texts.of(keyInferred, textTrue)
		}
	}
	return keys
}

// namedRun returns the run that a span contributes to its session: one that was
// not inferred, and that is not one of several that the session trains.
func (n *span) namedRun() symbol {
	switch {
	case n.own[keyTrainingRun] != 0:
		return 0
	case n.own[keyRun] != 0:
		return n.own[keyRun]
	case n.of.inferred:
		return 0
	default:
		return n.of.run
	}
}
