// Package spans reads what spans say, and counts each once: a span that is delivered
// twice counts once, and so does a chain of spans that report the same.
package spans

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/observed"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/admission"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Values of series.Timing.
const (
	timingHost   = "host"
	timingDevice = "device"
)

// operationInference is the ml.operation of table.EventInference.
const operationInference = "inference"

// kinds is a set of what a span may count as.
type kinds uint16

const (
	isOptimizer kinds = 1 << iota
	isBatch
	isRequest
	isUsage
	isError
	// isFailure is a failure of a span that is no machine-learning operation.
	isFailure
	// isAgent is a request to an agent.
	isAgent
	// isWhole is a span that contains all of a step.
	isWhole
	// isCounted is a request that counts as one, isCalled a call that does.
	isCounted
	isCalled
)

// when returns kinds if they are so, else none.
func when[K kinds | serving.Kind](are bool, all K) K {
	if are {
		return all
	}
	return 0
}

// unit is what the rules need to know about one span. What does not depend on
// other spans is already in result.updates.
type unit struct {
	nesting.Candidate
	// Span is what it shows of the time of its run.
	runs.Span
	span pcommon.SpanID
	// trace is the hash of its trace.
	trace nesting.Trace
	// delivery is the key by which a second delivery is recognized.
	delivery nesting.Key
	// first and last delimit the span's updates in result.updates.
	first, last int

	kinds kinds
	// samples is the number of samples that the span processed, or the span
	// above or below it.
	samples int64

	// requestSource is the span's source for series without every run, and hostSource
	// that for series without runs.
	requestSource, hostSource *streams.Source
	start, end                int64
	// number is that of the step of an optimizer that states none, 0 if unknown.
	number int64
	per    perStep

	// cores is how many cores its process uses.
	cores float64
	indexes
	unitCalls

	labels
	// genAI is set only if the span is a request by the conventions and
	// genai_metrics is on.
	genAI *genAICall
}

// indexes are those of what belongs to a unit, plus one, or 0.
type indexes struct {
	// timed is in result.times, cost in result.costs what the request costs, and served in
	// result.requests what the detectors of services need.
	timed, cost, served int
}

// labels are those of the requests and failures of a unit.
type labels struct{ role, model, side string }

// unitCalls are the calls of a unit.
type unitCalls struct {
	// wholeCall reports whether the span is a call that no other span records, of
	// the function of the library.
	wholeCall         bool
	library, function string
	// calls are those that the span records; hasEvents reports whether the client's
	// own events do.
	calls     []call
	hasEvents bool
}

// Options are those of the configuration.
type Options struct {
	// GenAI adds the metrics of the GenAI conventions.
	GenAI bool
	// SpanMetrics adds calls and durations of all spans.
	SpanMetrics bool
	// Seed is that of the Tally.
	Seed nesting.Seed
}

// Request is what a Reader needs to know of a request besides its spans.
type Request struct {
	// Now is when it arrived, and From who has sent it.
	Now  time.Time
	From share.Sender
	// Replaced are the resources and spans with identities that are not admitted.
	Replaced *admission.Replaced
	// Loads is how busy GPUs and processes are.
	Loads *processes.Loads
	// Live reports whether a run has series. Without it none has.
	Live func(streams.RunKey) bool
	// Prices are those of models, nil if there are none.
	Prices *price.Table
	// History gets what the spans show of changes, and is nil if nobody wants to know.
	History *change.History
}

// Reader converts spans into units and updates. It reads each attribute once,
// through the vocabulary, and holds no lock.
type Reader struct {
	Options
	Request
	vocabulary *vocabulary.Reader
	pass       vocabulary.Pass
	// now is Request.Now in nanoseconds since 1970.
	now int64

	resourceFacts
	spanFacts
	result

	sources sources
	// changes are what the spans show of changes.
	changes observed.Values
}

// resourceFacts is what the current resource says.
type resourceFacts struct {
	ofResource    vocabulary.Facts
	resourceAttrs pcommon.Map
	// source is that of the resource, hostSource without its run.
	source, hostSource *streams.Source
	// named are the sources of the newest span that has stated names.
	names   names
	named   [3]*streams.Source
	program runs.Program
	per     perStep
	timing  string
	// version is that of the service.
	version string
	// cores is how many cores the process uses.
	cores float64
}

