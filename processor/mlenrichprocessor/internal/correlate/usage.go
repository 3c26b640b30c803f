package correlate

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
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
	// asks is true if the span is a request to a model by its operation, and askedOnce
	// if another span of its chain is the same request: one above it that states the
	// usage, or one below it that came before and states none.
	asks, askedOnce bool
	// http is true if an HTTP client asks the API of a model.
	http bool
	// tool is true if the span executes a tool, and toolName is its name, as a hash.
	tool     bool
	toolName uint64
	// asked is true if the span failed and is, if no request below it failed, a
	// request that states no operation.
	asked bool
	// server is true if the span is a server's, and client if it is above the
	// first such span that used tokens too.
	server, client bool
	// passed is true once findClients has passed.
	passed bool
	// repeated is true if a span that is no descendant reported the request first,
	// and twin if that is known by their usage and their times.
	repeated, twin bool
	// failed is true if the span failed, and failedBelow if a request below did.
	failed, failedBelow bool
	// failureMarked is true if the span has a mark about its failure already.
	failureMarked bool
}

var (
	slotInput        = vocabulary.SlotOf(mlattr.GenAIInputTokens)
	slotOutput       = vocabulary.SlotOf(mlattr.GenAIOutputTokens)
	slotOperation    = vocabulary.SlotOf(mlattr.GenAIOperationName)
	slotEstimated    = vocabulary.SlotOf(mlattr.TokensEstimated)
	slotUsageCounted = vocabulary.SlotOf(mlattr.UsageCounted)
	slotAnswer       = vocabulary.SlotOf(mlattr.GenAIResponseID)
	slotSide         = vocabulary.SlotOf(mlattr.Side)
	slotTool         = vocabulary.SlotOf(mlattr.GenAIToolName)
	// otherWork has what spans state that are no requests of LLM clients.
	otherWork = [...]vocabulary.Slot{
		slotPhase, slotMLOperation, vocabulary.SlotOf(mlattr.Role), vocabulary.SlotOf(mlattr.Library), vocabulary.SlotOf(mlattr.Function),
	}
)

var toolSeed = maphash.MakeSeed()

// readUsage reads what a span reports about tokens.
func (b *Batch) readUsage(f *vocabulary.Facts, s ptrace.Span) (u spanUsage) {
	end := spanfact.EndOf(f)
	u.failed = end.Failed(s)
	u.failureMarked = u.failed && f.At(slotErrorCounted) != nil
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	operation, estimated := f.TextAt(slotOperation), f.At(slotEstimated)
	if !hasInput && !hasOutput && operation == "" {
		if u.http = f.AsksAPI() && s.Kind() == ptrace.SpanKindClient && f.At(slotRequestCounted) == nil; u.http {
			b.usage.http = append(b.usage.http, int32(len(b.spans)-1))
			return u
		}
		if u.asked = u.failed && !u.failureMarked && failedAsking(f, s); !u.asked {
			return u
		}
	}
	mark := f.At(slotUsageCounted)
	u.uses = (input > 0 || output > 0) && (estimated == nil || !estimated.Bool)
	u.countable = (hasInput || hasOutput || u.asked || vocabulary.AsksModel(operation)) && mark == nil
	u.wrapper = wraps(s.Name(), operation)
	if u.wrapper && u.uses && u.countable {
		b.usage.sums = append(b.usage.sums, int32(len(b.spans)-1))
	}
	u.sided = f.At(slotSide) != nil
	if u.tool = operation == mlattr.OperationExecuteTool; u.tool {
		u.toolName = maphash.String(toolSeed, f.TextAt(slotTool))
	}
	if u.tool && u.failed {
		b.usage.tools = append(b.usage.tools, int32(len(b.spans)-1))
	}
	u.server = u.uses && answers(s)
	counted := f.At(slotRequestCounted)
	part := counted != nil && !counted.Bool
	u.asks = vocabulary.AsksModel(operation) && counted == nil
	if u.asks && !u.uses {
		b.usage.askers = append(b.usage.askers, asker{at: int32(len(b.spans) - 1)})
	}
	asks := (u.asked || vocabulary.AsksModel(operation)) && !part
	u.asked = u.asked && counted == nil
	if !u.wrapper && (u.uses || asks) && (mark == nil || mark.Bool) {
		b.readRequest(f, s, u, part, operation == "" && !u.asked)
		if asks && u.failed {
			b.usage.failures = append(b.usage.failures, int32(len(b.spans)-1))
		}
	}
	return u
}

