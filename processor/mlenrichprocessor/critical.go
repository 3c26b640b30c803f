package mlenrichprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/criticalpath"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
)

var slotCritical = vocabulary.SlotOf(mlattr.Critical)

// critical is what is known of a span and the critical path of its trace.
type critical struct {
	// marked reports whether an ml_enrich before this one found that the span is on
	// the path, of as much of the trace as it had.
	marked bool
	// complete reports whether the trace is complete here. Then nanoseconds is for
	// how long the span was the deciding one, or criticalpath.Off.
	complete    bool
	nanoseconds int64
}

func readCritical(f *vocabulary.Facts) critical {
	return critical{marked: f.At(slotCritical) != nil}
}

// findCritical finds the critical paths of the traces that are complete in the
// batch.
func (b *batch) findCritical(s *correlate.Store) {
	spans, at := b.keys.Complete(s)
	if len(spans) == 0 {
		return
	}
	for i := range spans {
		span, to := b.spans[at[i]].span, &spans[i]
		to.Start, to.End = nanoseconds(span.StartTimestamp()), nanoseconds(span.EndTimestamp())
		if to.Start == 0 {
			to.Start = to.End // the span does not say when it began
		}
		to.Server = span.Kind() == ptrace.SpanKindServer
	}
	for i, on := range b.paths.Find(spans) {
		c := &b.spans[at[i]].critical
		c.complete, c.nanoseconds = true, on
	}
}

func nanoseconds(at pcommon.Timestamp) int64 {
	return int64(min(at, math.MaxInt64)) // #nosec G115 -- at most MaxInt64
}

// additions returns how many attributes write adds at most.
func (c *critical) additions() int {
	if !c.complete || c.nanoseconds == criticalpath.Off {
		return 0
	}
	return 2
}

// write marks the span if it is on the path, and takes away the mark if it is not.
func (c *critical) write(attrs pcommon.Map) {
	switch {
	case !c.complete:
	case c.nanoseconds != criticalpath.Off:
		attrs.PutBool(mlattr.Critical, true)
		attrs.PutDouble(mlattr.CriticalTime, float64(c.nanoseconds)/1e9)
	case c.marked:
		attrs.Remove(mlattr.Critical)
		attrs.Remove(mlattr.CriticalTime)
	}
}
