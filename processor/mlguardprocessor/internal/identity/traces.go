package identity

import (
	"cmp"
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
)

// Traces returns spans whose labels are all admitted, UTF-8 and not long. It does not
// change td: if a label is replaced, it returns a copy.
func (f *Filter) Traces(ctx context.Context, td ptrace.Traces) ptrace.Traces {
	replaced := f.Admit(ctx, td)
	return replaced.In(td)
}

// Admit returns what stands for the resources and spans of td whose labels are not all
// admitted, UTF-8 and not long. It does not change td.
func (f *Filter) Admit(ctx context.Context, td ptrace.Traces) admission.Replaced {
	p := tracesPass{pass: f.begin(ctx)}
	for i, rs := range td.ResourceSpans().All() {
		p.at, p.spans = admission.Position{Resource: i, Scope: none}, rs.ScopeSpans()
		p.resource, p.copied = rs.Resource().Attributes(), false
		p.readResource()
		for j, ss := range rs.ScopeSpans().All() {
			for k, span := range ss.Spans().All() {
				p.at = admission.Position{Resource: i, Scope: j, Span: k}
				p.span, p.copied = span, false
				p.readSpan()
			}
		}
	}
	f.report(ctx, f.telemetry.ProcessorMlGuardSpansOverflowed, &p.counts)
	return p.replaced
}

// tracesPass is the state of one call.
type tracesPass struct {
	pass
	replaced admission.Replaced
	// at is what is read: span, or resource where the scope is none. copied reports whether
	// that is a copy.
	at       admission.Position
	resource pcommon.Map
	span     ptrace.Span
	copied   bool
	// spans are those of the resource.
	spans ptrace.ScopeSpansSlice

	// source is that of the resource. program is the hash of its service and
	// instance, as they are shown, and of its labels.
	source  source
	program uint64
	// whole reports whether the resource's service is admitted.
	whole bool
	// recent are the latest admitted combinations, by a part of each.
	recent [recentCombinations]uint64
	// lastRun is the latest admitted run of a span.
	lastRun uint64
}

const none = -1

// recentCombinations is how many admitted combinations of a request are remembered.
const recentCombinations = 16

// source has the hashes of the identifying attributes of a resource or span; 0
// means that the attribute is missing.
type source struct {
	namespace, service, instance uint64
	run, job, rank, host         uint64
	// labels is the hash of the resource attributes that become labels.
	labels uint64
	// inferred reports whether the run was computed for a single trace.
	inferred bool
}

func (f *Filter) readSource(attrs pcommon.Map) (s source) {
	var run spanfact.RunIDs
	for key, v := range attrs.All() {
		of := sourceKeys.Find(key)
		if of == nil {
			continue
		}
		switch *of {
		case namespaceKey:
			s.namespace = f.hasher.value(v)
		case serviceKey:
			s.service = f.hasher.value(v)
		case instanceKey:
			s.instance = f.hasher.value(v)
		case runKey, trainingRunKey, runInferredKey:
			run.ReadAttribute(key, v)
		case jobKey:
			s.job = f.hasher.value(v)
		case rankKey:
			s.rank = f.hasher.value(v)
		case hostKey:
			s.host = f.hasher.value(v)
		default:
			s.labels += mix(uint64(*of), f.hasher.value(v))
		}
	}
	if id, inferred := run.Named(); id != "" {
		s.run, s.inferred = f.hasher.text(id), inferred
	}
	return s
}

