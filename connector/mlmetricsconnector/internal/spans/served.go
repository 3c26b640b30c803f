package spans

import (
	"cmp"
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// attrServiceVersion is the conventions' name of the version of a service.
const attrServiceVersion = "service.version"

// maxArguments is how much of the arguments of a tool, in bytes, tells two calls
// apart.
const maxArguments = 16 << 10

var (
	slotRequestID = vocabulary.SlotOf(mlattr.RequestID)
	slotCached    = vocabulary.SlotOf(mlattr.GenAICacheReadTokens)
	slotCost      = vocabulary.SlotOf(mlattr.UsageCost)
	slotFinish    = vocabulary.SlotOf(mlattr.GenAIFinishReasons)
	slotTool      = vocabulary.SlotOf(mlattr.GenAIToolName)
	slotResent    = vocabulary.SlotOf(mlattr.HTTPResendCount)
)

// serve adds to r.requests what the detectors of services need of a span: requests
// to models and agents, calls of tools, steps of agents, and the ends of tasks.
// Whether it is a request is known only later, as isCounted.
func (r *Reader) serve(u *unit, v *values, span ptrace.Span, failed bool) {
	facts := &r.ofSpan
	kind, tool := serving.Kind(0), ""
	part, function := facts.Call()
	switch {
	case v.GenAIOperation == mlattr.OperationExecuteTool:
		if tool = cmp.Or(facts.TextAt(slotTool), v.Function); tool == "" {
			tool, _ = mlattr.ReadText(pcommon.NewValueStr(span.Name()))
		}
	case part == table.FunctionPart:
		tool = v.Function
	case part == table.WholeCall:
		tool = cmp.Or(v.Function, function)
	}
	if tool != "" {
		kind |= serving.Tool
	} else if len(u.calls) > 0 {
		// Whether it counts is known only later, as isCalled.
		tool = u.calls[0].function
		failed = failed || u.calls[0].result == resultError
	}
	if part == table.WholeCall {
		kind |= serving.Call
	}
	if v.Role != "" && u.Operation != "" {
		kind |= serving.Step
	}
	if n, ok := facts.IntAt(slotResent); ok && n > 0 {
		kind |= serving.Resent
	}
	root := span.ParentSpanID().IsEmpty()
	if root && v.OfModel() {
		kind |= serving.Root
	}
	if u.kinds&isAgent != 0 || root && v.Role != "" && u.kinds&(isRequest|isUsage) == 0 {
		kind |= serving.Agent
	}
	if kind == 0 && len(u.calls) == 0 && u.kinds&(isRequest|isUsage) == 0 {
		return
	}
	if failed {
		kind |= serving.Failed
	}
	r.requests = append(r.requests, serving.Unknown)
	u.served = len(r.requests)
	s := &r.requests[u.served-1]
	s.Resource, s.Kind, s.Version, s.Tool = u.Source.Resource, kind, r.version, tool
	s.Trace, s.Parent, s.Start, s.End = u.Trace, span.ParentSpanID(), u.start, u.end
	s.Operation, s.Role = u.Operation, u.role
	s.RequestID = facts.TextAt(slotRequestID)
	if tool != "" {
		s.Arguments = argumentsOf(r.spanAttrs)
	}
	s.Seconds, _, _ = timesOf(facts, span.StartTimestamp(), span.EndTimestamp(), v)
	if u.kinds&(isRequest|isUsage) != 0 {
		serveRequest(s, v, facts)
		if u.cost != 0 {
			s.Cost = r.costs[u.cost-1].Total()
		}
	}
}

// Served returns what the detectors of services need of the spans of the request. The
// caller must not keep it.
func (r *result) Served() []serving.Span {
	n := 0
	for i := range r.units {
		u := &r.units[i]
		if u.served == 0 {
			continue
		}
		span := &r.requests[n]
		if n++; n != u.served {
			*span = r.requests[u.served-1] // those of spans that were delivered before are left out
		}
		if u.kinds&isCounted != 0 {
			span.Kind |= serving.Request
		}
		if u.kinds&isCalled != 0 {
			span.Kind |= serving.Tool | serving.Call
		}
	}
	return r.requests[:n]
}

// serveRequest adds what is known about a request to a model.
func serveRequest(s *serving.Span, v *values, facts *vocabulary.Facts) {
	s.Model, s.Answered = v.Requested, v.Answered
	if v.HasInput && v.Input >= 0 && v.Input <= mlattr.MaxCount {
		s.Input = v.Input
	}
	if v.HasOutput && v.Output >= 0 && v.Output <= mlattr.MaxCount {
		s.Output = v.Output
	}
	if n, ok := facts.IntAt(slotCached); ok && n <= mlattr.MaxCount {
		s.Cached = n
	}
	if reason := facts.TextAt(slotFinish); reason != "" {
		s.Kind |= serving.Finished
		if mlattr.CutByLength(reason) {
			s.Kind |= serving.Cut
		}
	}
}

var argumentsSeed = maphash.MakeSeed()

// argumentsOf returns a hash of what a tool was called with, or 0 if the span does
// not say it. The hash is not kept over restarts.
func argumentsOf(attrs pcommon.Map) (hash uint64) {
	for key, value := range attrs.All() {
		if vocabulary.IsToolArguments(key) {
			text, _ := mlattr.Text(value, maxArguments)
			hash = hash*0x9e3779b97f4a7c15 ^ maphash.String(argumentsSeed, text)
		}
	}
	return hash
}
