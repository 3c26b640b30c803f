package reprogenprocessor

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// The bounds of a copy. A span within them is copied whole.
const (
	maxValueBytes = 4 << 10
	maxStackBytes = 16 << 10
	maxAttributes = 256
	maxEvents     = 32
	maxLinks      = 32
	maxDepth      = 16
	// maxCopyBytes is what the copies for one failure take together: its
	// span, its resource and its ancestors.
	maxCopyBytes = 512 << 10
	// valueOverhead is what a value takes of that beside its text.
	valueOverhead = 32
	// gap stands where the middle of a text was left out.
	gap = " ... "
)

// copier copies pdata into plain values and counts what it leaves out. Its
// budget goes down with every text.
type copier struct {
	budget  int
	longest int // the length to which values are cut; stack traces at four times it
	omitted int
	names   *CallAttributesConfig // what is decoded elsewhere; nil: nothing is
}

func newCopier() *copier { return &copier{budget: maxCopyBytes, longest: maxValueBytes} }

// newCopier returns one for what is kept of spans.
func (r *recorder) newCopier() *copier {
	return &copier{budget: maxCopyBytes, longest: r.cfg.Traces.AttributeBytes, names: &r.cfg.CallAttributes}
}

func (c *copier) span(span ptrace.Span, scope string) failure.Span {
	c.omitted = 0
	out := failure.Span{
		Name:          c.text(span.Name(), c.longest),
		Kind:          span.Kind().String(),
		TraceID:       hexTrace(span.TraceID()),
		SpanID:        hexSpan(span.SpanID()),
		Scope:         c.text(scope, c.longest),
		Start:         span.StartTimestamp().AsTime(),
		End:           span.EndTimestamp().AsTime(),
		Status:        span.Status().Code().String(),
		StatusMessage: c.text(span.Status().Message(), c.longest),
		Attributes:    c.attributes(span.Attributes()),
	}
	if !span.ParentSpanID().IsEmpty() {
		out.ParentID = hexSpan(span.ParentSpanID())
	}
	events := span.Events()
	first := max(0, events.Len()-maxEvents) // the last ones tell of the end
	c.omitted += first
	for i := first; i < events.Len(); i++ {
		e := events.At(i)
		out.Events = append(out.Events, failure.Event{
			Name:       c.text(e.Name(), c.longest),
			Time:       e.Timestamp().AsTime(),
			Attributes: c.attributes(e.Attributes()),
		})
	}
	links := span.Links()
	c.omitted += max(0, links.Len()-maxLinks)
	for i := range min(links.Len(), maxLinks) {
		out.Links = append(out.Links, failure.Link{
			TraceID: hexTrace(links.At(i).TraceID()),
			SpanID:  hexSpan(links.At(i).SpanID()),
		})
	}
	out.Omitted = c.omitted
	return out
}

// attributes leaves the payload out, and arguments that are JSON: they are
// decoded elsewhere, and neither their raw text nor a hash may reach a file.
func (c *copier) attributes(m pcommon.Map) jsontree.Object {
	out := make(jsontree.Object, 0, min(m.Len(), maxAttributes))
	for k, v := range m.All() {
		if c.names != nil && (c.names.isPayload(k) || v.Type() == pcommon.ValueTypeStr && c.names.isArguments(k)) {
			continue
		}
		if len(out) == maxAttributes || c.budget <= 0 {
			c.omitted++
			continue
		}
		c.budget -= valueOverhead
		limit := c.longest
		if k == attrExceptionStacktrace {
			limit = 4 * c.longest
		}
		out = append(out, jsontree.Member{Key: c.text(k, c.longest), Value: c.value(v, limit, 0)})
	}
	return out
}

func (c *copier) value(v pcommon.Value, limit, depth int) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return c.text(v.Str(), limit)
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return jsontree.Int(v.Int())
	case pcommon.ValueTypeDouble:
		return jsontree.Float(v.Double())
	case pcommon.ValueTypeBytes:
		b := v.Bytes()
		if b.Len() > limit {
			c.omitted++
			return nil
		}
		text, _ := mlattr.Text(v, 2*limit)
		return c.text(text, 2*limit)
	case pcommon.ValueTypeSlice:
		if depth == maxDepth {
			c.omitted++
			return nil
		}
		out := jsontree.Array{}
		for _, e := range v.Slice().All() {
			if len(out) == maxAttributes || c.budget <= 0 {
				c.omitted++
				continue
			}
			c.budget -= valueOverhead
			out = append(out, c.value(e, limit, depth+1))
		}
		return out
	case pcommon.ValueTypeMap:
		if depth == maxDepth {
			c.omitted++
			return nil
		}
		out := jsontree.Object{}
		for k, e := range v.Map().All() {
			if len(out) == maxAttributes || c.budget <= 0 {
				c.omitted++
				continue
			}
			c.budget -= valueOverhead
			out = append(out, jsontree.Member{Key: c.text(k, limit), Value: c.value(e, limit, depth+1)})
		}
		return out
	}
	return nil
}

// text cuts s to limit bytes, the middle out: a stack trace's end names the
// error and its start the program. It copies, because pdata's memory is reused.
func (c *copier) text(s string, limit int) string {
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
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + gap + s[tail:]
}

func hexTrace(id pcommon.TraceID) string { return hexOf(id[:]) }

func hexSpan(id pcommon.SpanID) string { return hexOf(id[:]) }

// hexOf spells an id with all its digits: pdata's own String is "" for zero.
func hexOf(id []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(id))
	for _, b := range id {
		out = append(out, digits[b>>4], digits[b&0xF])
	}
	return string(out)
}
