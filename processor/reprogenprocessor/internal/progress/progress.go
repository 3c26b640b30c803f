// Package progress remembers the last step of each rank of a run, so that a
// rank that hangs can be distinguished from those that wait for it.
package progress

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
)

// maxRanks bounds the ranks of all runs together. The least recently seen
// one makes room.
const maxRanks = 16_384

// Step is where a rank of a run was.
type Step struct {
	// Rank is the number of the process.
	Rank string `json:"rank"`
	// Step is its last one, and Epoch that of this step.
	Step  int64          `json:"step"`
	Epoch jsontree.Known `json:"epoch,omitzero"`
	// Span is the name of that step's span, and Host where it ran.
	Span string `json:"span"`
	Host string `json:"host"`
	// At is when that span ended, by its sender's clock.
	At time.Time `json:"ended"`
}

type key struct{ run, rank string }

// Board is safe for concurrent use.
type Board struct {
	mu    sync.Mutex
	ranks *simplelru.LRU[key, Step]
}

// New returns an empty Board.
func New() *Board { return &Board{ranks: lru.New[key, Step](maxRanks, nil)} }

// Note notes a step of a run, if its span ended after what is known. The texts
// may share memory with a batch.
func (b *Board) Note(run string, s Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key{run, s.Rank}
	known, ok := b.ranks.Get(k)
	if ok && s.At.Before(known.At) {
		return
	}
	if ok && s.Span == known.Span && s.Host == known.Host {
		known.Step, known.Epoch, known.At = s.Step, s.Epoch, s.At
		b.ranks.Add(key{run, known.Rank}, known)
		return
	}
	s.Rank, s.Span, s.Host = strings.Clone(s.Rank), strings.Clone(s.Span), strings.Clone(s.Host)
	b.ranks.Add(key{strings.Clone(run), s.Rank}, s)
}

// Of returns the ranks of a run, the one that is furthest behind first.
func (b *Board) Of(run string) []Step {
	if run == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Step
	for _, k := range b.ranks.Keys() {
		if k.run == run {
			s, _ := b.ranks.Peek(k)
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.At.Compare(b.At), cmp.Compare(len(a.Rank), len(b.Rank)), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}

// Reading returns what the last steps of a run's ranks mean, in words. world is the
// number of ranks that there should be, or 0.
func Reading(steps []Step, world int) string {
	if len(steps) < 2 {
		return ""
	}
	var b strings.Builder
	first, last := steps[0].Step, steps[len(steps)-1].Step
	if first == last {
		b.WriteString("All ranks that are known ended step " + strconv.FormatInt(last, 10) + ": none is behind.")
	} else {
		var behind []string
		for _, s := range steps {
			if s.Step == first && len(behind) < 8 {
				behind = append(behind, s.Rank)
			}
		}
		b.WriteString("Furthest behind: rank " + strings.Join(behind, ", ") + ", whose last step is " + strconv.FormatInt(first, 10) +
			"; the first are at " + strconv.FormatInt(last, 10) + ".")
	}
	if missing := world - len(steps); missing > 0 && world <= maxRanks {
		known := make(map[string]bool, len(steps))
		for _, s := range steps {
			known[s.Rank] = true
		}
		var names []string
		for i := 0; i < world && len(names) < 8; i++ {
			if name := strconv.Itoa(i); !known[name] {
				names = append(names, name)
			}
		}
		b.WriteString(" No step was seen of " + strconv.Itoa(missing) + " of " + strconv.Itoa(world) + " ranks: " + strings.Join(names, ", ") + ".")
	}
	return b.String()
}