// failedAsking reports whether a failed span without an operation and without tokens
// is a request to a model: it names the model, and states no other work. Some clients
// learn what a span is from the answer.
func failedAsking(f *vocabulary.Facts, s ptrace.Span) bool {
	if f.TextAt(slotRequested) == "" && f.TextAt(slotAnswered) == "" || vocabulary.SumsUsage(s.Name()) {
		return false
	}
	for _, slot := range otherWork {
		if f.At(slot) != nil {
			return false
		}
	}
	for _, key := range vocabulary.OperationKeys() {
		if _, stated := s.Attributes().Get(key); stated {
			return false
		}
	}
	return true
}

// wraps reports whether a span sums up what the calls below it report. What it states
// that it does goes before its name.
func wraps(name, operation string) bool {
	if vocabulary.AsksModel(operation) {
		return false
	}
	return operation == mlattr.OperationInvokeAgent || operation == mlattr.OperationInvokeWorkflow || vocabulary.SumsUsage(name)
}

// answers reports whether a span is the one by which a server answered, so that
// another span asked for what it used.
func answers(s ptrace.Span) bool {
	return s.Kind() == ptrace.SpanKindServer && !s.ParentSpanID().IsEmpty() && !s.TraceID().IsEmpty()
}

// usageSearch is what is searched in a batch about tokens.
type usageSearch struct {
	// users are the spans from which coverUsage goes up, and covering is what
	// it and findClients find beyond the batch.
	users    []int32
	covering []covering
	// asking are the spans above servers of earlier batches.
	asking []asking
	// requests are those of which a twin is searched, and failures the requests
	// that failed or are above one that did.
	requests []request
	failures []int32
	// askers are requests that state no usage, and tools are tools that failed.
	askers []asker
	tools  []int32
	// http are requests of which an HTTP client tells, and sums spans that sum up usage.
	http, sums []int32
}

func (u *usageSearch) reset() {
	clear(u.requests) // which has texts of the batch
	u.users, u.covering, u.asking = u.users[:0], u.covering[:0], u.asking[:0]
	u.requests, u.failures = u.requests[:0], u.failures[:0]
	u.askers, u.tools, u.http, u.sums = u.askers[:0], u.tools[:0], u.http[:0], u.sums[:0]
}

// covering is a span that is not in the batch, and above one that used tokens.
type covering struct {
	trace pcommon.TraceID
	spanAbove
}

// asking is a span of the batch above which the client of a server is searched,
// and the server's service.
type asking struct {
	at      int32
	service uint64
}

// findUsage finds the spans that used tokens, and those below which, according
// to earlier batches, another one did. Their traces are active.
func (b *Batch) findUsage(s *Store) {
	for i := range b.spans {
		if n := &b.spans[i]; n.uses && n.traceAt != none {
			b.usage.users = append(b.usage.users, int32(i))
		}
	}
	s.watched(b)
	use := func(at int32) {
		if trace := b.spans[at].traceAt; trace != none {
			b.traces[trace].used = true
		}
	}
	for _, list := range [...][]int32{b.usage.users, b.usage.failures, b.usage.tools, b.usage.http} {
		for _, at := range list {
			use(at)
		}
	}
	for _, asked := range b.usage.askers {
		use(asked.at)
	}
	for i := range b.usage.requests {
		use(b.usage.requests[i].at)
	}
	for _, asked := range b.usage.asking {
		use(asked.at)
	}
}

// climb visits the spans of the batch above one, from the lowest, until visit returns
// false, and at most limit of them. It remembers the first that is not in the batch.
func (b *Batch) climb(n *span, limit int, kind aboveKind, service uint64, visit func(up *span) bool) {
	for range limit {
		if n.traceAt == none || n.parent == (pcommon.SpanID{}) || n.parent == n.id {
			return
		}
		if n.above == none {
			b.usage.covering = append(b.usage.covering, covering{n.trace, spanAbove{id: n.parent, service: service, kind: kind}})
			return
		}
		if n = &b.spans[n.above]; !visit(n) {
			return
		}
	}
}

