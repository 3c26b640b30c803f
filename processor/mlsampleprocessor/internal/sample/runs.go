package sample

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// runs are the runs that are remembered.
type runs struct {
	cfg    *Config
	memory *memory
	byKey  map[uint64]*run
	// last is the rank of the last span that had one, lastSource its source.
	last       *rank
	lastSource Source
}

// rankOf returns the rank of a span. Spans that follow each other have mostly the same.
func (rs *runs) rankOf(sp *Span, now int64) *rank {
	if rs.last == nil || rs.lastSource != sp.Source {
		rs.last, rs.lastSource = rs.runOf(sp).rankOf(&sp.Source), sp.Source
	}
	rs.last.run.seen = now
	return rs.last
}

// runOf returns the run of a span.
func (rs *runs) runOf(sp *Span) *run {
	return shared.Entry(rs.byKey, sp.Source.Run, func() *run {
		if len(rs.byKey) >= maxRuns {
			rs.forget()
		}
		return &run{cfg: rs.cfg, memory: rs.memory, key: sp.Source.Run, ranks: make(map[uint64]*rank)}
	})
}

// knownRank returns the rank of a span that has shown a phase of training, or nil.
func (rs *runs) knownRank(sp *Span) *rank {
	if r := rs.byKey[sp.Source.Run]; r != nil {
		return r.ranks[sp.Source.Rank]
	}
	return nil
}

// forget decides and forgets the quarter of the runs that were not seen for
// longest.
func (rs *runs) forget() {
	all := slices.SortedFunc(maps.Values(rs.byKey), func(a, b *run) int { return cmp.Compare(a.seen, b.seen) })
	for _, r := range all[:len(all)/4+1] {
		r.decide(math.MaxInt64)
		delete(rs.byKey, r.key)
	}
	rs.last = nil
}
