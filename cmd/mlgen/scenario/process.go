package scenario

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	// exportEvery is how long spans and logs wait in a process. The clients'
	// batch processors wait 5 s; a shorter time keeps a demonstration lively.
	// It is below 1 s, so that at one step per second every step is sent at
	// once, even if steps are slightly uneven.
	exportEvery = 900 * time.Millisecond
	// exportSize is the clients' batch size: a fuller buffer is sent at once.
	exportSize = 512
)

// ref identifies a span.
type ref struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// process imitates one client process: its resource, the pending spans and logs
// of its batch processors, and its instruments.
type process struct {
	scenario string
	resource []attr
	settings Settings
	rand     source
	start    time.Time
	meters   []*meter

	spans       ptrace.Traces
	logs        plog.Logs
	truth       sentlog.Truth
	exported    time.Time
	metricsDone time.Time
}

func newProcess(scenario, name string, settings Settings, resource []attr) *process {
	return &process{
		scenario: scenario,
		// The clients send no such attribute. It is the only one that is not theirs.
		resource: append(slices.Clip(resource), attr{"ml.simulated", true}),
		settings: settings,
		rand:     newSource(settings.Seed, scenario+"/"+name),
		spans:    ptrace.NewTraces(),
		logs:     plog.NewLogs(),
	}
}

// begin records the start of the process. Only the first call counts.
func (p *process) begin(at time.Time) {
	if p.start.IsZero() {
		p.start = at
	}
}

// newTrace makes the ids of a root span.
func (p *process) newTrace() ref {
	return ref{trace: p.rand.traceID(), span: p.rand.spanID()}
}

// child makes the ids of a span below parent.
func (p *process) child(parent ref) ref {
	return ref{trace: parent.trace, span: p.rand.spanID()}
}

// spanSpec is a span that has ended.
type spanSpec struct {
	ref    ref
	parent pcommon.SpanID
	scope  string
	name   string
	// kind is internal where it is not set.
	kind       ptrace.SpanKind
	start, end time.Time
	attrs      []attr
}

// end passes a finished span to the batch processor: spans are sent in the
// order in which they end.
func (p *process) end(spec spanSpec) ptrace.Span {
	span := p.scopeSpans(spec.scope).Spans().AppendEmpty()
	span.SetTraceID(spec.ref.trace)
	span.SetSpanID(spec.ref.span)
	span.SetParentSpanID(spec.parent)
	span.SetName(spec.name)
	span.SetKind(spec.kind)
	if spec.kind == ptrace.SpanKindUnspecified {
		span.SetKind(ptrace.SpanKindInternal)
	}
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(spec.start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(spec.end))
	put(span.Attributes(), spec.attrs)
	sentlog.Count(&p.truth.Spans, template(spec.name), 1)
	return span
}

func (p *process) scopeSpans(scope string) ptrace.ScopeSpans {
	if p.spans.ResourceSpans().Len() == 0 {
		put(p.spans.ResourceSpans().AppendEmpty().Resource().Attributes(), p.resource)
	}
	scopes := p.spans.ResourceSpans().At(0).ScopeSpans()
	for _, ss := range scopes.All() {
		if ss.Scope().Name() == scope {
			return ss
		}
	}
	ss := scopes.AppendEmpty()
	ss.Scope().SetName(scope)
	return ss
}

// log passes a record to the log processor and returns it.
func (p *process) log(scope string, at time.Time, severity plog.SeverityNumber, text, body string, in ref, attrs []attr) {
	if p.logs.ResourceLogs().Len() == 0 {
		put(p.logs.ResourceLogs().AppendEmpty().Resource().Attributes(), p.resource)
	}
	scopes := p.logs.ResourceLogs().At(0).ScopeLogs()
	var target plog.ScopeLogs
	found := false
	for _, sl := range scopes.All() {
		if sl.Scope().Name() == scope {
			target, found = sl, true
			break
		}
	}
	if !found {
		target = scopes.AppendEmpty()
		target.Scope().SetName(scope)
	}
	record := target.LogRecords().AppendEmpty()
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(at))
	record.SetSeverityNumber(severity)
	record.SetSeverityText(text)
	record.Body().SetStr(body)
	record.SetTraceID(in.trace)
	record.SetSpanID(in.span)
	if !in.trace.IsEmpty() {
		record.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
	}
	put(record.Attributes(), attrs)
}

// flush returns the requests that are due: spans and logs after their wait,
// metrics at their interval, and everything if all is set.
func (p *process) flush(at time.Time, all bool) []Batch {
	var out []Batch
	if all || p.spans.SpanCount() >= exportSize || at.Sub(p.exported) >= exportEvery {
		p.exported = at
		out = append(out, p.takeSpans()...)
		out = append(out, p.takeLogs()...)
	}
	if len(p.meters) > 0 && (all || at.Sub(p.metricsDone) >= p.settings.MetricsInterval*19/20) {
		p.metricsDone = at
		out = append(out, p.takeMetrics(at)...)
	}
	return out
}

func (p *process) takeSpans() []Batch {
	if p.spans.SpanCount() == 0 {
		return nil
	}
	batch := Batch{Scenario: p.scenario, Signal: sentlog.SignalTraces, Traces: p.spans, Truth: p.truth}
	p.spans, p.truth = ptrace.NewTraces(), sentlog.Truth{}
	return []Batch{batch}
}

func (p *process) takeLogs() []Batch {
	if p.logs.LogRecordCount() == 0 {
		return nil
	}
	batch := Batch{Scenario: p.scenario, Signal: sentlog.SignalLogs, Logs: p.logs}
	p.logs = plog.NewLogs()
	return []Batch{batch}
}

func (p *process) takeMetrics(at time.Time) []Batch {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	put(rm.Resource().Attributes(), p.resource)
	for _, m := range p.meters {
		m.collect(rm.ScopeMetrics().AppendEmpty(), p.start, at)
	}
	if md.DataPointCount() == 0 {
		return nil
	}
	return []Batch{{Scenario: p.scenario, Signal: sentlog.SignalMetrics, Metrics: md}}
}

// template replaces each run of digits after an underscore by {n}, which limits
// the number of names: epoch_3 becomes epoch_{n}.
func template(name string) string {
	out := make([]byte, 0, len(name)+3)
	for i := 0; i < len(name); i++ {
		out = append(out, name[i])
		if name[i] != '_' || i+1 == len(name) || !digit(name[i+1]) {
			continue
		}
		for i+1 < len(name) && digit(name[i+1]) {
			i++
		}
		out = append(out, "{n}"...)
	}
	return string(out)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
