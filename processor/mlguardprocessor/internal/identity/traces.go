package identity

import (
	"cmp"
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// serviceInstance distinguishes the processes of a service.
const serviceInstance = "service.instance.id"

// Traces returns spans whose labels are all admitted, UTF-8 and not long. It does not
// change td: if a label is replaced, it returns a copy.
func (f *Filter) Traces(ctx context.Context, td ptrace.Traces) ptrace.Traces {
	p := tracesPass{Filter: f, td: td, from: share.SenderOf(sender.From(ctx)), now: f.seconds()}
	for i := range td.ResourceSpans().Len() {
		p.readResource(i)
		for j := range td.ResourceSpans().At(i).ScopeSpans().Len() {
			for k := range td.ResourceSpans().At(i).ScopeSpans().At(j).Spans().Len() {
				p.readSpan(position{i, j, k})
			}
		}
	}
	f.report(ctx, f.telemetry.ProcessorMlGuardSpansOverflowed, &p.counts)
	return p.td
}

// tracesPass is the state of one call.
type tracesPass struct {
	*Filter
	td     ptrace.Traces
	from   share.Sender
	copied bool
	now    uint32
	counts overflow

	// source is that of the resource. program is the hash of its service and
	// instance, as they are shown, and of its labels.
	source  source
	program uint64
	// whole reports whether the resource's service is admitted.
	whole bool
	// last is the latest admitted combination.
	last uint64
	// lastRun is the latest admitted run of a span.
	lastRun uint64
}

// position locates a span.
type position struct{ resource, scope, span int }

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
		switch key {
		case mlattr.ServiceNamespace:
			s.namespace = f.hasher.value(v)
		case mlattr.ServiceName:
			s.service = f.hasher.value(v)
		case serviceInstance:
			s.instance = f.hasher.value(v)
		case mlattr.RunID, mlattr.TrainingRunID, mlattr.RunInferred:
			run.ReadAttribute(key, v)
		case mlattr.JobID:
			s.job = f.hasher.value(v)
		case mlattr.RankGlobal:
			s.rank = f.hasher.value(v)
		case mlattr.HostName:
			s.host = f.hasher.value(v)
		default:
			if spanLabels[key] {
				s.labels += mix(f.hasher.text(key), f.hasher.value(v))
			}
		}
	}
	if id, inferred := run.Named(); id != "" {
		s.run, s.inferred = f.hasher.text(id), inferred
	}
	return s
}

// admitProgram admits a service and its instance. It returns the kind that was
// not admitted, or kindCount.
func (f *Filter) admitProgram(s *source, from share.Sender, now uint32) kind {
	service := mix(s.namespace, s.service)
	instance := mix(service, s.instance)
	if !f.tables[kindService].admit(request{id: service, sender: from}, now) {
		if s.instance != 0 {
			f.tables[kindInstance].note(instance, now)
		}
		return kindService
	}
	if s.instance != 0 && !f.tables[kindInstance].admit(request{id: instance, group: service, sender: from}, now) {
		return kindInstance
	}
	return kindCount
}

