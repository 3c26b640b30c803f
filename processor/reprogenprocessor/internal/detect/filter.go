package detect

import (
	"encoding/binary"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Filter reports without a lock whether a trace may be one of a set. It is wrong for
// few of those that are not.
type Filter struct {
	slots [4096]atomic.Int32
}

func (f *Filter) slot(id pcommon.TraceID) *atomic.Int32 {
	mixed := (binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:])) * 0x9E3779B97F4A7C15
	return &f.slots[mixed>>52]
}

// Add adds a trace to the set.
func (f *Filter) Add(id pcommon.TraceID) { f.slot(id).Add(1) }

// Remove removes a trace that was added.
func (f *Filter) Remove(id pcommon.TraceID) { f.slot(id).Add(-1) }

// MayHave reports whether a trace may be in the set. It is true for every one that is.
func (f *Filter) MayHave(id pcommon.TraceID) bool { return f.slot(id).Load() != 0 }
