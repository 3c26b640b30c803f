package identity

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// serviceInstance tells the processes of a service apart.
const serviceInstance = "service.instance.id"

// eventException and typeOfException are where the class of an error comes from
// that no attribute of the span has.
const (
	eventException  = "exception"
	typeOfException = "exception.type"
)

// Traces returns spans of which the labels are admitted. It leaves td as it is,
// and returns a copy where something of it is not admitted.
func (f *Filter) Traces(ctx context.Context, td ptrace.Traces) ptrace.Traces {
	p := tracesPass{Filter: f, td: td, now: f.seconds()}
	for i := range td.ResourceSpans().Len() {
		p.readResource(i)
		for j := range td.ResourceSpans().At(i).ScopeSpans().Len() {
			for k := range td.ResourceSpans().At(i).ScopeSpans().At(j).Spans().Len() {
				p.readSpan(place{i, j, k})
			}
		}
	}
	f.report(ctx, f.telemetry.ProcessorMlGuardSpansOverflowed, &p.counts)
	return p.td
}

// tracesPass is one call.
type tracesPass struct {
	*Filter
	td     ptrace.Traces
	copied bool
	now    uint32
	counts overflow

	// source is that of the resource, and program the service and instance as
	// they are shown, with the labels of the resource.
	source  source
	program uint64
	// whole is false where the whole resource is one of the overflow.
	whole bool
	// last is the newest combination that is admitted.
	last uint64
	// lastRun is the newest run of a span that is admitted.
	lastRun uint64
}

// place is where a span is.
type place struct{ resource, scope, span int }

// source is what a resource or a span says about whose it is, hashed; what it
// does not say is 0.
type source struct {
	namespace, service, instance uint64
	run, job, rank, host         uint64
	// labels is the hash of what becomes labels where a span does not have it.
	labels uint64
	// inferred is true where a run was computed for a single trace.
	inferred bool
}

