package mlenrichprocessor

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The FX toolkit makes each span a trace of its own, and a batch does not say
// of which epoch it is. One process times them all, so a batch within the time
// of an epoch is of that epoch, unless the process had several at once. An
// epoch ends after its batches: those that left in an earlier request are not
// bound, since nothing is waited for.

// maxEpochs is how many epochs of a process are remembered. What is late comes
// soon after its epoch.
const maxEpochs = 16

var slotEpoch = mlattr.SlotOf(mlattr.Epoch)

// period is a time in nanoseconds.
type period struct{ start, end uint64 }

// epoch is an epoch of a process.
type epoch struct {
	period
	span   spanKey
	number int64
}

// undated is a span that is of an epoch and does not say of which.
type undated struct {
	period
	trace [16]byte
	// root is true where it has no parent. What has one can be of an epoch of
	// its own trace only.
	root bool
}

// timeline is what a batch and earlier ones have of a process.
type timeline struct {
	epochs []epoch
	// undated are places in timedSpans.undated.
	undated []int32
}

// timedSpans are the spans of a batch that are epochs or of one.
type timedSpans struct {
	epochs  []epoch
	undated []undated
	// epochOf and undatedOf are their resources, by place in the batch.
	epochOf, undatedOf []int32
	// number is the epoch that each of undated is of, where found is true.
	number []int64
	found  []bool
}

// readTime notes a span that is an epoch, or of one. Of the latter it returns
// the place in undated, plus one.
func (t *timedSpans) readTime(f *mlattr.Facts, n *node, s *spanState, times period) int32 {
	if times.start == 0 || times.end < times.start || n.trace == ([16]byte{}) || s.inherited[originPhase] != fromNowhere {
		return 0
	}
	number, numbered := f.IntAt(slotEpoch)
	switch f.TextAt(slotPhase) {
	case mlattr.PhaseEpoch:
		if numbered && s.inherited[originEpoch] == fromNowhere && times.start < times.end {
			t.epochs = append(t.epochs, epoch{times, spanKey{n.trace, n.id}, number})
			t.epochOf = append(t.epochOf, s.resource)
		}
	case mlattr.PhaseBatch, mlattr.PhaseValidation:
		if f.At(slotEpoch) == nil && !s.foreign {
			t.undated = append(t.undated, undated{times, n.trace, n.parent == [8]byte{}})
			t.undatedOf = append(t.undatedOf, s.resource)
			return int32(len(t.undated))
		}
	}
	return 0
}

// reset forgets the spans and keeps the memory.
func (t *timedSpans) reset() {
	t.epochs, t.undated, t.number, t.found = t.epochs[:0], t.undated[:0], t.number[:0], t.found[:0]
	t.epochOf, t.undatedOf = t.epochOf[:0], t.undatedOf[:0]
}

// bindEpochs finds the epoch of each span that does not say it. A process that
// its resource does not tell from others has none.
func (b *batch) bindEpochs(s *store) {
	t := &b.timedSpans
	if len(t.epochs) == 0 && len(t.undated) == 0 {
		return
	}
	byResource := make([]*timeline, len(b.resources))
	byProcess := make(map[string]*timeline)
	lineOf := func(resource int32) *timeline {
		if byResource[resource] == nil {
			process := b.resources[resource].process.exactKey()
			if byProcess[process] == nil {
				byProcess[process] = new(timeline)
			}
			byResource[resource] = byProcess[process]
		}
		return byResource[resource]
	}
	for i, resource := range t.epochOf {
		line := lineOf(resource)
		line.epochs = append(line.epochs, t.epochs[i])
	}
	for i, resource := range t.undatedOf {
		line := lineOf(resource)
		line.undated = append(line.undated, int32(i))
	}
	delete(byProcess, "")
	s.addEpochs(byProcess)
	t.number = slices.Grow(t.number[:0], len(t.undated))[:len(t.undated)]
	t.found = slices.Grow(t.found[:0], len(t.undated))[:len(t.undated)]
	clear(t.found)
	for _, line := range byProcess {
		line.epochs = alone(line.epochs)
		for _, i := range line.undated {
			t.number[i], t.found[i] = epochAt(line.epochs, &t.undated[i])
		}
	}
}

// mergeEpochs sorts epochs by their start and leaves out spans that were
// delivered twice.
func mergeEpochs(epochs []epoch) []epoch {
	slices.SortFunc(epochs, func(a, b epoch) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end),
			bytes.Compare(a.span.trace[:], b.span.trace[:]), bytes.Compare(a.span.span[:], b.span.span[:]))
	})
	return slices.CompactFunc(epochs, func(a, b epoch) bool { return a.span == b.span })
}

// alone returns the epochs during which there was no other. They have been
// merged.
func alone(epochs []epoch) []epoch {
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
// sorted and alone.
func epochAt(epochs []epoch, u *undated) (int64, bool) {
	after, _ := slices.BinarySearchFunc(epochs, u.start, func(e epoch, start uint64) int {
		if e.start <= start {
			return -1
		}
		return 1
	})
	if after == 0 {
		return 0, false
	}
	e := &epochs[after-1]
	return e.number, u.end <= e.end && (u.root || u.trace == e.span.trace)
}

// exactKey identifies the process and no other, or is empty where the resource
// does not: epochs of two processes must not be taken for those of one.
func (p process) exactKey() string {
	if p.instance == "" && p.pid == "" {
		return ""
	}
	return digest(p.namespace, p.service, p.host, p.instance, p.pid, p.started)
}

// recentEpochs are the epochs of a process that ended last.
type recentEpochs struct{ list []epoch }

// addEpochs remembers the epochs of processes, and adds those that it knows.
func (s *store) addEpochs(lines map[string]*timeline) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for process, line := range lines {
		known := s.epochs.find(process, now)
		if known == nil {
			line.epochs = mergeEpochs(line.epochs)
			if len(line.epochs) == 0 {
				continue
			}
			known = s.epochs.insert(process, now)
		} else {
			line.epochs = mergeEpochs(append(line.epochs, known.list...))
		}
		known.keep(line.epochs)
	}
}

// keep remembers the last of the epochs.
func (r *recentEpochs) keep(epochs []epoch) {
	if len(epochs) > maxEpochs {
		epochs = slices.Clone(epochs)
		slices.SortStableFunc(epochs, func(a, b epoch) int { return cmp.Compare(b.end, a.end) })
		epochs = epochs[:maxEpochs]
	}
	r.list = append(r.list[:0], epochs...)
}