// spanFacts is what the current span says.
type spanFacts struct {
	ofSpan        *vocabulary.Facts
	ofEvent       vocabulary.Facts
	fact          spanfact.Fact
	spanAttrs     pcommon.Map
	recordedCalls recordedCalls
	// trace is that of the span, and hash its hash.
	trace pcommon.TraceID
	hash  nesting.Trace
	// hidden reports whether ml_guard hides the run of the span, and identity stands for it.
	hidden   bool
	identity int64
}

// result is what the spans of a request are converted to.
type result struct {
	units              []unit
	updates, durations []streams.Update
	requests           []serving.Span
	costs              []requestCost
	// times are divided in the order.
	times []bound.Timed
	order bound.Order
	// anyCalls reports whether any unit has calls.
	anyCalls bool
	// chosen and candidates are memory of Tally.
	chosen []*unit
	// shown is memory of Spans.
	shown      []*runs.Span
	candidates []nesting.Candidate
	// Skipped counts what was left out or repaired.
	Skipped Skipped
}

// Skipped counts values of the spans of a request.
type Skipped struct {
	// OutOfRange are implausible values, Clamped negative queue times, which were
	// replaced by 0, and Repaired names of resources with invalid UTF-8.
	OutOfRange, Clamped, Repaired int64
}

// maxKept limits the updates, units and sources whose memory is kept between requests.
const maxKept = 8192

// New returns a Reader.
func New(options Options) *Reader {
	return &Reader{Options: options, vocabulary: vocabulary.Default()}
}

// Updates returns what the spans change of series. The caller must not keep it.
func (r *result) Updates() []streams.Update { return r.updates }

// Hosts returns the hosts of the spans, which may repeat. The caller must not keep it.
func (r *Reader) Hosts() []string { return r.sources.hosts() }

// Reset clears everything and keeps the memory. It reports whether that is small enough
// to be kept.
func (r *Reader) Reset() bool {
	if cap(r.updates) > maxKept || cap(r.units) > maxKept || len(r.sources.all) > maxKept {
		return false
	}
	r.Request = Request{}
	r.ofResource.Reset()
	r.ofSpan = nil
	r.ofEvent.Reset()
	r.fact = spanfact.Fact{}
	r.recordedCalls.reset()
	r.resourceAttrs, r.spanAttrs = pcommon.Map{}, pcommon.Map{}
	r.source, r.hostSource, r.names, r.version = nil, nil, names{}, ""
	r.result = result{
		units: empty(r.units), updates: empty(r.updates), durations: empty(r.durations), requests: empty(r.requests), costs: empty(r.costs),
		chosen: empty(r.chosen), shown: empty(r.shown), candidates: r.candidates[:0], times: r.times[:0], order: r.order[:0],
	}
	r.changes.Reset()
	r.sources.reset()
	return true
}

