package correlate

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// A client whose every span is a trace of its own does not say of which epoch a
// batch is. One process times them all, so a batch within the time of an epoch
// is of that epoch, unless the process had several at once. An epoch ends after
// its batches: those that arrived in an earlier request get none, since nothing
// is waited for.

// maxEpochs is how many epochs of a process are remembered. What is late comes
// soon after its epoch.
const maxEpochs = 16

// period is a time in nanoseconds.
type period struct{ start, end uint64 }

// epoch is an epoch of a process.
type epoch struct {
	period
	span     spanKey
	number   int64
	resource int32
}

// undated is a span that is of an epoch and does not name it.
type undated struct {
	period
	trace pcommon.TraceID
	// root is true if it has no parent. A span with a parent can be of an epoch
	// of its own trace only.
	root     bool
	resource int32
	// number is the epoch, if found.
	number int64
	found  bool
}

// epochSearch is the spans of a batch that are epochs or of one.
type epochSearch struct {
	epochs  []epoch
	undated []undated
}

// reset forgets the spans and keeps the memory.
func (t *epochSearch) reset() { t.epochs, t.undated = t.epochs[:0], t.undated[:0] }

// read notes a span that is an epoch or of one. It returns the index in undated
// of the latter, plus one.
func (t *epochSearch) read(f *vocabulary.Facts, n *span, s ptrace.Span) int32 {
	times := period{uint64(s.StartTimestamp()), uint64(s.EndTimestamp())}
	if times.start == 0 || times.end < times.start || n.trace.IsEmpty() || n.inherited[originPhase] != notInherited {
		return 0
	}
	number, numbered := f.IntAt(vocabulary.SlotEpoch)
	switch f.TextAt(vocabulary.SlotPhase) {
	case mlattr.PhaseEpoch:
		if numbered && n.inherited[originEpoch] == notInherited && times.start < times.end {
			t.epochs = append(t.epochs, epoch{times, n.spanKey, number, n.resource})
		}
	case mlattr.PhaseBatch, mlattr.PhaseValidation:
		if f.At(vocabulary.SlotEpoch) == nil && !n.foreign {
			t.undated = append(t.undated, undated{period: times, trace: n.trace, root: n.parent.IsEmpty(), resource: n.resource})
			return int32(len(t.undated))
		}
	}
	return 0
}

// find finds the epoch of each undated span. A process that its resource
// does not tell from others has none.
func (t *epochSearch) find(b *branches, s *Store, processOf func(resource int) string) {
	if len(t.epochs) == 0 && len(t.undated) == 0 {
		return
	}
	byProcess := make(map[uint64][]epoch)
	for _, e := range t.epochs {
		process := b.processHash(e.resource, processOf)
		byProcess[process] = append(byProcess[process], e)
	}
	for i := range t.undated {
		if process := b.processHash(t.undated[i].resource, processOf); byProcess[process] == nil {
			byProcess[process] = nil // to be asked for
		}
	}
	delete(byProcess, 0)
	s.addEpochs(byProcess)
	for process, epochs := range byProcess {
		byProcess[process] = disjoint(epochs)
	}
	for i := range t.undated {
		u := &t.undated[i]
		u.number, u.found = epochAt(byProcess[b.processHash(u.resource, processOf)], u)
	}
}

// mergeEpochs sorts epochs by their start and removes spans that were delivered
// twice.
func mergeEpochs(epochs []epoch) []epoch {
	slices.SortFunc(epochs, func(a, b epoch) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end),
			bytes.Compare(a.span.trace[:], b.span.trace[:]), bytes.Compare(a.span.id[:], b.span.id[:]))
	})
	return slices.CompactFunc(epochs, func(a, b epoch) bool { return a.span == b.span })
}

// disjoint returns the epochs during which there was no other. They have been
// merged.
func disjoint(epochs []epoch) []epoch {
	var found []epoch
	var reach uint64
	for i, e := range epochs {
		meetsNext := i+1 < len(epochs) && epochs[i+1].start < e.end
		if e.start >= reach && !meetsNext {
			found = append(found, e)
		}
		reach = max(reach, e.end)
	}
	return found
}

// epochAt returns the number of the epoch that a span is of. The epochs are
// sorted and disjoint.
func epochAt(epochs []epoch, u *undated) (int64, bool) {
	after := sort.Search(len(epochs), func(i int) bool { return epochs[i].start > u.start })
	if after == 0 {
		return 0, false
	}
	e := &epochs[after-1]
	return e.number, u.end <= e.end && (u.root || u.trace == e.span.trace)
}

// latestEpochs returns the epochs that ended last.
func latestEpochs(epochs []epoch) []epoch {
	if len(epochs) <= maxEpochs {
		return epochs
	}
	epochs = slices.Clone(epochs)
	slices.SortStableFunc(epochs, func(a, b epoch) int { return cmp.Compare(b.end, a.end) })
	return epochs[:maxEpochs]
}
