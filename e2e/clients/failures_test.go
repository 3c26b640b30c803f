package clients

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// spanOf returns the stored span of a failure.
func spanOf(t *testing.T, spans []harness.StoredSpan, failure harness.TrueError) harness.StoredSpan {
	t.Helper()
	for _, span := range spans {
		if span.Span.TraceID().String() == failure.TraceID && span.Span.SpanID().String() == failure.SpanID {
			return span
		}
	}
	require.Failf(t, "not stored", "the span %s/%s of %q", failure.TraceID, failure.SpanID, failure.Type)
	return harness.StoredSpan{}
}

// parentOf returns the parent of a span.
func parentOf(spans []harness.StoredSpan, child harness.StoredSpan) (harness.StoredSpan, bool) {
	for _, span := range spans {
		if span.Span.TraceID() == child.Span.TraceID() && span.Span.SpanID() == child.Span.ParentSpanID() {
			return span, true
		}
	}
	return harness.StoredSpan{}, false
}

// innermost returns the failures whose span has no child that failed: the one
// of each trace that a reproduction is about.
func innermost(spans []harness.StoredSpan, failures []harness.TrueError) []harness.TrueError {
	parents := map[string]bool{}
	for _, failure := range failures {
		for _, span := range spans {
			if span.Span.TraceID().String() == failure.TraceID && span.Span.SpanID().String() == failure.SpanID {
				parents[failure.TraceID+span.Span.ParentSpanID().String()] = true
			}
		}
	}
	var found []harness.TrueError
	for _, failure := range failures {
		if !parents[failure.TraceID+failure.SpanID] {
			found = append(found, failure)
		}
	}
	return found
}