// readResource admits the service, instance, run and labels of a resource.
func (p *tracesPass) readResource(i int) {
	if !fitsResource(p.td.ResourceSpans().At(i).Resource().Attributes()) {
		fitResource(p.writable(i))
	}
	rs := p.td.ResourceSpans().At(i)
	p.source = p.readSource(rs.Resource().Attributes())
	p.source.inferred = false // only that of a span is of a single trace
	p.whole, p.last, p.lastRun = true, 0, 0
	s := &p.source
	refused := p.admitProgram(s, p.from, p.now)
	switch refused {
	case kindService:
		p.whole = false
		p.overflow(refused, spansOf(rs))
		run, rank := p.runOf(s)
		hide(p.writable(i), mlattr.ServiceName, serviceInstance, mlattr.RunID, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
		p.writable(i).Remove(mlattr.ServiceNamespace)
		p.writable(i).PutInt(mlattr.Identity, int64(cmp.Or(rank, mix(s.namespace, s.service)))) // #nosec G115 -- a hash
		p.program = 0
		if run != 0 {
			p.tables[kindRun].note(run, p.now)
			p.tables[kindRank].note(rank, p.now)
		}
		return
	case kindInstance:
		p.overflow(refused, spansOf(rs))
		hide(p.writable(i), serviceInstance)
		p.program = mix(s.namespace, s.service)
	default:
		p.program = mix(mix(s.namespace, s.service), s.instance)
	}
	if refused := p.admitRun(s); refused != kindCount {
		p.overflow(refused, spansOf(rs))
		_, rank := p.runOf(s)
		hideRun(p.writable(i), rank)
	}
	if s.labels != 0 {
		p.program = mix(p.program, s.labels)
		if refused := p.refusedLabels(rs.Resource().Attributes(), spansOf(rs)); len(refused) > 0 {
			hide(p.writable(i), refused...)
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
	if rank != 0 && !p.tables[kindRank].admit(request{id: rank, group: run, sender: p.from}, p.now) {
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
func (p *tracesPass) readSpan(at position) {
	span := p.span(at)
	s, labels := p.readLabels(span)
	// What ml_enrich computed for one trace stays, because a copy would cost more than all
	// else: ml_metrics shows such a run only if a resource has it too.
	if s.run != 0 && !s.inferred || s.rank != 0 || s.host != 0 {
		p.readRun(at, &s)
	}
	if labels == p.last {
		return
	}
	combinations := p.tables[kindCombination]
	if combinations.fresh(labels, p.now, p.age) {
		p.last = labels // so its labels fit
		return
	}
	if p.fitLabels(at) {
		_, labels = p.readLabels(p.span(at))
	}
	if p.checkLabels(at) {
		_, labels = p.readLabels(p.span(at))
	}
	if combinations.admit(request{id: labels, group: p.program, sender: p.from, bytes: p.bytes(at)}, p.now) {
		return
	}
	p.counts[kindCombination]++
	p.hideLabels(at)
}

// hideLabels replaces all labels of a span, including those of its resource.
func (p *tracesPass) hideLabels(at position) {
	span := p.writableSpan(at)
	attrs := span.Attributes()
	for key, v := range p.writable(at.resource).All() {
		if hides(key, v) {
			attrs.PutStr(key, mlattr.Other)
		}
	}
	for key, v := range attrs.All() {
		if hides(key, v) {
			v.SetStr(mlattr.Other)
		}
	}
	if v, ok := spanfact.ExceptionType(span); ok {
		v.SetStr(mlattr.Other)
	}
	attrs.PutBool(mlattr.Overflow, true)
}

// readLabels returns the run of a span, and the hash of its other labels.
func (p *tracesPass) readLabels(span ptrace.Span) (s source, labels uint64) {
	s = p.readSource(span.Attributes())
	labels = mix(p.program, uint64(span.Kind())<<8|uint64(span.Status().Code())) + s.labels
	if v, ok := spanfact.ExceptionType(span); ok {
		labels += mix(1, p.hasher.value(v))
	}
	return s, labels
}

// readRun admits the run of a span that differs from its resource's.
func (p *tracesPass) readRun(at position, s *source) {
	s.job = p.source.job
	for _, inherit := range [...]struct{ to, from *uint64 }{{&s.run, &p.source.run}, {&s.rank, &p.source.rank}, {&s.host, &p.source.host}} {
		if *inherit.to == 0 {
			*inherit.to = *inherit.from
		}
	}
	id := mix(mix(s.run, s.rank), s.host)
	if p.whole && id == p.lastRun {
		return
	}
	if p.whole {
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
	hideRun(p.writableSpan(at).Attributes(), rank)
}

// checkLabels replaces label values that are not admitted, and reports whether
// there were any.
func (p *tracesPass) checkLabels(at position) (replaced bool) {
	refused := p.refusedLabels(p.span(at).Attributes(), 1)
	if len(refused) > 0 {
		hide(p.writableSpan(at).Attributes(), refused...)
	}
	v, ok := spanfact.ExceptionType(p.span(at))
	if !ok || p.admitLabel(kindLabel, mlattr.ErrorType, p.hasher.value(v), p.from, p.now) {
		return len(refused) > 0
	}
	p.counts[kindLabel]++
	span := p.writableSpan(at)
	span.Attributes().PutBool(mlattr.Overflow, true)
	v, _ = spanfact.ExceptionType(span)
	v.SetStr(mlattr.Other)
	return true
}

// fitLabels makes labels of values that do not fit, and reports whether there were any.
func (p *tracesPass) fitLabels(at position) bool {
	if len(unfitLabels(p.span(at))) == 0 {
		return false
	}
	for _, v := range unfitLabels(p.writableSpan(at)) {
		fit(v)
	}
	return true
}

// unfitLabels returns the labels of a span that do not fit.
func unfitLabels(span ptrace.Span) (unfit []pcommon.Value) {
	for key, v := range span.Attributes().All() {
		if spanLabels[key] && !fits(v) {
			unfit = append(unfit, v)
		}
	}
	if v, ok := spanfact.ExceptionType(span); ok && !fits(v) {
		unfit = append(unfit, v)
	}
	return unfit
}

// bytes returns what the series of a span's labels take of a scrape.
func (p *tracesPass) bytes(at position) uint32 {
	label := func(key string) bool { return isProgram(key) || spanLabels[key] }
	line := lineOf(p.td.ResourceSpans().At(at.resource).Resource().Attributes(), label) + lineOf(p.span(at).Attributes(), label)
	if v, ok := spanfact.ExceptionType(p.span(at)); ok {
		line += textBytes(v)
	}
	return sizeOf(linesOfCombination * (lineBytes + line))
}

// refusedLabels returns the keys of labels that are not admitted, and counts
// them for a number of spans.
func (p *tracesPass) refusedLabels(attrs pcommon.Map, spans int) (refused []string) {
	for key, v := range attrs.All() {
		if !hides(key, v) {
			continue
		}
		if k := kindOf(key); !p.admitLabel(k, key, p.hasher.value(v), p.from, p.now) {
			p.overflow(k, spans)
			refused = append(refused, key)
		}
	}
	return refused
}

// hides reports whether a label may be replaced.
func hides(key string, v pcommon.Value) bool {
	return spanLabels[key] && !mlattr.CountedBy(key, v.Str())
}

// hideRun replaces the run of a resource or span, and the host, because
// ml_metrics labels calls without a run by host. It sets no overflow mark:
// series without run labels lack nothing, and ml_metrics marks the others.
//
// It adds a hash of them, so that the spans of two ranks are not counted as those of one.
func hideRun(attrs pcommon.Map, identity uint64) {
	attrs.PutStr(mlattr.RunID, mlattr.Other)
	attrs.PutInt(mlattr.Identity, int64(identity)) // #nosec G115 -- a hash
	replace(attrs, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
}

// hide replaces the values of existing keys, and sets the overflow mark.
func hide(attrs pcommon.Map, keys ...string) {
	replace(attrs, keys...)
	attrs.PutBool(mlattr.Overflow, true)
}

// replace replaces the values of existing keys.
func replace(attrs pcommon.Map, keys ...string) {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok {
			v.SetStr(mlattr.Other)
		}
	}
}

// overflow counts spans with an identity of a kind that was not admitted.
func (p *tracesPass) overflow(k kind, spans int) { p.counts[k] += int64(spans) }

// writable returns the attributes of a resource in the copy.
func (p *tracesPass) writable(i int) pcommon.Map {
	p.copyOnce()
	return p.td.ResourceSpans().At(i).Resource().Attributes()
}

// writableSpan returns a span of the copy.
func (p *tracesPass) writableSpan(at position) ptrace.Span {
	p.copyOnce()
	return p.span(at)
}

func (p *tracesPass) span(at position) ptrace.Span {
	return p.td.ResourceSpans().At(at.resource).ScopeSpans().At(at.scope).Spans().At(at.span)
}

// copyOnce copies the spans before the first change: other components may be
// reading them.
func (p *tracesPass) copyOnce() {
	if p.copied {
		return
	}
	td := ptrace.NewTraces()
	p.td.CopyTo(td)
	p.td, p.copied = td, true
}

func spansOf(rs ptrace.ResourceSpans) (n int) {
	for _, ss := range rs.ScopeSpans().All() {
		n += ss.Spans().Len()
	}
	return n
}
