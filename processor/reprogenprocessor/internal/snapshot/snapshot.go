// Package snapshot copies spans into plain values of a bounded size. A copy
// shares no memory with the batch that it was made of.
package snapshot

import (
	"encoding/hex"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// The bounds of a copy. A span within them is copied whole.
const (
	// MaxValue is the length in bytes to which a value is cut, its middle left
	// out. Stack traces have four times as much.
	MaxValue = 4 << 10
	// MaxStack is the length to which a stack trace is cut.
	MaxStack = 16 << 10
	// MaxMembers is the number of attributes of a span, of elements of a list,
	// and of members of a map that are kept.
	MaxMembers = 256
	// MaxBytes is what the copies of one Copier take together.
	MaxBytes = 512 << 10
	// ValueOverhead is what a value takes of MaxBytes beside its text.
	ValueOverhead = 32
	// SpanOverhead is what a copied span takes in memory beside its texts.
	SpanOverhead = 512

	maxEvents = 32
	maxLinks  = 32
	maxDepth  = 16
	// gap stands where the middle of a text was left out.
	gap = " ... "
)

// Copier copies pdata into plain values and counts what it leaves out. Its
// budget of MaxBytes goes down with every text.
type Copier struct {
	budget, omitted int
	leave           func(key string, v pcommon.Value) bool
}

// New returns a Copier that copies every attribute.
func New() *Copier { return &Copier{budget: MaxBytes} }

// Without returns a Copier that leaves out the attributes for which leave
// returns true, and does not count them as omitted.
func Without(leave func(key string, v pcommon.Value) bool) *Copier {
	return &Copier{budget: MaxBytes, leave: leave}
}

// Used returns the number of bytes that the copies take.
func (c *Copier) Used() int { return MaxBytes - c.budget }

// Span returns a copy of a span. Its Omitted counts what was left out or cut.
func (c *Copier) Span(span ptrace.Span, scope string) failure.Span {
	c.omitted = 0
	out := failure.Span{
		Name:       c.Text(span.Name(), MaxValue),
		Kind:       span.Kind().String(),
		TraceID:    HexTrace(span.TraceID()),
		SpanID:     HexSpan(span.SpanID()),
		ParentID:   span.ParentSpanID().String(),
		Scope:      c.Text(scope, MaxValue),
		Start:      span.StartTimestamp().AsTime(),
		End:        span.EndTimestamp().AsTime(),
		Status:     failure.Status{Code: span.Status().Code().String(), Message: c.Text(span.Status().Message(), MaxValue)},
		Attributes: c.Attributes(span.Attributes()),
		Events:     []failure.Event{},
		Links:      []failure.Link{},
	}
	events := span.Events()
	first := max(0, events.Len()-maxEvents) // the last ones say how it ended
	c.omitted += first
	for i := first; i < events.Len(); i++ {
		e := events.At(i)
		out.Events = append(out.Events, failure.Event{
			Name:       c.Text(e.Name(), MaxValue),
			Time:       e.Timestamp().AsTime(),
			Attributes: c.Attributes(e.Attributes()),
		})
	}
	links := span.Links()
	c.omitted += max(0, links.Len()-maxLinks)
	for i := range min(links.Len(), maxLinks) {
		out.Links = append(out.Links, failure.Link{
			TraceID: HexTrace(links.At(i).TraceID()),
			SpanID:  HexSpan(links.At(i).SpanID()),
		})
	}
	out.Omitted = c.omitted
	return out
}

// Attributes returns a copy of the attributes.
func (c *Copier) Attributes(m pcommon.Map) jsontree.Object { return c.members(m, MaxValue, -1) }

// members copies the members of a map at a depth of nesting, or attributes at -1.
func (c *Copier) members(m pcommon.Map, limit, depth int) jsontree.Object {
	out := make(jsontree.Object, 0, min(m.Len(), MaxMembers))
	for k, v := range m.All() {
		if depth < 0 && c.leave != nil && c.leave(k, v) || !c.take(len(out)) {
			continue
		}
		most := limit
		if depth < 0 && k == attr.ExceptionStacktrace {
			most = MaxStack
		}
		out = append(out, jsontree.Member{Key: c.Text(k, limit), Value: c.Value(v, most, depth+1)})
	}
	return out
}

// take reports whether there is room for a value in what has n, or counts it as left out.
func (c *Copier) take(n int) bool {
	if n == MaxMembers || c.budget <= 0 {
		c.omitted++
		return false
	}
	c.budget -= ValueOverhead
	return true
}

// Value returns a copy of a value at a depth of nesting. Texts are cut to limit
// bytes.
func (c *Copier) Value(v pcommon.Value, limit, depth int) any {
	isNested := v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeMap
	if isNested && depth == maxDepth || v.Type() == pcommon.ValueTypeBytes && v.Bytes().Len() > limit {
		c.omitted++
		return nil
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return c.Text(v.Str(), limit)
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return jsontree.Int(v.Int())
	case pcommon.ValueTypeDouble:
		return jsontree.Float(v.Double())
	case pcommon.ValueTypeBytes:
		text, _ := mlattr.Text(v, 2*limit)
		return c.Text(text, 2*limit)
	case pcommon.ValueTypeSlice:
		out := jsontree.Array{}
		for _, e := range v.Slice().All() {
			if c.take(len(out)) {
				out = append(out, c.Value(e, limit, depth+1))
			}
		}
		return out
	case pcommon.ValueTypeMap:
		return c.members(v.Map(), limit, depth)
	}
	return nil
}

// Text is Copier.Text of a Copier of its own.
func Text(s string, limit int) string { return New().Text(s, limit) }

// Text returns a copy of s of at most limit bytes. The middle is left out: a
// stack trace's end names the error and its start the program.
func (c *Copier) Text(s string, limit int) string {
	limit = min(limit, max(c.budget, 0))
	if len(s) <= limit {
		c.budget -= len(s)
		return strings.Clone(s)
	}
	c.omitted++
	if limit < 4*len(gap) {
		return ""
	}
	c.budget -= limit
	head := limit / 4
	tail := len(s) - (limit - head - len(gap))
	return strings.ToValidUTF8(s[:head], "") + gap + strings.ToValidUTF8(s[tail:], "")
}

// pdata's own String is "" for zero.

// HexTrace spells a trace id with all its digits.
func HexTrace(id pcommon.TraceID) string { return hex.EncodeToString(id[:]) }

// HexSpan spells a span id with all its digits.
func HexSpan(id pcommon.SpanID) string { return hex.EncodeToString(id[:]) }

// MayBeCut reports whether a text in a copied tree may be without its middle.
func MayBeCut(tree any) bool {
	switch v := tree.(type) {
	case string:
		return len(v) > MaxValue-16 && strings.Contains(v, gap)
	case jsontree.Array:
		return slices.ContainsFunc(v, MayBeCut)
	case jsontree.Object:
		return slices.ContainsFunc(v, func(m jsontree.Member) bool { return MayBeCut(m.Value) })
	}
	return false
}
