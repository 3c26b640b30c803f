package correlate

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// linkedRoots is a batch of a complete trace, and of another one without a parent
// whose many roots are linked to it.
func linkedRoots(t *testing.T, roots int) (b *Batch, s *Store) {
	t.Helper()
	s, _ = newTestStore()
	b = new(Batch)
	add := func(trace byte, id, parent uint64, link bool) {
		one := ptrace.NewSpan()
		one.SetTraceID(pcommon.TraceID{trace})
		one.SetSpanID(spanID(id))
		if parent != 0 {
			one.SetParentSpanID(spanID(parent))
		}
		if link {
			to := one.Links().AppendEmpty()
			to.SetTraceID(pcommon.TraceID{1})
			to.SetSpanID(spanID(1))
		}
		one.SetName("AdamW.step")
		one.Attributes().PutStr("ml.phase", "optimizer")
		_, f := vocabulary.Classify(pcommon.NewMap(), "", one)
		b.Read(f, one, 0)
	}
	add(1, 1, 0, false)
	add(1, 2, 1, false)
	add(2, 1, 99, false) // its parent is missing
	for i := range roots {
		add(2, uint64(i+1000), 0, true)
		add(2, uint64(i+100_000), uint64(i+1000), false)
	}
	b.AddResource(s, "", false, "service")
	b.Correlate(s, func(int) string { return "" })
	return b, s
}

func spanID(n uint64) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}

// TestManyLinkedRoots reads each trace once, however many of its roots are linked.
func TestManyLinkedRoots(t *testing.T) {
	b, s := linkedRoots(t, maxBatchLinks)
	began := time.Now()
	spans, _ := b.Complete(s)
	assert.Less(t, time.Since(began), time.Second)
	assert.Len(t, spans, 2, "the other trace is not complete")
}
