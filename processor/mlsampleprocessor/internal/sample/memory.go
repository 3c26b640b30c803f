package sample

import "github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"

// memory is what waits, within a limit of bytes, and what has become of it.
type memory struct {
	// most is the limit, bytes what is taken of it, waiting the number of units that wait.
	most, bytes int64
	waiting     int
	// retained are in the order of their decisions.
	retained []*group
	out      []Kept
	counts   Counts
}

// The memory, in bytes, that is counted for a unit and its trace, and for each
// fragment and header, besides their contents.
const (
	unitBytes     = 512
	fragmentBytes = 64
	headerBytes   = 128
)

// Part is encoded spans of a unit, which must not change after Add.
type Part struct {
	Unit *Unit
	blob.Fragment
}

// sizeOf returns the memory of a fragment in bytes, with that of its header if no fragment
// that waits has it. It is 0 without data.
func sizeOf(f *blob.Fragment) int64 {
	if f.Header == nil {
		return 0
	}
	size := len(f.Data) + fragmentBytes
	if f.Header.Users == 0 {
		size += len(f.Header.Resource) + len(f.Header.Scope) + headerBytes
	}
	return int64(size)
}

// Kept is the spans of a unit that are kept and wait to be sent.
type Kept struct {
	Trace TraceID
	// Count is how many spans each of them stands for.
	Count int64
	// Spans is their number.
	Spans int64

	fragments []blob.Fragment
}

// Encoding returns the spans as OTLP's TracesData.
func (k *Kept) Encoding() []byte {
	size := 0
	for i := range k.fragments {
		f := &k.fragments[i]
		size += len(f.Data) + len(f.Header.Resource) + len(f.Header.Scope) + fragmentBytes
	}
	data := make([]byte, 0, size)
	for i := range k.fragments {
		data = blob.Append(data, k.fragments[i].Header, k.fragments[i].Data)
	}
	return data
}

// add adds a fragment to a unit. Without a header only its number of spans counts.
func (m *memory) add(u *Unit, f blob.Fragment) {
	switch size := sizeOf(&f); {
	case u.state == dropped: // by making room, or since Assign
		m.counts.Dropped += f.Spans
		return
	case m.bytes+size > m.most:
		m.counts.Overflow += f.Spans
		return
	default:
		m.bytes += size
	}
	if f.Header != nil {
		f.Header.Users++
	}
	switch {
	case u.state == kept:
		m.counts.Kept += f.Spans
		m.out = append(m.out, Kept{Trace: u.trace.id, Count: u.count, Spans: f.Spans, fragments: []blob.Fragment{f}})
	case f.Header == nil && len(u.fragments) > 0:
		u.fragments[0].Spans += f.Spans
	default:
		u.fragments = append(u.fragments, f)
	}
}

// free removes fragments from memory.
func (m *memory) free(fragments []blob.Fragment) {
	for i := range fragments {
		f := &fragments[i]
		if f.Header != nil {
			f.Header.Users--
		}
		m.bytes -= sizeOf(f)
	}
}

// settle applies a decision to a unit.
func (m *memory) settle(u *Unit, to state, count int64) {
	if u.state == waiting {
		u.trace.waits--
		m.waiting--
	}
	if u.state <= retained {
		m.bytes -= unitBytes
	}
	u.state, u.count = to, count
	if to == retained {
		m.bytes += unitBytes
		return
	}
	spans := int64(0)
	for i := range u.fragments {
		spans += u.fragments[i].Spans
	}
	switch {
	case len(u.fragments) == 0:
	case to == kept:
		m.counts.Kept += spans
		m.out = append(m.out, Kept{Trace: u.trace.id, Count: count, Spans: spans, fragments: u.fragments})
	default:
		m.counts.Dropped += spans
		m.free(u.fragments)
	}
	u.fragments = nil
}
