package correlate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// spanOf is a span of one trace with attributes.
func spanOf(t *testing.T, id, parent byte, attrs map[string]any) ptrace.Span {
	t.Helper()
	s := ptrace.NewSpan()
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{id})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent})
	}
	require.NoError(t, s.Attributes().FromRaw(attrs))
	return s
}

// correlated returns what is added to spans that arrive in one request.
func correlated(t *testing.T, s *Store, spans ...ptrace.Span) (added []map[string]any) {
	t.Helper()
	var b Batch
	for _, one := range spans {
		_, f := vocabulary.Classify(pcommon.NewMap(), "", one)
		b.Read(f, one, 0)
	}
	b.AddResource("", false, "service")
	b.Correlate(s, func(int) string { return "" })
	for i := range spans {
		attrs := pcommon.NewMap()
		facts := b.Additions(nil, i)
		for j := range facts {
			facts[j].Put(attrs)
		}
		assert.Len(t, facts, attrs.Len())
		added = append(added, attrs.AsRaw())
	}
	require.True(t, b.Reset())
	return added
}

func TestSpansShareKeysAcrossRequests(t *testing.T) {
	s, _ := newTestStore()
	root := map[string]any{"ml.session.id": "s", "ml.request.id": "r"}
	assert.Equal(t, []map[string]any{
		{},
		{"ml.session.id": "s", "ml.request.id": "r", "ml.correlation.source": "session=parent,request=parent"},
		{"ml.session.id": "s", "ml.correlation.source": "session=trace"},
	}, correlated(t, s, spanOf(t, 1, 0, root), spanOf(t, 2, 1, nil), spanOf(t, 3, 9, nil)))
	assert.Equal(t, []map[string]any{
		{"ml.session.id": "s", "ml.request.id": "r", "ml.correlation.source": "session=parent,request=parent"},
	}, correlated(t, s, spanOf(t, 4, 2, nil)), "a later request")
}

func TestARecordLearnsFromItsSpan(t *testing.T) {
	s, _ := newTestStore()
	r := ReadRecord(new(vocabulary.Facts), pcommon.TraceID{1}, pcommon.SpanID{2})
	correlated(t, s, spanOf(t, 1, 0, map[string]any{"ml.session.id": "s"}), spanOf(t, 2, 1, nil))
	known := s.Lookup([]Record{r})
	r.Attrs = pcommon.NewMap()
	assert.False(t, r.Write(known, new(Sources)), "it has no run")
	assert.Equal(t, map[string]any{"ml.session.id": "s", "ml.correlation.source": "session=span"}, r.Attrs.AsRaw())
}
