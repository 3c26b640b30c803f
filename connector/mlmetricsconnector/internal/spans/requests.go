package spans

import (
	"cmp"
	"hash/maphash"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// attrDimensions is the conventions' name of the number of an embedding's dimensions.
const attrDimensions = "gen_ai.embeddings.dimension.count"

// attrServiceVersion is the conventions' name of the version of a service.
const attrServiceVersion = "service.version"

// maxArguments is how much of the arguments of a tool, in bytes, tells two calls
// apart.
const maxArguments = 16 << 10

// serve adds to r.requests what the detectors of services need of a span: requests
// to models and agents, calls of tools, steps of agents, and the ends of tasks.
// Whether it is a request is known only later, as isCounted.
func (r *Reader) serve(u *unit, v *spanfact.Fact, span ptrace.Span, failed bool) {
	facts := r.ofSpan
	kind, tool := serving.Kind(0), ""
	part, function := facts.Call()
	switch {
	case v.GenAIOperation == mlattr.OperationExecuteTool:
		if tool = cmp.Or(facts.TextAt(vocabulary.SlotGenAIToolName), v.Function); tool == "" {
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
		tool = u.calls[0].Function
		failed = failed || u.calls[0].result == resultError
	}
	root, request := span.ParentSpanID().IsEmpty(), u.kinds&(isRequest|isUsage) != 0
	resent, _ := facts.IntAt(vocabulary.SlotHTTPResendCount)
	kind |= when(part == table.WholeCall, serving.Call) | when(v.Role != "" && u.Operation != "", serving.Step) |
		when(resent > 0, serving.Resent) | when(root && v.OfModel(), serving.Root) |
		when(u.kinds&isAgent != 0 || root && v.Role != "" && !request, serving.Agent)
	if kind == 0 && len(u.calls) == 0 && !request {
		return
	}
	kind |= when(failed, serving.Failed)
	r.requests = append(r.requests, serving.Unknown)
	u.served = len(r.requests)
	s := &r.requests[u.served-1]
	s.Resource, s.Kind, s.Version, s.Tool = u.Source.Resource, kind, r.version, tool
	s.Trace, s.Parent, s.Start, s.End = u.Trace, span.ParentSpanID(), u.start, u.end
	s.Operation, s.Role = u.Operation, u.role
	s.RequestID = facts.TextAt(vocabulary.SlotRequestID)
	if tool != "" {
		s.Arguments = argumentsOf(r.spanAttrs)
	}
	s.Seconds, _, _ = timesOf(facts, span.StartTimestamp(), span.EndTimestamp(), v)
	if request {
		serveRequest(s, v, facts)
		if n, ok := r.spanAttrs.Get(attrDimensions); ok && n.Type() == pcommon.ValueTypeInt {
			s.Dimensions = n.Int()
		}
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
		span.Kind |= when(u.kinds&isCounted != 0, serving.Request) | when(u.kinds&isCalled != 0, serving.Tool|serving.Call)
	}
	return r.requests[:n]
}

// serveRequest adds what is known about a request to a model.
func serveRequest(s *serving.Span, v *spanfact.Fact, facts *vocabulary.Facts) {
	s.Model, s.Answered = v.Requested, v.Answered
	if v.HasInput && v.Input <= mlattr.MaxCount {
		s.Input = v.Input
	}
	if v.HasOutput && v.Output <= mlattr.MaxCount {
		s.Output = v.Output
	}
	if n, ok := facts.IntAt(vocabulary.SlotGenAICacheReadTokens); ok && n <= mlattr.MaxCount {
		s.Cached = n
	}
	if reason := facts.TextAt(vocabulary.SlotGenAIFinishReasons); reason != "" {
		s.Kind |= serving.Finished | when(mlattr.CutByLength(reason), serving.Cut) | when(mlattr.Withheld(reason), serving.Filtered)
	}
	if seconds, ok := facts.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk); ok {
		s.FirstToken = seconds
	}
	if seconds, ok := facts.DoubleAt(vocabulary.SlotQueueTime); ok {
		s.Queued = seconds
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

// maxCost is the largest accepted cost of one request, in US dollars. It is far
// above real ones.
const maxCost = 1e6

// requestCost is what a request costs, and who says so.
type requestCost struct {
	price.Cost
	source, date string
	// user is the hash of the user, or "".
	user string
}

// readCost finds what a span's request costs: what the client states, else the
// price of its tokens. The cost of a span with tokens counts as they do. Any other
// counts if the span turns out to be a request.
func (r *Reader) readCost(u *unit, v *spanfact.Fact) {
	counted := v.HasInput || v.HasOutput
	if v.NotCounted || v.Side == mlattr.SideServer || !counted && u.kinds&isRequest == 0 {
		return
	}
	c := requestCost{source: series.CostStated}
	var known bool
	if c.Cost, known = r.statedCost(); !known && counted {
		if r.Prices == nil {
			return
		}
		c.source, c.date = series.CostComputed, r.Prices.Date()
		if c.Cost, known = r.computedCost(u, v); !known && v.Input+v.Output > 0 {
			r.count(u, series.RequestsUnpriced, u.requestSource, 1, v.Model(), r.ofSpan.TextAt(vocabulary.SlotGenAIProviderName))
		}
	}
	if !known {
		return
	}
	c.user = r.user()
	r.costs = append(r.costs, c)
	u.cost = len(r.costs)
	if counted {
		r.addCost(u)
	}
}

// statedCost returns the cost that the client states. One of 0 is not believed:
// clients state it of models whose price they do not know.
func (r *Reader) statedCost() (cost price.Cost, known bool) {
	total := r.dollars(vocabulary.SlotUsageCost)
	cost = price.Cost{Input: r.dollars(vocabulary.SlotUsageInputCost), Output: r.dollars(vocabulary.SlotUsageOutputCost)}
	parts := cost.Input + cost.Output
	switch {
	case total == 0:
	case parts > total*(1+1e-6):
		// The parts are of something else.
		cost = price.Cost{Other: total}
	case parts < total*(1-1e-6):
		cost.Other = total - parts
	}
	return cost, cost.Total() > 0
}

// dollars returns a stated cost, or 0.
func (r *Reader) dollars(slot vocabulary.Slot) float64 {
	cost, _ := r.ofSpan.DoubleAt(slot) // 0 if it is not stated
	if !(cost >= 0 && cost <= maxCost) {
		r.Skipped.OutOfRange++
		return 0
	}
	return cost
}

// computedCost returns what the tokens of a request cost by the file of prices: by
// the model that answered, else by the one that was asked for.
func (r *Reader) computedCost(u *unit, v *spanfact.Fact) (cost price.Cost, known bool) {
	if v.Input > mlattr.MaxCount || v.Output > mlattr.MaxCount {
		return price.Cost{}, false
	}
	usage := price.Usage{Input: v.Input, Output: v.Output}
	usage.CacheRead, _ = r.ofSpan.IntAt(vocabulary.SlotGenAICacheReadTokens)
	usage.CacheWrite, _ = r.ofSpan.IntAt(vocabulary.SlotGenAICacheCreationTokens)
	usage.Reasoning, _ = r.ofSpan.IntAt(vocabulary.SlotGenAIReasoningTokens)
	at, provider := time.Unix(0, u.end), r.ofSpan.TextAt(vocabulary.SlotGenAIProviderName)
	for _, model := range [...]string{v.Answered, v.Requested} {
		if model != "" {
			if cost, known = r.Prices.Find(provider, model, time.Unix(0, r.now)).Rate(usage, at); known {
				break
			}
		}
	}
	if cost.Total() > maxCost {
		r.Skipped.OutOfRange++
		return price.Cost{}, false
	}
	return cost, known
}

// user returns the hash of the user of a span, or else of its resource.
func (r *Reader) user() string {
	for _, facts := range [...]*vocabulary.Facts{r.ofSpan, &r.ofResource} {
		// Another name than the canonical one has the user's own name.
		if user := facts.At(vocabulary.SlotUser); user != nil && user.Own && user.Text != "" {
			return user.Text
		}
	}
	return ""
}

// addCost adds the cost of a request.
func (r *result) addCost(u *unit) {
	c := &r.costs[u.cost-1]
	for i, dollars := range [...]float64{c.Input, c.Output, c.Other} {
		if dollars > 0 {
			kind := [...]string{mlattr.TokenTypeInput, mlattr.TokenTypeOutput, series.CostOther}[i]
			r.update(u, series.Cost, u.requestSource, kind, u.model, c.source, u.role, u.side, c.date).Value = dollars
		}
	}
	if total := c.Total(); c.user != "" && total > 0 {
		r.update(u, series.UserCost, u.requestSource, c.user, c.source).Value = total
	}
}

// Names of the conventions that the vocabulary does not read.
const (
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"
)

// genAICall is a request to a model in the terms of the conventions. Times are
// in seconds, NaN if unknown.
type genAICall struct {
	// server reports whether the span is the server's.
	server bool
	// labels are those of all metrics: operation, provider, requested model, port,
	// answering model and address.
	labels [6]string

	duration, firstToken, perToken float64
}

// genAICallOf reads a span that is a request to a model by the conventions, or
// a server's answer to one. It returns nil for other spans, and for roles that
// estimate tokens and trainers that sample, which follow no convention.
func genAICallOf(v *spanfact.Fact, facts *vocabulary.Facts, span ptrace.Span) *genAICall {
	server := v.Side == mlattr.SideServer || v.Side == "" && span.Kind() == ptrace.SpanKindServer
	if v.NotCounted || v.NoRequest && !v.HasOutput || !vocabulary.AsksModel(v.GenAIOperation) && (!server || !v.HasOutput) {
		return nil
	}
	attrs, port := span.Attributes(), ""
	if value, ok := attrs.Get(attrServerPort); ok {
		if n, ok := mlattr.ReadInt(value); ok && n > 0 && n < 1<<16 {
			port = strconv.FormatInt(n, 10)
		}
	}
	c := &genAICall{server: server}
	c.labels = [...]string{v.GenAIOperation, facts.TextAt(vocabulary.SlotGenAIProviderName), v.Requested, port, v.Answered, mlattr.TextAt(attrs, attrServerAddress)}
	c.duration, c.firstToken, c.perToken = timesOf(facts, span.StartTimestamp(), span.EndTimestamp(), v)
	return c
}

// timesOf returns the duration of a request, the time to its first token, and
// the time per further token. The producer's durations take precedence over the
// span's. All are unknown if the first token came later than that, and the time per
// token if there are no tokens.
func timesOf(facts *vocabulary.Facts, start, end pcommon.Timestamp, v *spanfact.Fact) (duration, firstToken, perToken float64) {
	duration, firstToken, perToken = math.NaN(), math.NaN(), math.NaN()
	if latency, ok := facts.DoubleAt(vocabulary.SlotLatency); ok {
		duration = latency
	} else if end > start && start > 0 {
		duration = float64(end-start) / 1e9
	}
	switch first, ok := facts.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk); {
	case !ok:
	case first < duration:
		firstToken = first
	case first > duration:
		duration = math.NaN() // the span ended when the stream began
	}
	if !v.HasOutput || v.Output < 2 || v.Output > mlattr.MaxCount {
		return duration, firstToken, perToken
	}
	later := float64(v.Output - 1)
	if decode, ok := facts.DoubleAt(vocabulary.SlotDecodeTime); ok && decode > 0 {
		perToken = decode / later
	} else {
		perToken = (duration - firstToken) / later
	}
	return duration, firstToken, perToken
}

// addGenAITokens adds the tokens of a request. The conventions define them for
// the client's side only.
func (r *result) addGenAITokens(u *unit, v *spanfact.Fact) {
	if u.genAI.server {
		return
	}
	tokens := func(has bool, n int64, which string) {
		if has && n <= mlattr.MaxCount {
			r.updateGenAI(u, series.GenAITokenUsage, which).Value = float64(n)
		}
	}
	tokens(v.HasInput, v.Input, mlattr.TokenTypeInput)
	tokens(v.HasOutput, v.Output, mlattr.TokenTypeOutput)
}

// updateGenAI appends an update of a metric of the conventions. last is the value
// of its last label, if that is one that only this metric has.
func (r *result) updateGenAI(u *unit, id series.ID, last ...string) *streams.Update {
	up := r.update(u, id, u.requestSource, u.genAI.labels[:]...)
	copy(up.Labels[len(series.All[id].Labels)-1:], last)
	return up
}

// addGenAITimes adds the duration of a request, once if several spans record
// it. The error type of a successful request is "".
func (r *result) addGenAITimes(u *unit) {
	c := u.genAI
	if c == nil {
		return
	}
	add := func(id series.ID, value float64, errorType ...string) {
		if value >= 0 && !math.IsInf(value, 0) {
			r.updateGenAI(u, id, errorType...).Value = value
		}
	}
	if !c.server {
		add(series.GenAIOperationDuration, c.duration, u.Failure)
		return
	}
	add(series.GenAIServerDuration, c.duration, u.Failure)
	if u.Failure == "" {
		add(series.GenAITimeToFirstToken, c.firstToken)
		add(series.GenAITimePerOutputToken, c.perToken)
	}
}
