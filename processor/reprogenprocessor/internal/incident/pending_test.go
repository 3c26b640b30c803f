package incident

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

func TestPending(t *testing.T) {
	s := NewPending[int, string](100, share.EstablishedPath)
	me := share.OriginOf(1, "me")
	now := time.Unix(1_700_000_000, 0)
	has := func(key int) bool { _, ok := s.Get(key, now); return ok }
	put := func(key int, value string, weight int64, of share.Origin) {
		s.Put(key, value, weight, of, now) // those of one batch have one time
	}
	put(1, "a", 40, me)
	put(2, "b", 40, me)
	put(3, "c", 40, me)
	assert.Equal(t, []bool{false, true, true}, []bool{has(1), has(2), has(3)}, "the oldest makes room")
	put(3, "C", 60, me)
	v, _ := s.Get(3, now)
	assert.Equal(t, "C", v)
	assert.True(t, has(2))
	put(4, "too large", 101, me)
	assert.False(t, has(4))
	assert.True(t, has(2), "for what cannot be kept nothing makes room")
	for i := range 10 {
		put(10+i, "x", 30, me)
	}
	other := share.OriginOf(2, "other")
	for i := range 10 {
		put(30+i, "x", 30, other)
	}
	assert.True(t, has(19), "another one has its share, and no more")
	assert.Equal(t, 3, s.kept.Len())
	assert.EqualValues(t, 90, s.bytes)
	now = now.Add(31 * time.Minute)
	assert.False(t, has(19), "it is too old")
}

// TestRecordedCallIsWeighed: what is kept of calls that may belong to a failure
// is bounded by its bytes, so nothing is kept that has not been weighed.
func TestRecordedCallIsWeighed(t *testing.T) {
	c := detect.Candidate{Span: ptrace.NewSpan(), Resource: pcommon.NewResource()}
	attributes := c.Span.Attributes()
	attributes.PutEmptyBytes("repro.payload").FromRaw(make([]byte, 1<<20))
	attributes.PutEmptySlice("repro.payload.size").AppendEmpty().SetStr(strings.Repeat("x", 1<<20))
	attributes.PutStr("repro.payload."+strings.Repeat("x", 1<<20), "x")
	kinds := kind.Registry{pythoncall.New()}
	rec, weight := recordingOf(&c, kinds)
	assert.Zero(t, rec.Span.Attributes().Len())
	assert.Greater(t, weight, int64(maxRecording))

	attributes.PutStr("repro.payload", "{}")
	attributes.PutInt("repro.payload.size", 2)
	attributes.PutStr("repro.payload.sha256", "ab")
	rec, weight = recordingOf(&c, kinds)
	assert.Equal(t, map[string]any{"repro.payload": "{}", "repro.payload.size": int64(2), "repro.payload.sha256": "ab"}, rec.Span.Attributes().AsRaw())
	assert.EqualValues(t, 3*snapshot.ValueOverhead+4, weight)
}

// TestWhatWaitsIsBoundedByBytes: the number of calls and exceptions that wait has no limit
// of its own, so the bytes that are counted for one are those that it takes.
func TestWhatWaitsIsBoundedByBytes(t *testing.T) {
	const limit = 4 << 20
	tr := NewTracker(Config{Bytes: 4 * limit}, kind.Registry{pythoncall.New()}, share.NewHistory(), &detect.Filter{})
	now, name := time.Unix(1_700_000_000, 0), strings.Repeat("x", snapshot.MaxValue)
	for what, add := range map[string]func(i int, c *detect.Candidate){
		"calls with long names": func(i int, c *detect.Candidate) {
			c.Span.SetName(name)
			c.Resource.Attributes().PutStr("service.name", name)
			c.Span.Attributes().PutStr("correlation_id", strconv.Itoa(i))
			tr.AddCall(c, now)
		},
		"calls of nothing": func(i int, c *detect.Candidate) {
			c.Span.Attributes().PutStr("correlation_id", strconv.Itoa(i))
			tr.AddCall(c, now)
		},
		"exceptions of nothing": func(_ int, c *detect.Candidate) { tr.AddException(c, now) },
	} {
		before := heap()
		for i := range 12_000 {
			now = now.Add(time.Millisecond)
			c := detect.Candidate{Span: ptrace.NewSpan(), Resource: pcommon.NewResource()}
			c.Span.SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8), 1})
			add(i, &c)
		}
		assert.Less(t, heap()-before, int64(2*limit), what)
	}
	assert.Positive(t, tr.Calls.kept.Len())
	assert.Positive(t, tr.Exceptions.kept.Len())
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
