package mlsampleprocessor

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// maxReused is the largest request, in spans, whose memory is used again.
const maxReused = 1 << 14

// request is the spans of a request and what becomes of them.
type request struct {
	reader
	// order has the indexes of the spans in the order of their ends.
	order []int32
	// units has the unit of each span.
	units []*sample.Unit
	parts []sample.Part
	// divided is the number of spans that were added to parts or dropped, ended that
	// at the end of the last part.
	divided, ended int
}

// free clears the request, so that it holds nothing that was received, and returns
// its memory.
func (r *request) free(to *sync.Pool) {
	if len(r.spans) > maxReused {
		return
	}
	r.facts.Reset()
	clear(r.units)
	clear(r.parts)
	r.parts, r.divided, r.ended = r.parts[:0], 0, 0
	to.Put(r)
}

// assign reads the spans and finds their units.
func (r *request) assign(sampler *sample.Sampler, td ptrace.Traces, now time.Time) {
	spans := r.read(td, now)
	n := len(spans)
	r.order = slices.Grow(r.order[:0], n)[:n]
	r.units = slices.Grow(r.units[:0], n)[:n]
	for i := range spans {
		r.order[i] = int32(i) // #nosec G115 -- a request has fewer spans
	}
	byEnd := func(a, b int32) int { return cmp.Compare(spans[a].End, spans[b].End) }
	if !slices.IsSortedFunc(r.order, byEnd) {
		slices.SortStableFunc(r.order, byEnd)
	}
	sampler.Assign(spans, r.order, now, r.units)
}

// addCounts adds the numbers of spans to their units.
func (r *request) addCounts(sampler *sample.Sampler) {
	for range r.units {
		r.divide(nil, nil)
	}
	sampler.Add(r.parts)
}

// addEncoded adds copies of the spans to their units.
func (r *request) addEncoded(sampler *sample.Sampler, td ptrace.Traces) error {
	if !slices.ContainsFunc(r.units, func(u *sample.Unit) bool { return u != nil }) {
		return nil
	}
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return err
	}
	if err := blob.Spans(data, r.divide); err != nil {
		return err
	}
	for i := range r.parts {
		r.parts[i].Data = bytes.Clone(r.parts[i].Data)
	}
	sampler.Add(r.parts)
	return nil
}

// divide adds the next span to the last part, if it follows the spans of its unit
// there, or to a new one.
func (r *request) divide(header *blob.Header, span []byte) {
	u := r.units[r.divided]
	follows := r.ended == r.divided
	r.divided++
	if u == nil {
		return
	}
	r.ended = r.divided
	if n := len(r.parts); follows && n > 0 && r.parts[n-1].Unit == u && r.parts[n-1].Header == header {
		last := &r.parts[n-1]
		last.Data = last.Data[:len(last.Data)+len(span)] // they follow each other in the encoding
		last.Spans++
		return
	}
	r.parts = append(r.parts, sample.Part{Unit: u, Fragment: blob.Fragment{Header: header, Data: span, Spans: 1}})
}

// attrArtifact is on spans that repro_gen has written an artifact for.
const attrArtifact = "repro.artifact.fingerprint"

// maxAhead is how far a client's clock may be ahead of the collector's, in nanoseconds.
// A time further ahead is treated as now, because it would exclude later ones.
const maxAhead = int64(time.Hour)

// processKeys identify a process that states no rank.
var processKeys = [...]string{mlattr.ServiceInstanceID, mlattr.ProcessID}

// roles has the role of each ml.phase.
var roles = map[string]sample.Role{
	mlattr.PhaseDataLoad:        sample.Load,
	mlattr.PhaseForward:         sample.Forward,
	mlattr.PhaseForwardBackward: sample.Forward,
	mlattr.PhaseBackward:        sample.Work,
	mlattr.PhaseOptimizer:       sample.Optimizer,
	mlattr.PhaseBatch:           sample.Batch,
	mlattr.PhaseCheckpoint:      sample.Checkpoint,
	mlattr.PhaseValidation:      sample.Validation,
	mlattr.PhaseEpoch:           sample.Lasting,
	mlattr.PhaseTrain:           sample.Lasting,
}

// reader reads the spans of a request.
type reader struct {
	vocabulary *vocabulary.Reader
	facts      vocabulary.Facts
	// source and service are those of the resource, systems the clients that it and
	// the scope identify.
	source  sample.Source
	service uint64
	systems vocabulary.System
	// latest is the last plausible time, now the time of the request.
	latest, now uint64
	spans       []sample.Span
}

// read returns what decisions need of each span, in the order of td. The result is
// valid until the next call.
func (r *reader) read(td ptrace.Traces, now time.Time) []sample.Span {
	r.now = uint64(max(now.UnixNano(), 0)) // #nosec G115 -- not negative
	r.latest = r.now + uint64(maxAhead)
	r.spans = r.spans[:0]
	for _, rs := range td.ResourceSpans().All() {
		r.readResource(rs.Resource().Attributes())
		ofResource := r.systems
		for _, ss := range rs.ScopeSpans().All() {
			r.readScope(ofResource|r.vocabulary.Scope(ss.Scope().Name()), ss)
			for _, span := range ss.Spans().All() {
				n := len(r.spans)
				r.spans = slices.Grow(r.spans, 1)[:n+1]
				r.readSpan(span, &r.spans[n])
			}
		}
	}
	return r.spans
}

