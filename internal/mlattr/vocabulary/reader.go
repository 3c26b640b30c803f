// Package vocabulary reads what clients send, by the tables of package clients, as
// facts under canonical names.
package vocabulary

import (
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Options selects what a Reader knows.
type Options struct {
	// Systems are the vocabularies to use. The tables of launchers and users
	// and the canonical names are always used.
	Systems System
	// Aliases map a client's key to a canonical attribute. They are the user's
	// own, hold for resources, spans, points and log records, and go before the
	// tables.
	Aliases map[string]string
	// Metrics are the user's own metrics by name. They go before the tables.
	Metrics map[string]MetricAlias
}

// Reader reads telemetry by the selected vocabularies. It never changes and is
// safe for concurrent use.
type Reader struct {
	keys     *mlattr.KeyTable[keyRules]
	prefixes []prefixRule
	// begins has true for each byte that a prefix begins with.
	begins [256]bool
	tables []Vocabulary

	exact  *mlattr.KeyTable[[]nameRule]
	parts  []nameRule // those that match a part of a name, in table order
	filter nameFilter

	events      *mlattr.KeyTable[table.EventKind]
	firstTokens []firstToken
	// streams are the clients that have rules in firstTokens.
	streams System

	metrics map[string][]metricRule
}

// Resource reads a resource's attributes into f, and recognises its clients.
func (r *Reader) Resource(attrs pcommon.Map, f *Facts) {
	f.begin()
	r.collect(attrs, onResource, "", f)
	f.Systems |= r.recognise(attrs)
	r.settle(f)
}

// Span reads a span into f. known are the clients that the span's resource and
// scope identify. A client's rule applies only where the client is recognised:
// by known, by a key in its own name space, or by the span's name.
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
	(&modelSpan{f, span}).settle()
	r.timeFirstToken(span, f)
	completeUsage(f)
	checkCurrency(f)
	if matched != nil {
		matched.say(f, number)
	}
	disown(f)
}

// say adds what a span's name says, with the number at its end. An attribute of the span
// goes before it.
func (n *nameRule) say(f *Facts, number int64) {
	set := func(slot Slot, text string) {
		if text != "" {
			f.set(slot, rankName, Fact{Kind: table.KindText, Text: text})
		}
	}
	set(SlotPhase, n.Phase)
	set(SlotOperation, n.Operation)
	set(SlotRole, n.Role)
	if n.number != 0 {
		f.set(n.number, rankName, Fact{Kind: table.KindInt, Int: number})
	}
	if f.At(SlotLoss) != nil {
		set(SlotLossScope, n.LossScope)
	}
}

// disown empties a phase that the span inherited: it belongs to an ancestor,
// and the ancestor would be counted twice.
func disown(f *Facts) {
	source := f.At(SlotCorrelationSource)
	if source == nil || !strings.Contains(source.text(), mlattr.InheritedPhase) {
		return
	}
	if phase := f.At(SlotPhase); phase != nil && phase.Own {
		phase.Text, phase.Inherited = "", true
	}
}

// Point reads a metric point's attributes into f. known is as for Span.
func (r *Reader) Point(known System, attrs pcommon.Map, f *Facts) {
	r.read(known, attrs, onPoint, f)
}

// Record reads a log record's attributes into f, by the rules for spans. known
// is as for Span.
func (r *Reader) Record(known System, attrs pcommon.Map, f *Facts) {
	r.read(known, attrs, onRecord, f)
}

func (r *Reader) read(known System, attrs pcommon.Map, item where, f *Facts) {
	f.begin()
	f.Systems = known
	r.collect(attrs, item, "", f)
	r.settle(f)
}

// Default returns the Reader of all vocabularies, without aliases of a user.
var Default = sync.OnceValue(func() *Reader { return NewReader(Options{Systems: AllSystems}) })

// Classify reads one span and its resource, whether ml_enrich has read them or
// not. To read many spans, call Reader.Resource once for each resource,
// Reader.Scope once for each scope and Reader.Span with the union of the
// results, and use the Facts again.
func Classify(resource pcommon.Map, scope string, span ptrace.Span) (ofResource, ofSpan *Facts) {
	r := Default()
	ofResource, ofSpan = new(Facts), new(Facts)
	r.Resource(resource, ofResource)
	r.Span(ofResource.Systems|r.Scope(scope), span, ofSpan)
	return ofResource, ofSpan
}
