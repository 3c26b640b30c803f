package mlattr

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Options selects what a Reader knows.
type Options struct {
	// Systems are the vocabularies to use. The launchers' table, the users'
	// and the canonical names are always in.
	Systems System
	// Aliases are the user's own, from a client's key to the canonical
	// attribute, for resources, spans, points and records alike. They are
	// tried before the tables.
	Aliases map[string]string
	// Metrics are the user's own metrics by name. They are tried before the
	// tables.
	Metrics map[string]MetricAlias
}

// Reader is the compiled vocabulary. It does not change once built, and any
// number of goroutines may use it.
type Reader struct {
	keys     keyTable
	prefixes []prefixRule
	// begins marks the bytes that a prefix begins with.
	begins [256]bool
	tables []Table

	exact    map[string][]nameRule
	affixes  []nameRule // Prefix and Suffix, in table order
	numbered []nameRule
	filter   nameFilter

	events      eventTable
	firstTokens []firstToken
	// streams are the clients that firstTokens has events of.
	streams System

	metrics map[string][]metricRule
}

// Resource reads a resource's attributes into f.
func (r *Reader) Resource(attrs pcommon.Map, f *Facts) {
	f.begin()
	r.collect(attrs, onResource, "", f)
	f.Systems |= r.recognise(attrs)
	r.settle(f)
}

// Span reads a span into f. Known is what the span's resource and scope gave
// away. A rule of a client's applies only where the client is recognised: by
// those, by a key in the client's own name space, or by the span's name.
func (r *Reader) Span(known System, span ptrace.Span, f *Facts) {
	f.begin()
	f.Systems = known
	attrs, name := span.Attributes(), span.Name()
	r.collect(attrs, onSpan, name, f)
	matched, number := r.name(name, span.ParentSpanID().IsEmpty(), attrs, f.Systems)
	if matched != nil {
		f.Systems |= matched.system
		f.name = matched
	}
	r.settle(f)
	r.timeFirstToken(span, f)
	completeInput(f)
	if matched == nil {
		disown(f)
		return
	}
	f.setName(slotPhase, matched.Phase)
	f.setName(slotOperation, matched.Operation)
	f.setName(slotRole, matched.Role)
	if matched.number != 0 {
		f.setInt(matched.number, number)
	}
	if f.At(slotLoss) != nil {
		f.setName(slotLossScope, matched.LossScope)
	}
	disown(f)
}

// disown takes the text from a phase that the span inherited: it is an
// ancestor's, and who counted it would count the ancestor twice.
func disown(f *Facts) {
	source := f.At(slotSource)
	if source == nil || !strings.Contains(source.text(), InheritedPhase) {
		return
	}
	if phase := f.At(slotPhase); phase != nil && phase.Own {
		phase.Text, phase.Inherited = "", true
	}
}

// Point reads a metric point's attributes into f.
func (r *Reader) Point(known System, attrs pcommon.Map, f *Facts) {
	f.begin()
	f.Systems = known
	r.collect(attrs, onPoint, "", f)
	r.settle(f)
}

// Record reads a log record's attributes into f, by the rules for spans.
func (r *Reader) Record(known System, attrs pcommon.Map, f *Facts) {
	f.begin()
	f.Systems = known
	r.collect(attrs, onSpan, "", f)
	r.settle(f)
}
