package correlate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Two instrumentations of one client, and an agent above its model calls, each
// report the same tokens on a span of their own. Only the lowest of such spans
// counts; those above it are marked with ml.usage.counted=false. A service that
// calls another one counts for itself: both know what they used, and ml.side
// tells the two apart. twins.go has the rules for requests that two
// instrumentations report in two traces.

// spanUsage is what a span reports about tokens, and what is found out about
// it.
type spanUsage struct {
	// service is that of the span's resource, as a hash.
	service uint64
	// uses is true if the span reports used tokens, which counts for its
	// ancestors too. An estimate is what a role counted of its own request,
	// whose tokens are not among those of the role above.
	uses bool
	// countable is true if the span's request or tokens would be counted, and
	// it has no mark about that yet.
	countable bool
	// wrapper is true if the span sums up what the calls below it report. It
	// is marked without waiting for a call, which may be in another batch.
	wrapper bool
	// sided is true if the span has ml.side already.
	sided bool

	// covered is true if a span of the same service below reports tokens.
	covered bool
	// wholeInput is the input with the tokens of caches, if that is learnt from others.
	wholeInput int64
	// asks is true if the span is a request to a model by its operation, and askedOnce
	// if another span of its chain is the same request: one above it that states the
	// usage, or one below it that came before and states none.
	asks, askedOnce bool
	// http is true if an HTTP client asks the API of a model.
	http bool
	// silent is true if the span is a request that says nothing of an answer, nor that it
	// failed. refused is the status of HTTP with which an attempt of it failed, and
	// answered is true if another one did not.
	silent, answered bool
	refused          uint16
	// tool is true if the span executes a tool, and toolName is its name, as a hash.
	tool     bool
	toolName uint64
	// asked is true if the span failed and is, if no request below it failed, a
	// request that states no operation. unstated is true if it would be if it had failed.
	asked, unstated bool
	// server is true if the span is a server's, and client if it is above the
	// first such span that used tokens too.
	server, client bool
	// passed is true once the search for the client of a server has passed.
	passed bool
	// repeated is true if a span that is no descendant reported the request first,
	// and twin if that is known by their usage and their times.
	// joined is true if the span was not seen before as one of the two.
	repeated, twin, joined bool
	// failed is true if the span failed, and failedBelow if a request below did.
	failed, failedBelow bool
	// failureMarked is true if the span has a mark about its failure already.
	failureMarked bool
}

// otherWork has what spans state that are no requests of LLM clients.
var otherWork = []vocabulary.Slot{
	vocabulary.SlotPhase, vocabulary.SlotOperation, vocabulary.SlotRole, vocabulary.SlotLibrary, vocabulary.SlotFunction,
}

// readUsage reads what a span reports about tokens.
func (b *Batch) readUsage(f *vocabulary.Facts, s ptrace.Span) (u spanUsage) {
	at := int32(len(b.spans) - 1)
	end := spanfact.EndOf(f)
	u.failed = end.Failed(s)
	u.failureMarked = u.failed && f.At(vocabulary.SlotErrorCounted) != nil
	input, hasInput := f.IntAt(vocabulary.SlotGenAIInputTokens)
	output, hasOutput := f.IntAt(vocabulary.SlotGenAIOutputTokens)
	operation, counted := f.TextAt(vocabulary.SlotGenAIOperationName), f.At(vocabulary.SlotRequestCounted)
	if !hasInput && !hasOutput && operation == "" {
		if u.http = f.AsksAPI() && s.Kind() == ptrace.SpanKindClient && counted == nil; u.http {
			b.usage.http = append(b.usage.http, at)
			if status := httpStatus(s); status > 0 {
				b.usage.begin(aboveAttempt, search{at: at, status: status})
			}
			return u
		}
		u.unstated = asksUnstated(f, s)
		if u.asked = u.unstated && u.failed && !u.failureMarked; !u.asked {
			return u
		}
		u.unstated = false
	}
	mark := f.At(vocabulary.SlotUsageCounted)
	asksModel := vocabulary.AsksModel(operation)
	estimated, _ := f.BoolAt(vocabulary.SlotTokensEstimated)
	u.uses = (input > 0 || output > 0) && !estimated
	u.countable = (hasInput || hasOutput || u.asked || asksModel) && mark == nil
	u.wrapper = wraps(s.Name(), operation)
	u.sided = f.At(vocabulary.SlotSide) != nil
	u.tool = operation == mlattr.OperationExecuteTool
	u.server = u.uses && answers(s)
	u.asks = asksModel && counted == nil
	u.silent = u.asks && !u.uses && !u.failed && f.At(vocabulary.SlotGenAIResponseID) == nil && f.At(vocabulary.SlotGenAIFinishReasons) == nil
	part := counted != nil && !counted.Bool
	asks := (u.asked || asksModel) && !part
	u.asked = u.asked && counted == nil
	if u.wrapper && u.uses && u.countable {
		b.usage.sums = append(b.usage.sums, at)
	}
	if u.tool {
		u.toolName = max(cache.Hash(f.TextAt(vocabulary.SlotGenAIToolName)), 1)
	}
	request := !u.wrapper && (u.uses || asks) && (mark == nil || mark.Bool)
	if request {
		b.readRequest(f, s, u, part, operation == "" && !u.asked)
	}
	for kind, begins := range [aboveKinds]bool{
		aboveUsage: u.uses, aboveServer: u.server, aboveFailure: request && asks && u.failed,
		aboveTool: u.tool && u.failed, aboveAsker: u.asks && !u.uses,
	} {
		if begins {
			b.usage.begin(aboveKind(kind), search{at: at})
		}
	}
	return u
}

