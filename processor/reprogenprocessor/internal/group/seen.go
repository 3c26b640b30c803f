package group

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
)

// maxSeen is the number of keys by which failures are remembered at the most; half as
// many are at least. A failure is remembered by up to four keys.
const maxSeen = 80_000

// seenFailure is what was decided when a span first brought a failure. The zero
// value stands for a span below which one failed.
type seenFailure struct {
	fingerprint string
	incident    uint64
	hasCall     bool
	// ofRequest reports whether only HTTP requests and calls of models failed below
	// the span.
	ofRequest bool
}

// keysOf returns the keys by which a failure is remembered: its error in its
// trace, its span, and its error in its call, which may have several traces.
func (c *Counters) keysOf(o *incident.Incident) []uint64 {
	keys := make([]uint64, 0, 3)
	class, message := mlattr.ClassName(o.Failure.Error.Type), o.Failure.Error.Message
	if !o.Span.Trace.IsEmpty() {
		keys = append(keys, maphash.Comparable(c.hash, struct {
			trace           pcommon.TraceID
			errorType, what string
		}{o.Span.Trace, class, message}))
		if !o.Span.Span.IsEmpty() {
			keys = append(keys, maphash.Comparable(c.hash, o.Span))
		}
	}
	if o.Correlation != "" {
		keys = append(keys, maphash.Comparable(c.hash, [3]string{o.Correlation, class, message}))
	}
	return keys
}

// first returns what was decided about a failure that was seen before: one trace brings a
// failure once.
func (c *Counters) first(keys []uint64) (first seenFailure, again bool) {
	for _, key := range keys {
		if first, again = c.seen.Get(key); again {
			return first, true
		}
	}
	return first, false
}

// belowKey is the key by which a span with a failed child is remembered.
func (c *Counters) belowKey(parent failure.SpanKey) uint64 {
	return maphash.Comparable(c.hash, struct {
		below bool
		failure.SpanKey
	}{true, parent})
}

// HasFailedChild reports whether a child of the span failed before, and whether
// all children that failed are HTTP requests or calls of models.
func (c *Counters) HasFailedChild(span, parent failure.SpanKey) (failed, ofRequest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	below, ok := c.seen.Get(c.belowKey(span))
	return ok && span != parent, below.ofRequest
}

// ChildFailed notes that a child of parent failed.
func (c *Counters) ChildFailed(parent failure.SpanKey, ofRequest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteParent(parent, ofRequest)
}

func (c *Counters) noteParent(parent failure.SpanKey, ofRequest bool) {
	if parent.Span.IsEmpty() || parent.Trace.IsEmpty() {
		return
	}
	before, ok := c.seen.Get(c.belowKey(parent))
	c.seen.Put(c.belowKey(parent), seenFailure{ofRequest: ofRequest && (!ok || before.ofRequest)})
}

// FoundCall notes that a failure that was seen without a call has one now.
func (c *Counters) FoundCall(n *incident.Incident) {
	keys := c.keysOf(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if first, ok := c.seen.Get(key); ok {
			first.hasCall = true
			c.seen.Put(key, first)
		}
	}
}