// readResource admits the service, instance, run and labels of a resource.
func (p *tracesPass) readResource() {
	if !fitsResource(p.resource) {
		fitResource(p.writable())
	}
	p.source = p.readSource(p.resource)
	p.source.inferred = false // only that of a span is of a single trace
	s, spans := &p.source, p.count()
	refused, program := p.admitProgram(s)
	p.program, p.whole, p.lastRun = program, refused != kindService, 0
	if refused != kindCount {
		p.counts[refused] += spans
		admission.HideKeys(p.writable(), mlattr.ServiceInstanceID)
		p.writable().PutBool(mlattr.Overflow, true)
	}
	run, rank := p.runOf(s)
	if !p.whole {
		attrs := p.writable()
		admission.HideKeys(attrs, mlattr.ServiceName, mlattr.RunID, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
		attrs.Remove(mlattr.ServiceNamespace)
		attrs.PutInt(mlattr.Identity, int64(cmp.Or(rank, mix(s.namespace, s.service)))) // #nosec G115 -- a hash
		if run != 0 {
			p.tables[kindRun].note(run, p.now)
			p.tables[kindRank].note(rank, p.now)
		}
		return
	}
	if refused := p.admitRun(s); refused != kindCount {
		p.counts[refused] += spans
		admission.Hide(p.writable(), int64(rank)) // #nosec G115 -- a hash
	}
	if s.labels != 0 {
		p.program = mix(p.program, s.labels)
		if p.checkLabels(spans) {
			p.writable().PutBool(mlattr.Overflow, true)
		}
	}
}

// admitRun admits a run and its rank. A run that was computed for one trace is
// never newly admitted, because some clients have one for each request. It
// returns the kind that was not admitted, or kindCount.
func (p *tracesPass) admitRun(s *source) kind {
	run, rank := p.runOf(s)
	if run != 0 && !p.tables[kindRun].admit(request{id: run, sender: p.from, known: s.inferred}, p.now) {
		if !s.inferred {
			p.tables[kindRank].note(rank, p.now)
		}
		return kindRun
	}
	if rank != 0 && !p.admit(kindRank, rank, run) {
		return kindRank
	}
	return kindCount
}

// runOf returns the identities of a run and its rank, or 0.
func (p *tracesPass) runOf(s *source) (run, rank uint64) {
	service := mix(p.source.namespace, p.source.service)
	id := cmp.Or(s.run, s.job)
	if id != 0 {
		run = mix(service, id)
	}
	if id|s.rank|s.host != 0 {
		rank = mix(mix(mix(service, id), mix(s.job, s.rank)), s.host)
	}
	return run, rank
}

// readSpan admits the run and the labels of a span.
func (p *tracesPass) readSpan() {
	s, labels := p.readLabels()
	// What ml_enrich computed for one trace stays, because a copy would cost more than all
	// else: ml_metrics shows such a run only if a resource has it too.
	if s.run != 0 && !s.inferred || s.rank != 0 || s.host != 0 {
		p.readRun(&s)
	}
	recent := &p.recent[labels%recentCombinations]
	if labels == *recent {
		return
	}
	combinations := p.tables[kindCombination]
	if combinations.fresh(labels, p.now, p.age) {
		*recent = labels // so its labels fit
		return
	}
	if p.replace(func(_ string, v pcommon.Value) bool { return !fits(v) }, func(_ string, v pcommon.Value) { fit(v) }) {
		_, labels = p.readLabels()
	}
	if p.checkLabels(1) {
		p.writable().PutBool(mlattr.Overflow, true)
		_, labels = p.readLabels()
	}
	if combinations.admit(request{id: labels, group: p.program, sender: p.from, bytes: p.bytes()}, p.now) {
		return
	}
	p.counts[kindCombination]++
	attrs := p.writable()
	for key, v := range p.resource.All() {
		if isSpanLabel(key) && hides(key, v) {
			attrs.PutStr(key, mlattr.Other)
		}
	}
	p.replace(hides, hide)
	attrs.PutBool(mlattr.Overflow, true)
}

// readLabels returns the run of a span, and the hash of its other labels.
func (p *tracesPass) readLabels() (s source, labels uint64) {
	s = p.readSource(p.span.Attributes())
	labels = mix(p.program, uint64(p.span.Kind())<<8|uint64(p.span.Status().Code())) + s.labels
	if v, ok := spanfact.ExceptionType(p.span); ok {
		labels += mix(1, p.hasher.value(v))
	}
	return s, labels
}

// readRun admits the run of a span that differs from its resource's.
func (p *tracesPass) readRun(s *source) {
	of := &p.source
	s.run, s.job, s.rank, s.host = cmp.Or(s.run, of.run), of.job, cmp.Or(s.rank, of.rank), cmp.Or(s.host, of.host)
	id := mix(mix(s.run, s.rank), s.host)
	if p.whole {
		if id == p.lastRun {
			return
		}
		refused := p.admitRun(s)
		if refused == kindCount {
			p.lastRun = id
			return
		}
		if !s.inferred {
			p.counts[refused]++
		}
	}
	_, rank := p.runOf(s)
	p.replaced.HideRun(p.at, int64(rank)) // #nosec G115 -- a hash
}

// labels yields the labels of the resource or span, with their keys. The type of the
// exception of a span is one.
func (p *tracesPass) labels(yield func(string, pcommon.Value) bool) {
	for key, v := range p.attributes().All() {
		if isSpanLabel(key) && !yield(key, v) {
			return
		}
	}
	if p.at.Scope == none {
		return
	}
	if v, ok := spanfact.ExceptionType(p.span); ok {
		yield(mlattr.ErrorType, v)
	}
}

// replace replaces labels, in a copy, and reports whether there were any to replace.
func (p *tracesPass) replace(which func(string, pcommon.Value) bool, by func(string, pcommon.Value)) bool {
	for key, v := range p.labels {
		if !which(key, v) {
			continue
		}
		p.writable()
		for key, v := range p.labels {
			if which(key, v) {
				by(key, v)
			}
		}
		return true
	}
	return false
}

// checkLabels replaces label values that are not admitted, counts them for a number of
// spans, and reports whether there were any.
func (p *tracesPass) checkLabels(spans int64) bool {
	return p.replace(func(key string, v pcommon.Value) bool {
		return hides(key, v) && !p.admitLabel(key, v)
	}, func(key string, v pcommon.Value) {
		p.counts[kindOf(key)] += spans
		hide(key, v)
	})
}

// hides reports whether a label may be replaced.
func hides(key string, v pcommon.Value) bool { return !mlattr.CountedBy(key, v.Str()) }

func hide(_ string, v pcommon.Value) { v.SetStr(mlattr.Other) }

// bytes returns what the series of a span's labels take of a scrape.
func (p *tracesPass) bytes() uint32 {
	line := lineOf(p.resource, func(key string) bool { return isProgram(key) || isSpanLabel(key) })
	for key, v := range p.labels {
		line += labelBytes + len(key) + textBytes(v)
	}
	return sizeOf(linesOfCombination * (lineBytes + line))
}

// count returns the number of spans of the present resource.
func (p *tracesPass) count() (n int64) {
	for _, ss := range p.spans.All() {
		n += int64(ss.Spans().Len())
	}
	return n
}

// attributes returns those of the resource or span, and writable those of a copy, because
// other components may be reading them.
func (p *tracesPass) attributes() pcommon.Map {
	if p.at.Scope == none {
		return p.resource
	}
	return p.span.Attributes()
}

func (p *tracesPass) writable() pcommon.Map {
	switch {
	case p.copied:
	case p.at.Scope == none:
		p.resource = p.replaced.CopyResource(p.at.Resource, p.resource)
	default:
		p.span = p.replaced.CopySpan(p.at, p.span)
	}
	p.copied = true
	return p.attributes()
}