func (f *Filter) readSource(attrs pcommon.Map) (s source) {
	var training uint64
	for key, v := range attrs.All() {
		switch key {
		case mlattr.ServiceNamespace:
			s.namespace = f.hasher.value(v)
		case mlattr.ServiceName:
			s.service = f.hasher.value(v)
		case serviceInstance:
			s.instance = f.hasher.value(v)
		case mlattr.RunID:
			s.run = f.hasher.value(v)
		case mlattr.TrainingRunID:
			training = f.hasher.value(v)
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
	if s.run == 0 {
		s.run = training
	}
	return s
}

// admitProgram admits a service and its instance. The result is the kind that
// was not admitted, or kindCount.
func (f *Filter) admitProgram(s *source, now uint32) kind {
	service := mix(s.namespace, s.service)
	instance := mix(service, s.instance)
	if !f.tables[kindService].admit(request{id: service}, now) {
		if s.instance != 0 {
			f.tables[kindInstance].note(instance, now)
		}
		return kindService
	}
	if s.instance != 0 && !f.tables[kindInstance].admit(request{id: instance}, now) {
		return kindInstance
	}
	return kindCount
}

// readResource admits whose spans follow.
func (p *tracesPass) readResource(i int) {
	rs := p.td.ResourceSpans().At(i)
	p.source = p.readSource(rs.Resource().Attributes())
	p.whole, p.last, p.lastRun = true, 0, 0
	s := &p.source
	refused := p.admitProgram(s, p.now)
	switch refused {
	case kindService:
		p.whole = false
		p.overflow(refused, spansOf(rs))
		hide(p.own(i), mlattr.ServiceName, serviceInstance, mlattr.RunID, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
		p.own(i).Remove(mlattr.ServiceNamespace)
		p.program = 0
		p.noteRun(s)
		return
	case kindInstance:
		p.overflow(refused, spansOf(rs))
		hide(p.own(i), serviceInstance)
		p.program = mix(s.namespace, s.service)
	default:
		p.program = mix(mix(s.namespace, s.service), s.instance)
	}
	if refused := p.admitRun(s); refused != kindCount {
		p.overflow(refused, spansOf(rs))
		hideRun(p.own(i))
	}
	if s.labels != 0 {
		p.program = mix(p.program, s.labels)
		if refused := p.refusedLabels(rs.Resource().Attributes(), spansOf(rs)); len(refused) > 0 {
			hide(p.own(i), refused...)
		}
	}
}

// admitRun admits a run and its process. A run that was computed for one trace
// takes no place: there is one for each request of some clients. The result is
// the kind that was not admitted, or kindCount.
func (p *tracesPass) admitRun(s *source) kind {
	run, rank := p.runOf(s)
	if run != 0 && !p.tables[kindRun].admit(request{id: run, known: s.inferred}, p.now) {
		if !s.inferred {
			p.tables[kindRank].note(rank, p.now)
		}
		return kindRun
	}
	if rank != 0 && !p.tables[kindRank].admit(request{id: rank}, p.now) {
		return kindRank
	}
	return kindCount
}

// noteRun remembers a run of which the service is not admitted.
func (p *tracesPass) noteRun(s *source) {
	if run, rank := p.runOf(s); run != 0 {
		p.tables[kindRun].note(run, p.now)
		p.tables[kindRank].note(rank, p.now)
	}
}

// runOf returns the identities of a run and of its process, or 0.
func (p *tracesPass) runOf(s *source) (run, rank uint64) {
	service := mix(p.source.namespace, p.source.service)
	id := s.run
	if id == 0 {
		id = s.job
	}
	if id != 0 {
		run = mix(service, id)
	}
	if id|s.rank|s.host != 0 {
		rank = mix(mix(mix(service, id), mix(s.job, s.rank)), s.host)
	}
	return run, rank
}

// readSpan admits the run and the labels of a span.
func (p *tracesPass) readSpan(at place) {
	span := p.span(at)
	s, labels := p.readLabels(span)
	if s.run != 0 || s.rank != 0 || s.host != 0 {
		p.readRun(at, &s)
	}
	if labels == p.last {
		return
	}
	combinations := p.tables[kindCombination]
	if combinations.fresh(labels, p.now, p.age) {
		p.last = labels
		return
	}
	if p.checkLabels(at) {
		_, labels = p.readLabels(p.span(at))
	}
	if combinations.admit(request{id: labels, group: p.program}, p.now) {
		return
	}
	p.counts[kindCombination]++
	p.hideLabels(at)
}

// hideLabels takes all labels of a span, those of its resource included.
func (p *tracesPass) hideLabels(at place) {
	span := p.ownSpan(at)
	attrs := span.Attributes()
	for key := range p.own(at.resource).All() {
		if spanLabels[key] {
			attrs.PutStr(key, mlattr.Other)
		}
	}
	for key, v := range attrs.All() {
		if spanLabels[key] {
			v.SetStr(mlattr.Other)
		}
	}
	if v, ok := exceptionType(span); ok {
		v.SetStr(mlattr.Other)
	}
	attrs.PutBool(mlattr.Overflow, true)
}

// readLabels reads the run of a span, and the hash of what else becomes labels.
func (p *tracesPass) readLabels(span ptrace.Span) (s source, labels uint64) {
	labels = mix(p.program, uint64(span.Kind())<<8|uint64(span.Status().Code()))
	for key, v := range span.Attributes().All() {
		switch key {
		case mlattr.RunID:
			s.run = p.hasher.value(v)
		case mlattr.RankGlobal:
			s.rank = p.hasher.value(v)
		case mlattr.HostName:
			s.host = p.hasher.value(v)
		case mlattr.TrainingRunID:
			if s.run == 0 {
				s.run = p.hasher.value(v)
			}
		case mlattr.RunInferred:
			s.inferred = v.Type() == pcommon.ValueTypeBool && v.Bool()
		default:
			if spanLabels[key] {
				labels += mix(p.hasher.text(key), p.hasher.value(v))
			}
		}
	}
	if v, ok := exceptionType(span); ok {
		labels += mix(1, p.hasher.value(v))
	}
	return s, labels
}

// readRun admits the run that a span has in place of its resource's.
func (p *tracesPass) readRun(at place, s *source) {
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
	hideRun(p.ownSpan(at).Attributes())
}

// checkLabels replaces the values of labels that are not admitted, and reports
// whether there were any.
func (p *tracesPass) checkLabels(at place) (replaced bool) {
	refused := p.refusedLabels(p.span(at).Attributes(), 1)
	if len(refused) > 0 {
		hide(p.ownSpan(at).Attributes(), refused...)
	}
	v, ok := exceptionType(p.span(at))
	if !ok || p.admitLabel(kindLabel, mlattr.ErrorType, p.hasher.value(v), p.now) {
		return len(refused) > 0
	}
	p.counts[kindLabel]++
	span := p.ownSpan(at)
	span.Attributes().PutBool(mlattr.Overflow, true)
	v, _ = exceptionType(span)
	v.SetStr(mlattr.Other)
	return true
}

// refusedLabels returns the keys of labels that are not admitted, and counts
// them as those of a number of spans.
func (p *tracesPass) refusedLabels(attrs pcommon.Map, spans int) (refused []string) {
	for key, v := range attrs.All() {
		if !spanLabels[key] {
			continue
		}
		if k := kindOf(key); !p.admitLabel(k, key, p.hasher.value(v), p.now) {
			p.overflow(k, spans)
			refused = append(refused, key)
		}
	}
	return refused
}

// exceptionType returns the type of the last exception of a span.
func exceptionType(span ptrace.Span) (v pcommon.Value, ok bool) {
	for i := span.Events().Len() - 1; i >= 0; i-- {
		if event := span.Events().At(i); event.Name() == eventException {
			return event.Attributes().Get(typeOfException)
		}
	}
	return v, false
}

// hideRun takes the run of a resource or span, and the host, by which ml_metrics
// shows calls of no run, too. What has no label of runs lacks nothing, so that the
// mark of ml_metrics is the only one.
func hideRun(attrs pcommon.Map) {
	attrs.PutStr(mlattr.RunID, mlattr.Other)
	replace(attrs, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
}

// hide replaces the values of those keys that there are, and marks that.
func hide(attrs pcommon.Map, keys ...string) {
	replace(attrs, keys...)
	attrs.PutBool(mlattr.Overflow, true)
}

// replace replaces the values of those keys that there are.
func replace(attrs pcommon.Map, keys ...string) {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok {
			v.SetStr(mlattr.Other)
		}
	}
}

// overflow counts spans that lack a label of a kind.
func (p *tracesPass) overflow(k kind, spans int) { p.counts[k] += int64(spans) }

// own returns the attributes of a resource, for writing.
func (p *tracesPass) own(i int) pcommon.Map {
	p.copyOnce()
	return p.td.ResourceSpans().At(i).Resource().Attributes()
}

// ownSpan returns a span for writing.
func (p *tracesPass) ownSpan(at place) ptrace.Span {
	p.copyOnce()
	return p.span(at)
}

func (p *tracesPass) span(at place) ptrace.Span {
	return p.td.ResourceSpans().At(at.resource).ScopeSpans().At(at.scope).Spans().At(at.span)
}

// copyOnce makes a copy of what came in, which others may read meanwhile.
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