// coverUsage marks the ancestors of what findUsage found, up to the first of
// another service, and remembers the first that is not in the batch.
func (b *Batch) coverUsage(s *Store) {
	for _, user := range b.usage.users {
		n := &b.spans[user]
		b.climb(n, len(b.spans), aboveUsage, n.service, func(up *span) bool {
			if up.covered || up.service != n.service {
				// What is above a covered one is marked already. This ends a
				// cycle too, which only bad data has.
				return false
			}
			up.covered = true
			return true
		})
	}
	b.findClients()
	b.coverFailures()
	b.coverAskers()
	b.coverTools()
	s.findCalls(b)
	if len(b.usage.covering) > 0 {
		s.watch(b.usage.covering)
	}
}

// coverFailures marks the spans above a request that failed, in its service, so
// that none of those that failed too counts again. Spans between them may have
// succeeded.
func (b *Batch) coverFailures() {
	for _, at := range b.usage.failures {
		n := &b.spans[at]
		b.climb(n, len(b.spans), aboveFailure, n.service, func(up *span) bool {
			if up.failedBelow || up.service != n.service {
				return false // this ends a cycle, too
			}
			up.failedBelow = true
			return true
		})
	}
}

// asker is a request without usage, or a span above one of an earlier batch.
type asker struct {
	at      int32
	earlier bool
}

// maxClimb is how many spans above one are looked at.
const maxClimb = 64

// coverAskers finds the requests without usage that are above or below another one: both
// are the same request. The one with usage counts, or else the lowest. Of one in a later
// batch the usage counts, and no request.
func (b *Batch) coverAskers() {
	for _, asked := range b.usage.askers {
		n := &b.spans[asked.at]
		b.climb(n, maxClimb, aboveAsker, n.service, func(up *span) bool {
			switch {
			case up.service != n.service || up.tool || up.wrapper:
				return false // what a tool or an agent asks is another request
			case !up.asks:
				return true
			case asked.earlier || !up.uses:
				up.askedOnce = true
			default:
				n.askedOnce = true
			}
			return false
		})
	}
}

// coverTools marks the failed tools above one that failed, in its service: they are
// the same call, as a client and a server of MCP report it.
func (b *Batch) coverTools() {
	for _, at := range b.usage.tools {
		n := &b.spans[at]
		b.climb(n, maxClimb, aboveTool, n.service, func(up *span) bool {
			if up.service != n.service || up.wrapper || up.asks || up.tool && up.toolName != n.toolName {
				return false // another call
			}
			up.failedBelow = up.failedBelow || up.tool
			return true
		})
	}
}

// findCalls makes requests of the calls by HTTP of services of which no span describes
// any, and lets the sums of such services count. Of calls within each other the outermost
// is the request, and only where all above it is known; of sums the lowest.
func (s *Store) findCalls(b *Batch) {
	if len(b.usage.http)+len(b.usage.requests)+len(b.usage.askers)+len(b.usage.users) == 0 {
		return
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.usage.requests {
		s.described.Ensure(b.spans[b.usage.requests[i].at].service, now)
	}
	for _, asked := range b.usage.askers {
		if n := &b.spans[asked.at]; n.asks {
			s.described.Ensure(n.service, now)
		}
	}
	for _, at := range b.usage.users {
		if n := &b.spans[at]; n.uses && !n.wrapper {
			s.described.Ensure(n.service, now)
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
func (b *Batch) isOutermost(n *span) bool {
	up := n
	for range maxClimb {
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

// findClients searches above each server that used tokens for the first span
// that did too: its client, unless the service is the server's own.
func (b *Batch) findClients() {
	askAbove := func(n *span, service uint64) {
		b.climb(n, len(b.spans), aboveServer, service, func(up *span) bool { return !up.endsSearch(service) })
	}
	for _, user := range b.usage.users {
		if n := &b.spans[user]; n.uses && n.server {
			askAbove(n, n.service)
		}
	}
	for _, asked := range b.usage.asking {
		if n := &b.spans[asked.at]; !n.endsSearch(asked.service) {
			askAbove(n, asked.service)
		}
	}
}

// endsSearch reports whether the search for the client of a service ends at a span. What
// was asked before is not asked again, which ends a cycle too.
func (n *span) endsSearch(service uint64) bool {
	if n.uses {
		n.client = n.client || n.service != service
		return true
	}
	before := n.passed
	n.passed = true
	return before
}
