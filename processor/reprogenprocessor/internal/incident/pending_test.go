package incident

import (
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
	s := NewPending[int, string](3, 100, share.EstablishedPath)
	me := share.OriginOf(1, "me")
	now := time.Unix(1_700_000_000, 0)
	has := func(key int) bool { _, ok := s.Get(key, now); return ok }
	s.Put(1, "a", 40, me, now)
	s.Put(2, "b", 40, me, now)
	s.Put(3, "c", 40, me, now)
	assert.Equal(t, []bool{false, true, true}, []bool{has(1), has(2), has(3)}, "the oldest makes room")
	s.Put(3, "C", 60, me, now)
	v, _ := s.Get(3, now)
	assert.Equal(t, "C", v)
	assert.True(t, has(2))
	s.Put(4, "too large", 101, me, now)
	assert.False(t, has(4))
	assert.True(t, has(2), "for what cannot be kept nothing makes room")
	for i := range 10 {
		s.Put(10+i, "x", 1, me, now)
	}
	other := share.OriginOf(2, "other")
	for i := range 10 {
		s.Put(30+i, "x", 1, other, now)
	}
	assert.True(t, has(19), "another one has its share, and no more")
	assert.Equal(t, 3, s.kept.Len())
	assert.EqualValues(t, 3, s.bytes)
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
	tr := NewTracker(Config{Bytes: 1 << 20}, kind.Registry{pythoncall.New()}, share.NewHistory(), &detect.Filter{})
	rec, weight := tr.recordingOf(&c)
	assert.Zero(t, rec.Span.Attributes().Len())
	assert.Greater(t, weight, int64(maxRecording))

	attributes.PutStr("repro.payload", "{}")
	attributes.PutInt("repro.payload.size", 2)
	attributes.PutStr("repro.payload.sha256", "ab")
	rec, weight = tr.recordingOf(&c)
	assert.Equal(t, map[string]any{"repro.payload": "{}", "repro.payload.size": int64(2), "repro.payload.sha256": "ab"}, rec.Span.Attributes().AsRaw())
	assert.EqualValues(t, 3*snapshot.ValueOverhead+4, weight)
}