// empty clears a list and keeps its memory.
func empty[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// next appends an element, which is as it was left.
func next[T any](list *[]T) *T {
	if n := len(*list); n < cap(*list) {
		*list = (*list)[:n+1]
	} else {
		*list = append(*list, *new(T))
	}
	return &(*list)[len(*list)-1]
}

// Read reads the spans of a request. The Reader must be new or reset.
func (r *Reader) Read(ctx context.Context, td ptrace.Traces, of Request) {
	r.pass.Begin(ctx, r.vocabulary, td)
	defer r.pass.End()
	r.Request, r.now = of, of.Now.UnixNano()
	r.sources.from, r.changes.History = of.From, of.History
	for i, rs := range td.ResourceSpans().All() {
		r.readResource(of.Replaced.Resource(i, rs.Resource().Attributes()))
		for j, ss := range rs.ScopeSpans().All() {
			known := r.ofResource.Systems | r.vocabulary.Scope(ss.Scope().Name())
			for k, span := range ss.Spans().All() {
				at := admission.Position{Resource: i, Scope: j, Span: k}
				r.identity, r.hidden = of.Replaced.HiddenRun(at)
				instead := of.Replaced.Span(at, span)
				r.ofSpan = r.pass.Next(known, span, instead)
				r.readSpan(instead)
			}
		}
	}
	r.order.Sort(r.times) // here, because Tally holds a lock
	r.changes.Pass(of.Now)
}

func (r *Reader) readResource(attrs pcommon.Map) {
	r.vocabulary.Resource(attrs, &r.ofResource)
	r.resourceAttrs = attrs
	resource, repaired := program.Read(attrs)
	r.Skipped.Repaired += repaired
	r.program = program.Of(&r.ofResource, attrs)
	r.per = perStepOf(&r.ofResource)
	r.version = mlattr.TextAt(attrs, attrServiceVersion)
	if r.timing = timingHost; mlattr.TextAt(attrs, series.Timing) == timingDevice {
		r.timing = timingDevice
	}
	r.source = r.sources.of(resource, program.RunOf(&r.ofResource), identityOf(attrs))
	r.hostSource = r.sources.of(resource, streams.Run{Host: r.source.Run.Host}, 0)
	r.names = names{}
	r.cores = r.Loads.CoresOf(attrs, resource)
	r.changes.Resource(attrs, r.source, &r.ofResource)
}

// maxMessage limits what is kept of what an error says, in bytes.
const maxMessage = 512

// readSpan appends a unit if the span has anything to count or show.
func (r *Reader) readSpan(span ptrace.Span) {
	if r.SpanMetrics {
		r.addDuration(span)
	}
	root := r.mayEndProgram(span)
	if r.ofSpan.Len() == 0 && r.ofSpan.Systems == 0 && span.Events().Len() == 0 && !root && !new(spanfact.End).Failed(span) {
		return // nobody's span that says nothing
	}
	v := &r.fact
	v.Read(r.ofSpan)
	failed := v.Failed(span)
	r.spanAttrs = span.Attributes()
	r.recordedCalls.reset()
	// Filled in place, because it is large.
	u := next(&r.units) // Reset has left it empty
	u.first, u.per = len(r.updates), r.per
	u.Trace, u.span = span.TraceID(), span.SpanID()
	if r.trace != u.Trace || r.hash == 0 {
		r.trace, r.hash = u.Trace, r.Seed.TraceOf(u.Trace)
	}
	u.trace = r.hash
	u.Self, u.Parent = nesting.KeyOf(r.hash, u.span), nesting.KeyOf(r.hash, span.ParentSpanID())
	u.delivery = u.Self.StartedAt(span.StartTimestamp())
	u.start = clampEnd(uint64(span.StartTimestamp()), r.now)
	u.end = clampEnd(uint64(span.EndTimestamp()), r.now)
	r.addSources(u)

	u.Operation = cmp.Or(v.Operation, v.GenAIOperation, v.Phase)
	u.role, u.model, u.side = v.Role, v.Model(), v.Side
	event := r.vocabulary.Event(span.Name())
	r.readActivity(&u.Span, v, event, span)
	u.Root = root
	u.Timing, u.cores = r.timing, r.cores
	if r.GenAI {
		u.genAI = genAICallOf(v, r.ofSpan, span)
	}
	r.addUsage(u, v)
	r.addNumbers(u, r.ofSpan, u.end, numbers{})
	r.addEvents(u, span.Events())
	// Spans of the pool or the serializer repeat what the span of the call records.
	if event != table.NoEvent && event != table.EventPoolCheckout && event != table.EventSerialize {
		r.addClientEvent(u, event, r.spanAttrs, u.end)
	}
	r.addTimed(u, v, span)
	callFailed := failed || spanfact.RaisedInCall(r.ofSpan, span)
	r.addCalls(u, v, span, callFailed)
	if v.Request(event) {
		u.kinds |= isRequest
		r.changes.Request(r.spanAttrs, u.requestSource.Resource, v.Requested, v.Answered)
	}
	u.kinds |= when(v.GenAIOperation == mlattr.OperationInvokeAgent, isAgent)
	r.readCost(u, v)
	if failed {
		u.kinds |= isFailure
		u.Failure = cmp.Or(mlattr.ErrorClass(v.Class(span)), mlattr.Other)
		u.Message = mlattr.CutText(cmp.Or(spanfact.ExceptionMessage(span), span.Status().Message()), maxMessage)
	}
	if u.genAI != nil {
		r.addGenAITokens(u, v)
	}
	u.kinds |= when(failed && v.OfModel() && !v.ErrorElsewhere, isError)
	if !failed {
		u.Optimizes = v.Phase == mlattr.PhaseOptimizer
		u.kinds |= when(u.Optimizes, isOptimizer) | when(v.Phase == mlattr.PhaseBatch, isBatch) | when(r.ofSpan.WholeStep(), isWhole)
		u.samples += samples(v)
		if event == table.EventTrainStep {
			u.Steps++
		}
	}
	r.serve(u, v, span, callFailed)
	u.last = len(r.updates)
	if u.kinds == 0 && u.served == 0 && u.Steps == 0 && u.samples == 0 && u.last == u.first && !u.Timed && !u.EndsRun && !root && len(u.calls) == 0 && u.timed == 0 {
		*u = unit{}
		r.units = r.units[:len(r.units)-1]
	}
}

// mayEndProgram reports whether the end of a span may be that of a program that trains:
// it has no parent, and is no request of or to others.
func (r *resourceFacts) mayEndProgram(span ptrace.Span) bool {
	kind := span.Kind()
	return span.ParentSpanID().IsEmpty() && (kind == ptrace.SpanKindInternal || kind == ptrace.SpanKindUnspecified) &&
		r.source.Run.ID != "" && !r.program.OnDemand
}

// addUsage adds the tokens and the token rate of a request.
func (r *result) addUsage(u *unit, v *spanfact.Fact) {
	if v.NotCounted {
		return
	}
	u.kinds |= when(v.Usage(), isUsage)
	add := func(kind string, tokens int64, has bool) {
		switch {
		case !has:
		case tokens > mlattr.MaxCount:
			r.Skipped.OutOfRange++
		default:
			r.count(u, series.Tokens, u.requestSource, tokens, kind, v.Model(), u.Operation, v.Role, v.Side)
		}
	}
	add(mlattr.TokenTypeInput, v.Input, v.HasInput)
	add(mlattr.TokenTypeOutput, v.Output, v.HasOutput)
	if v.HasRate {
		r.addRate(u, v.Rate, v.Basis, v.Model())
	}
}

func (r *result) addRate(u *unit, rate float64, basis, model string) {
	if rate < 0 || rate > maxRate {
		r.Skipped.OutOfRange++
		return
	}
	r.update(u, series.RequestTokenThroughput, u.requestSource, basis, model).Value = rate
}

// addEvents reads the events that represent spans.
func (r *Reader) addEvents(u *unit, events ptrace.SpanEventSlice) {
	var has numbers
	for _, event := range events.All() {
		at := clampEnd(uint64(event.Timestamp()), r.now)
		switch kind := r.vocabulary.Event(event.Name()); kind {
		case table.NoEvent:
		case table.EventTrainNumbers:
			// It is no step. Of several losses the first is what is trained on; the
			// others are parts of it.
			r.vocabulary.Record(r.ofSpan.Systems, event.Attributes(), &r.ofEvent)
			r.addNumbers(u, &r.ofEvent, at, has)
			has.loss = has.loss || r.ofEvent.At(vocabulary.SlotLoss) != nil
			has.learningRate = has.learningRate || r.ofEvent.At(vocabulary.SlotLearningRate) != nil
		case table.EventTrainStep, table.EventInference:
			r.addStep(u, kind, event.Attributes(), at)
		default:
			r.addClientEvent(u, kind, event.Attributes(), at)
		}
	}
}

// count appends an update of a counter.
func (r *result) count(u *unit, id series.ID, of *streams.Source, n int64, labels ...string) {
	r.update(u, id, of, labels...).Count = n
}

// update appends an update whose value the caller sets. For a series without
// runs it uses the host's source instead of of.
func (r *result) update(u *unit, id series.ID, of *streams.Source, labels ...string) *streams.Update {
	if series.All[id].NoRun {
		of = u.hostSource
	}
	up := next(&r.updates) // Reset has left it empty
	up.Source, up.Series, up.At = of, id, u.end
	up.Trace, up.Span = u.Trace, u.span
	copy(up.Labels[:], labels)
	return up
}