// asksUnstated reports whether a span without an operation and without tokens looks like a
// request to a model: it names the model, and states no other work. One that failed is one:
// some clients learn what a span is from the answer.
func asksUnstated(f *vocabulary.Facts, s ptrace.Span) bool {
	if f.TextAt(vocabulary.SlotGenAIRequestModel) == "" && f.TextAt(vocabulary.SlotGenAIResponseModel) == "" || vocabulary.SumsUsage(s.Name()) {
		return false
	}
	return !slices.ContainsFunc(otherWork, func(slot vocabulary.Slot) bool { return f.At(slot) != nil }) &&
		!slices.ContainsFunc(vocabulary.OperationKeys(), func(key string) bool {
			_, stated := s.Attributes().Get(key)
			return stated
		})
}

// wraps reports whether a span sums up what the calls below it report. What it states
// that it does goes before its name.
func wraps(name, operation string) bool {
	if vocabulary.AsksModel(operation) {
		return false
	}
	return operation == mlattr.OperationInvokeAgent || operation == mlattr.OperationInvokeWorkflow || vocabulary.SumsUsage(name)
}

// httpStatus returns the status of HTTP that the span of a client states, or 0.
func httpStatus(s ptrace.Span) uint16 {
	for _, key := range mlattr.HTTPStatusKeys {
		if v, ok := s.Attributes().Get(key); ok {
			return uint16(max(0, min(v.Int(), maxStatus)))
		}
	}
	return 0
}

// maxStatus is above all statuses of HTTP, and leastFailure the least one of a failure.
const maxStatus, leastFailure = 999, 400

// answers reports whether a span is the one by which a server answered, so that
// another span asked for what it used.
func answers(s ptrace.Span) bool {
	return s.Kind() == ptrace.SpanKindServer && !s.ParentSpanID().IsEmpty() && !s.TraceID().IsEmpty()
}

// usageSearch is what is searched in a batch about tokens.
type usageSearch struct {
	searches [aboveKinds][]search
	// covering is what the searches find beyond the batch.
	covering []covering
	// requests are those of which a twin is searched.
	requests []request
	// http are requests of which an HTTP client tells, and sums spans that sum up usage.
	http, sums []int32
}

func (u *usageSearch) reset() {
	for kind := range u.searches {
		u.searches[kind] = u.searches[kind][:0]
	}
	u.covering, u.requests, u.http, u.sums = u.covering[:0], u.requests[:0], u.http[:0], u.sums[:0]
}

func (u *usageSearch) begin(kind aboveKind, s search) { u.searches[kind] = append(u.searches[kind], s) }

// search looks at the spans above one, for what its aboveKind names.
type search struct {
	at int32
	// earlier is true if at is itself above the span that is searched for, which came in
	// an earlier batch. service is the service of that span.
	earlier bool
	service uint64
	// status is that of HTTP, of an attempt.
	status uint16
}

// covering is a span that is not in the batch, and above one that used tokens.
type covering struct {
	trace pcommon.TraceID
	spanAbove
}

// mark marks the traces of what is searched.
func (u *usageSearch) mark(b *branches) {
	use := func(at int32) {
		if trace := b.spans[at].traceAt; trace != none {
			b.traces[trace].used = true
		}
	}
	for _, list := range u.searches {
		for i := range list {
			use(list[i].at)
		}
	}
	for _, at := range u.http {
		use(at)
	}
	for i := range u.requests {
		use(u.requests[i].at)
	}
}

// markAncestors marks the ancestors of what is searched, and collects the first that is not in
// the batch.
func (u *usageSearch) markAncestors(b *branches) {
	for kind := range u.searches {
		for i := range u.searches[kind] {
			u.markAbove(b, aboveKind(kind), &u.searches[kind][i])
		}
		if kind == int(aboveAttempt) && len(u.searches[kind]) > 0 {
			u.refuse(b)
		}
	}
}

