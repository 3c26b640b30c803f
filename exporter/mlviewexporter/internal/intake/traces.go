package intake

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// unknownService is the service.name of a resource without one, as in the SDKs.
const unknownService = "unknown_service"

// spanReader reads the spans that the page shows, each attribute once. It keeps
// the memory of a few thousand of them.
type spanReader struct {
	vocabulary *vocabulary.Reader
	store      *model.Store
	sender     share.Sender

	pass       vocabulary.Pass
	ofResource vocabulary.Facts
	ofSpan     *vocabulary.Facts
	resource   input.Source
	// last is the source of the previous span of the resource, nil at its first one.
	last  *input.Source
	spans []input.Span
	// received are those that the spans were read from.
	received []ptrace.Span
	details  input.Details
	value    []byte
}

func (r *spanReader) read(ctx context.Context, td ptrace.Traces) {
	r.pass.Begin(ctx, r.vocabulary, td)
	defer r.pass.End()
	for _, rs := range td.ResourceSpans().All() {
		r.last = nil
		r.readResource(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			known := r.ofResource.Systems | r.vocabulary.Scope(ss.Scope().Name())
			for _, span := range ss.Spans().All() {
				r.ofSpan = r.pass.Next(known, span, span)
				r.readSpan(span)
				if len(r.spans) >= maxBatch {
					r.flush()
				}
			}
		}
	}
	r.flush()
}

func (r *spanReader) flush() {
	r.store.ApplySpans(r.spans, func(i int) input.Details { return r.readDetails(r.received[i]) })
	clear(r.spans)
	clear(r.received)
	r.spans, r.received, r.details = r.spans[:0], r.received[:0], r.details[:0]
}

// reset clears all fields and keeps the memory.
func (r *spanReader) reset() {
	*r = spanReader{spans: r.spans, received: r.received, details: r.details, value: r.value}
}

