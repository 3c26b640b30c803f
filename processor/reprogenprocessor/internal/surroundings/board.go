package surroundings

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
)

// maxRanks bounds the ranks of all runs together. The least recently seen
// one makes room.
const maxRanks = 16_384

type rankKey struct{ run, rank string }

// board remembers the last step of each rank of a run, so that a rank that hangs can be
// distinguished from those that wait for it. It is safe for concurrent use.
type board struct {
	mu    sync.Mutex
	ranks *lru.Cache[rankKey, failure.Step]
}

func newBoard() *board { return &board{ranks: lru.New[rankKey, failure.Step](maxRanks, nil)} }

// note notes a step of a run, if its span ended after what is known. The texts
// may share memory with a batch.
func (b *board) note(run string, s failure.Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := rankKey{run, s.Rank}
	known, ok := b.ranks.Get(k)
	if ok && s.At.Before(known.At) {
		return
	}
	if ok && s.Span == known.Span && s.Host == known.Host {
		known.Step, known.Epoch, known.At = s.Step, s.Epoch, s.At
		b.ranks.Add(rankKey{run, known.Rank}, known)
		return
	}
	s.Rank, s.Span, s.Host = strings.Clone(s.Rank), strings.Clone(s.Span), strings.Clone(s.Host)
	b.ranks.Add(rankKey{strings.Clone(run), s.Rank}, s)
}

// of returns the ranks of a run, the one that is furthest behind first.
func (b *board) of(run string) []failure.Step {
	if run == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []failure.Step
	for _, k := range b.ranks.Keys() {
		if k.run == run {
			s, _ := b.ranks.Peek(k)
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b failure.Step) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.At.Compare(b.At), cmp.Compare(len(a.Rank), len(b.Rank)), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}