// refuse lets requests fail all whose attempts failed, and that say nothing of it.
func (u *usageSearch) refuse(b *branches) {
	for at := range b.spans {
		if n := &b.spans[at]; n.refused != 0 && !n.answered {
			n.failed = true
			u.begin(aboveFailure, search{at: int32(at)})
		}
	}
}

// maxAncestors is how many spans above one are looked at by searches that do not end where an
// earlier one was.
const maxAncestors = 64

// markAbove visits the spans of the batch above that of a search, from the lowest, until the
// search ends.
func (u *usageSearch) markAbove(b *branches, kind aboveKind, s *search) {
	n := &b.spans[s.at]
	from, limit := n, len(b.spans)
	if kind == aboveAttempt || kind >= aboveTool {
		limit = maxAncestors
	}
	if !s.earlier {
		s.service = n.service
	} else if !s.meets(kind, from, n) {
		return
	}
	for range limit {
		if kind == aboveUsage && n.tool {
			kind = aboveToolUsage
		}
		if n.traceAt == none || n.parent == (pcommon.SpanID{}) || n.parent == n.id {
			return
		}
		if n.above == none {
			u.covering = append(u.covering, covering{n.trace, spanAbove{id: n.parent, service: s.service, status: s.status, kind: kind}})
			return
		}
		if n = &b.spans[n.above]; !s.meets(kind, from, n) {
			return
		}
	}
}

// meets marks a span by what is below it, and reports whether the search goes on. A mark
// that is there already ends it, and so a cycle, which only bad data has.
func (s *search) meets(kind aboveKind, from, n *span) bool {
	switch same := n.service == s.service; {
	case kind == aboveServer && n.uses:
		// It is the client of the server, unless the service is the server's own.
		n.client = n.client || !same
		return false
	case kind == aboveServer:
		return first(&n.passed)
	case !same:
		return false
	case kind == aboveUsage:
		return first(&n.covered)
	case kind == aboveToolUsage:
		// What a tool asks is another request than the one that its caller states.
		return !n.asks && first(&n.covered)
	case kind == aboveAttempt:
		if n.silent && s.status >= leastFailure {
			n.refused = s.status
		}
		n.answered = n.answered || n.asks && s.status < leastFailure
		return !n.asks && !n.tool && !n.wrapper
	case kind == aboveFailure:
		// None of those above that failed too counts again. Spans between them may have
		// succeeded.
		return first(&n.failedBelow)
	case kind == aboveTool:
		// A tool above with the same name is the same call, as a client and a server of MCP
		// report it.
		if n.wrapper || n.asks || n.tool && n.toolName != from.toolName {
			return false
		}
		n.failedBelow = n.failedBelow || n.tool
		return true
	case n.tool || n.wrapper:
		return false // what a tool or an agent asks is another request
	case n.asks && (s.earlier || !n.uses):
		// Both are the same request. The one with usage counts, or else the lowest. Of one
		// in a later batch the usage counts, and no request.
		n.askedOnce = true
	case n.asks:
		from.askedOnce = true
	}
	return !n.asks
}

// first sets a mark and reports whether it was not set.
func first(mark *bool) bool {
	was := *mark
	*mark = true
	return !was
}

// findCalls makes requests of the calls by HTTP of services of which no span describes
// any, and lets the sums of such services count. Of calls within each other the outermost
// is the request, and only where all above it is known; of sums the lowest.
func (s *Store) findCalls(b *Batch, now time.Time) {
	for i := range b.usage.requests {
		s.described.Ensure(b.spans[b.usage.requests[i].at].service, now)
	}
	for _, kind := range [...]aboveKind{aboveUsage, aboveAsker} {
		for _, search := range b.usage.searches[kind] {
			if n := &b.spans[search.at]; n.asks || n.uses && !n.wrapper && n.traceAt != none {
				s.described.Ensure(n.service, now)
			}
		}
	}
	describes := func(n *span) bool { return s.described.Find(n.service, now) != nil }
	for _, at := range b.usage.sums {
		n := &b.spans[at]
		n.wrapper = describes(n)
	}
	for _, at := range b.usage.http {
		if n := &b.spans[at]; n.traceAt != none && !describes(n) && b.isOutermost(n) {
			n.asked, n.countable = true, true
		}
	}
}

// isOutermost reports whether all spans above a call are known and none is such a call.
func (b *branches) isOutermost(n *span) bool {
	up := n
	for range maxAncestors {
		if up.parent == (pcommon.SpanID{}) {
			return true
		}
		if up.above == none {
			return false
		}
		if up = &b.spans[up.above]; up.http || up.asks || up.uses {
			return false
		}
	}
	return false
}