func (r *spanReader) readResource(attrs pcommon.Map) {
	r.vocabulary.Resource(attrs, &r.ofResource)
	f := &r.ofResource
	r.resource = input.Source{
		Sender: r.sender, Service: unknownService,
		Job: f.TextAt(vocabulary.SlotJobID), JobName: f.TextAt(vocabulary.SlotJobName),
		Host: f.TextAt(vocabulary.SlotHostName), Rank: spanfact.Rank(f),
		SomeRanks: f.Systems.Has(table.SomeRanksSend),
	}
	r.resource.Run, _ = f.Run()
	for _, name := range statedSizes {
		if n, ok := f.DoubleAt(vocabulary.SlotOf(name)); ok && n > 0 {
			r.addSetting(name, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	for key, v := range attrs.All() {
		switch key {
		case mlattr.ServiceName:
			r.resource.Service = cmp.Or(text(v), unknownService)
		case mlattr.ServiceNamespace:
			r.resource.Namespace = text(v)
		case mlattr.User:
			// Other attributes with a user's name are not shown: only ml_enrich's hash.
			r.resource.User = text(v)
		case mlattr.ServiceVersion:
			r.resource.Version = text(v)
		case attrSimulated:
			r.resource.Simulated = isTrue(v)
		default:
			r.readSetting(key, v)
		}
	}
}

// source returns the source of a span: that of the resource, with what the span
// says itself. inferred reports that the run was computed for a single trace.
func (r *spanReader) source() (*input.Source, bool) {
	own := r.resource
	id, inferred := r.ofSpan.NamedRun()
	if inferred = inferred && id != ""; !inferred {
		own.Run = cmp.Or(id, own.Run)
	}
	own.Rank, own.Host = cmp.Or(spanfact.Rank(r.ofSpan), own.Rank), cmp.Or(r.ofSpan.TextAt(vocabulary.SlotHostName), own.Host)
	if last := r.last; last != nil {
		// Most spans have the source of the previous one.
		if last.Run == own.Run && last.Rank == own.Rank && last.Host == own.Host {
			return last, inferred
		}
		if last.Run == own.Run {
			own.Settings = nil
		}
	}
	r.last = new(own)
	return r.last, inferred
}

// readSpan adds a span.
func (r *spanReader) readSpan(span ptrace.Span) {
	f := r.ofSpan
	r.spans = slices.Grow(r.spans, 1)[:len(r.spans)+1] // filled in place, because it is large
	r.received = append(r.received, span)
	in := &r.spans[len(r.spans)-1]
	var inferred bool
	in.Source, inferred = r.source()
	in.Trace, in.ID, in.Parent = span.TraceID(), span.SpanID(), span.ParentSpanID()
	in.Name = span.Name()
	in.Start, in.End = instant(span.StartTimestamp()), instant(span.EndTimestamp())
	in.Server = span.Kind() == ptrace.SpanKindServer
	in.Call = input.Call{Queue: math.NaN(), Serialize: math.NaN()}
	in.Request = input.Request{FirstToken: math.NaN(), Decode: math.NaN(), Cached: math.NaN()}
	if in.Start > 0 {
		in.Duration = max(0, float64(in.End-in.Start)/1e9)
	}

	readFacts(f, in)
	in.Runless = in.ML && in.Source.Run == "" && !inferred
	event := r.vocabulary.Event(in.Name)
	in.Failed = in.Fact.Failed(span) || spanfact.RaisedInCall(f, span)
	r.readCall(in, event, span)
	if in.Failed {
		readFailure(in, span)
	}
	in.Asks = in.Fact.InChain(event)
	in.LengthStop = in.Asks && mlattr.CutByLength(f.TextAt(vocabulary.SlotGenAIFinishReasons))
}

// instant returns a time in nanoseconds since 1970.
func instant(at pcommon.Timestamp) int64 { return int64(min(at, math.MaxInt64)) }

// readFailure adds the class, the message and the reproduction of a failure.
func readFailure(in *input.Span, span ptrace.Span) {
	in.Class = mlattr.ErrorClass(in.Fact.Class(span))
	attrs := span.Attributes()
	if fingerprint, ok := attrs.Get(attrFingerprint); ok {
		in.Fingerprint, _ = mlattr.ReadID(fingerprint)
	}
	in.Message = cmp.Or(spanfact.ExceptionMessage(span), mlattr.FirstText(attrs, messageKeys...), span.Status().Message())
	// Some clients send the print of a structure, which the class and the message
	// are fields of.
	if printed, ok := clients.ReadPrintedError(in.Message); ok && printed.Message != "" {
		in.Message = printed.Message
	}
}

// attrFingerprint is the group of the reproduction of a failure, by repro_gen.
const attrFingerprint = "repro.artifact.fingerprint"

// messageKeys are the attributes that have the text of an error that is no exception.
var messageKeys = append([]string{mlattr.ErrorMessage}, vocabulary.Calls().ErrorMessage...)

// readFacts reads the facts of a span.
func readFacts(f *vocabulary.Facts, in *input.Span) {
	v := &in.Fact
	v.Read(f)
	in.ML = v.OfModel()
	v.Operation = cmp.Or(v.Operation, v.GenAIOperation)
	in.Tool, in.Agent = f.TextAt(vocabulary.SlotGenAIToolName), f.TextAt(vocabulary.SlotGenAIAgentName)
	in.Session = cmp.Or(f.TextAt(vocabulary.SlotGenAIConversationID), f.TextAt(vocabulary.SlotSessionID))
	if cached, ok := f.IntAt(vocabulary.SlotGenAICacheReadTokens); ok {
		in.Cached = float64(cached)
	}
	if first, ok := f.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk); ok {
		in.FirstToken = first
	}
	if decode, ok := f.DoubleAt(vocabulary.SlotDecodePerSecond); ok {
		in.Decode, in.DecodeBasis = decode, mlattr.BasisDecode
	} else if v.HasRate {
		in.Decode, in.DecodeBasis = v.Rate, v.Basis
	}
	if latency, ok := f.DoubleAt(vocabulary.SlotLatency); ok && latency <= mlattr.MaxCallTime {
		in.Duration = latency
	}
	if queue, ok := f.DoubleAt(vocabulary.SlotQueueTime); ok && queue <= mlattr.MaxCallTime {
		in.Queue = queue
	}
	for i, slot := range sizeSlots {
		in.Sizes[i], _ = f.IntAt(slot)
	}
}

// sizeSlots are those of input.SizeNames.
var sizeSlots = [len(input.SizeNames)]vocabulary.Slot{vocabulary.SlotBatchSize, vocabulary.SlotMicrobatchCount, vocabulary.SlotEpochTotal, vocabulary.SlotWorldSize}

// callEvents is what the events of one span, or the span as an event, record of a
// call.
type callEvents struct {
	// begun reports whether there is a start or an end of a call, ended whether
	// there is an end.
	begun, ended, failed bool
	library, function    string
	// Times are in seconds, 0 if there are none.
	duration, queue, serialize float64
}

// maxEvents limits the events of a span that are read.
const maxEvents = 1024

// readCall adds the call that a span, its events or the span as an event of its own kind
// represent.
func (r *spanReader) readCall(in *input.Span, own table.EventKind, span ptrace.Span) {
	var e callEvents
	e.read(own, span.Attributes())
	events := span.Events()
	for i := max(0, events.Len()-maxEvents); i < events.Len(); i++ {
		event := events.At(i)
		e.read(r.vocabulary.Event(event.Name()), event.Attributes())
	}
	part, function := r.ofSpan.Call()
	switch {
	case e.ended:
		in.Part = input.RecordedCall
	case e.begun || part == table.WholeCall || part == table.SharedCall || in.Fact.GenAIOperation == mlattr.OperationExecuteTool:
		in.Part = input.WholeCall
	default:
		return
	}
	in.Failed = in.Failed || e.failed
	in.Fact.Function = cmp.Or(function, in.Fact.Function)
	if e.library != "" || e.function != "" {
		in.Fact.Library, in.Fact.Function = e.library, e.function
	}
	in.Duration, in.Queue, in.Serialize = cmp.Or(e.duration, in.Duration), cmp.Or(e.queue, in.Queue), cmp.Or(e.serialize, in.Serialize)
}

// read reads an event about a call, in the client's short names or the canonical ones.
func (e *callEvents) read(kind table.EventKind, attrs pcommon.Map) {
	switch kind {
	case table.EventCallStart:
		e.begun = true
	case table.EventCallStop:
		e.begun, e.ended = true, true
	case table.EventCallException:
		e.begun, e.ended, e.failed = true, true, true
	case table.EventPoolCheckout, table.EventSerialize:
	default:
		return
	}
	one, _, _ := spanfact.ReadCallEvent(attrs)
	e.library, e.function = cmp.Or(one.Library, e.library), cmp.Or(one.Function, e.function)
	e.failed = e.failed || one.Failed
	e.queue, e.serialize = max(e.queue, one.Seconds[spanfact.Queued]), max(e.serialize, one.Seconds[spanfact.Serialized])
	switch {
	case kind == table.EventSerialize && !one.Decoding:
		e.serialize = max(e.serialize, one.Seconds[spanfact.Whole])
	case e.ended && kind != table.EventSerialize && kind != table.EventPoolCheckout:
		e.duration = one.Seconds[spanfact.Whole]
	}
}

// settingOf returns the name of the setting that an attribute of a resource says, ""
// for an attribute that says none, or one with content. Launchers and build systems
// have names of their own for the commit.
func settingOf(key string) string {
	switch of := vocabulary.ChangeKeyOf(key); {
	case key == "vcs.ref.head.name" || key == "deployment.environment.name":
		return key
	case of == nil || mlattr.Secret(of.Kind):
		return ""
	case of.Kind == mlattr.ChangeCommit:
		return attrCommit
	default:
		return key
	}
}

// attrCommit is the commit of a program.
const attrCommit = "vcs.ref.head.revision"

// statedSizes are canonical attributes that a resource states as numbers.
var statedSizes = []string{mlattr.WorldSize, mlattr.TokensPerStep, mlattr.SamplesPerStep, mlattr.FLOPsPerToken}

// maxSettingLength limits a value that is put together, in bytes.
const maxSettingLength = 256

// readSetting reads what an attribute of the resource says of how its runs were started.
func (r *spanReader) readSetting(key string, v pcommon.Value) {
	name := settingOf(key)
	if name == "" {
		return
	}
	value := text(v)
	if v.Type() == pcommon.ValueTypeSlice {
		var parts []string
		for _, part := range v.Slice().All() {
			if one := text(part); one != "" && len(parts) < 8 {
				parts = append(parts, one)
			}
		}
		value = strings.Join(parts, ", ")
	}
	if value != "" && len(value) <= maxSettingLength {
		r.addSetting(name, value)
	}
}

func (r *spanReader) addSetting(name, value string) {
	r.resource.Settings = append(r.resource.Settings, api.Setting{Name: name, Value: value})
}