func (r *reader) readResource(attrs pcommon.Map) {
	f := &r.facts
	r.vocabulary.Resource(attrs, f)
	r.systems = f.Systems
	r.service = rule.Hash(f.TextAt(vocabulary.SlotServiceName))
	id, _ := f.Run()
	r.source = sample.Source{Run: rule.Hash(id), Host: rule.Hash(f.TextAt(vocabulary.SlotHostName))}
	r.source.Attempt, _ = f.IntAt(vocabulary.SlotRunAttempt)
	if rank, ok := f.IntAt(vocabulary.SlotRankGlobal); ok {
		r.source.Rank = r.rank(rank)
		return
	}
	r.source.Rank = rule.Mix(r.service, r.source.Host)
	for _, key := range processKeys {
		if v, ok := attrs.Get(key); ok {
			text, _ := mlattr.Text(v, mlattr.MaxID)
			r.source.Rank = rule.Mix(r.source.Rank, rule.Hash(text))
		}
	}
}

// rank returns the key of a rank. Programs that share a run have ranks of their own.
func (r *reader) rank(number int64) uint64 { return rule.Mix(r.service, uint64(number)) } // #nosec G115 -- a key

// readScope reads what the first span of a scope reveals about the client.
func (r *reader) readScope(known vocabulary.System, ss ptrace.ScopeSpans) {
	if ss.Spans().Len() > 0 {
		r.vocabulary.Span(known, ss.Spans().At(0), &r.facts)
		known = r.facts.Systems
	}
	r.systems = known
	r.source.OnDemand = known.Has(table.ManyRuns)
	r.source.OneTrace = known.Has(table.OneTrace)
}

// attributes are the canonical attributes of a span that decisions need.
type attributes struct {
	spanfact.End
	operation, genAI string
	run              spanfact.RunIDs
}

// readSpan reads each attribute once.
func (r *reader) readSpan(span ptrace.Span, sp *sample.Span) {
	*sp = sample.Span{
		Trace: sample.TraceID(span.TraceID()), ID: sample.SpanID(span.SpanID()), Parent: sample.SpanID(span.ParentSpanID()),
		Start: r.timeOf(span.StartTimestamp()), End: r.timeOf(span.EndTimestamp()), Source: r.source,
	}
	if sp.Start == 0 || sp.Start > sp.End {
		sp.Start = sp.End
	}
	var a attributes
	for key, value := range span.Attributes().All() {
		r.readAttribute(key, value, &a, sp)
	}
	if id, _ := a.run.Named(); id != "" {
		sp.Source.Run = rule.Hash(id)
	}
	sp.Step = spanfact.StepOf(r.systems, sp.Step)
	if a.Phase != "" {
		sp.Role = roles[a.Phase]
		if a.Phase == mlattr.PhaseTrain && sp.Step > 0 { // of one step
			sp.Role = sample.Batch
		}
	}
	operation := cmp.Or(a.operation, a.genAI)
	sp.Operation = rule.Mix(r.service, hashOf(operation))
	sp.Like = rule.Mix(r.service, hashOf(cmp.Or(operation, span.Name())))
	sp.Failed = a.Failed(span)
}

// timeOf returns nanoseconds since 1970.
func (r *reader) timeOf(at pcommon.Timestamp) int64 {
	if uint64(at) > r.latest {
		return int64(r.now) // #nosec G115 -- was an int64
	}
	return int64(at) // #nosec G115 -- not above
}

func (r *reader) readAttribute(key string, value pcommon.Value, a *attributes, sp *sample.Span) {
	switch key {
	case mlattr.Step:
		sp.Step, _ = mlattr.ReadInt(value)
	case mlattr.Operation:
		a.operation, _ = mlattr.ReadText(value)
	case mlattr.GenAIOperationName:
		a.genAI, _ = mlattr.ReadText(value)
	case mlattr.GenAIConversationID:
		conversation, _ := mlattr.ReadText(value)
		sp.Conversation = hashOf(conversation)
	case mlattr.GenAIOutputTokens:
		sp.Tokens, _ = mlattr.ReadInt(value)
	case mlattr.SampleKeep:
		sp.Marked = sp.Marked || value.Type() == pcommon.ValueTypeBool && value.Bool()
	case attrArtifact:
		sp.Marked = true
	case mlattr.RunID, mlattr.RunInferred, mlattr.TrainingRunID:
		a.run.ReadAttribute(key, value)
	case mlattr.RankGlobal:
		if rank, ok := mlattr.ReadInt(value); ok {
			sp.Source.Rank = r.rank(rank)
		}
	case mlattr.HostName:
		host, _ := mlattr.ReadText(value)
		sp.Source.Host = rule.Hash(host)
	case mlattr.RunAttempt:
		sp.Source.Attempt, _ = mlattr.ReadInt(value)
	default:
		a.ReadAttribute(key, value)
	}
}

// hashOf is rule.Hash with 0 for no text.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return rule.Hash(text)
}
