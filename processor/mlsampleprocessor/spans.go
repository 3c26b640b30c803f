package mlsampleprocessor

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// attrArtifact is on spans that repro_gen has written an artifact for.
const attrArtifact = "repro.artifact.fingerprint"

// processKeys identify a process that states no rank.
var processKeys = [...]string{"service.instance.id", "process.pid"}

var (
	slotHost         = mlattr.SlotOf(mlattr.HostName)
	slotRank         = mlattr.SlotOf(mlattr.RankGlobal)
	slotAttempt      = mlattr.SlotOf(mlattr.RunAttempt)
	slotPhase        = mlattr.SlotOf(mlattr.Phase)
	slotStep         = mlattr.SlotOf(mlattr.Step)
	slotEpochEnd     = mlattr.SlotOf(mlattr.EpochEnd)
	slotErrorType    = mlattr.SlotOf(mlattr.ErrorType)
	slotOperation    = mlattr.SlotOf(mlattr.Operation)
	slotGenAI        = mlattr.SlotOf(mlattr.GenAIOperationName)
	slotConversation = mlattr.SlotOf(mlattr.GenAIConversationID)
	slotSession      = mlattr.SlotOf(mlattr.SessionID)
	slotOutput       = mlattr.SlotOf(mlattr.GenAIOutputTokens)
	slotKeep         = mlattr.SlotOf(mlattr.SampleKeep)
)

// unread are the canonical attributes that no decision needs.
var unread = func() *mlattr.Slots {
	var others []string
	read := []string{
		mlattr.HostName, mlattr.RankGlobal, mlattr.RunAttempt, mlattr.RunID, mlattr.RunInferred, mlattr.TrainingRunID, mlattr.JobID,
		mlattr.Phase, mlattr.CorrelationSource, mlattr.Step, mlattr.EpochEnd, mlattr.ErrorType, mlattr.Operation, mlattr.GenAIOperationName,
		mlattr.GenAIConversationID, mlattr.SessionID, mlattr.GenAIOutputTokens, mlattr.SampleKeep,
	}
	for _, attribute := range mlattr.Attributes() {
		if !slices.Contains(read, attribute.Name) {
			others = append(others, attribute.Name)
		}
	}
	return mlattr.SlotsOf(others...)
}()

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
	vocabulary *mlattr.Reader
	// enriched reports whether ml_enrich has read the spans in the same call.
	enriched bool

	ofResource, ofSpan mlattr.Facts
	// source and service are those of the resource.
	source  sample.Source
	service uint64
	spans   []sample.Span
}

// read returns what decisions need of each span, in the order of td. The result is
// valid until the next call.
func (r *reader) read(td ptrace.Traces) []sample.Span {
	r.spans = r.spans[:0]
	for _, rs := range td.ResourceSpans().All() {
		r.readResource(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			known := r.ofResource.Systems | r.vocabulary.Scope(ss.Scope().Name())
			for _, span := range ss.Spans().All() {
				r.spans = append(r.spans, r.readSpan(known, span))
			}
		}
	}
	return r.spans
}

func (r *reader) readResource(attrs pcommon.Map) {
	f := &r.ofResource
	r.vocabulary.Resource(attrs, f)
	r.service = rule.Hash(f.Text(mlattr.ServiceName))
	id, _ := f.Run()
	r.source = sample.Source{Run: rule.Hash(id), Host: rule.Hash(f.TextAt(slotHost))}
	r.source.Attempt, _ = f.IntAt(slotAttempt)
	r.source.Rank = r.service
	if rank, ok := f.IntAt(slotRank); ok {
		r.source.Rank = rule.Mix(r.service, uint64(rank)) // #nosec G115 -- a key
		return
	}
	for _, key := range processKeys {
		if v, ok := attrs.Get(key); ok {
			text, _ := mlattr.Text(v, mlattr.MaxID)
			r.source.Rank = rule.Mix(r.source.Rank, rule.Hash(text))
		}
	}
	r.source.Rank = rule.Mix(r.source.Rank, r.source.Host)
}

func (r *reader) readSpan(known mlattr.System, span ptrace.Span) sample.Span {
	f := &r.ofSpan
	if r.enriched {
		r.vocabulary.Enriched(known, span, unread, f)
	} else {
		r.vocabulary.Span(known, span, f)
	}
	sp := sample.Span{
		Trace: sample.TraceID(span.TraceID()), ID: sample.SpanID(span.SpanID()), Parent: sample.SpanID(span.ParentSpanID()),
		Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), // #nosec G115 -- checked below
		Source: r.sourceOf(),
	}
	if sp.End < 0 {
		sp.End = 0
	}
	if sp.Start <= 0 || sp.Start > sp.End {
		sp.Start = sp.End
	}
	phase := f.TextAt(slotPhase)
	if !f.Systems.Has(mlattr.StepsPerEpoch) {
		if step, ok := f.IntAt(slotStep); ok && step > 0 {
			sp.Step = step
		}
	}
	sp.Role = roles[phase]
	if f.WholeStep() || sp.Role == sample.Lasting && phase == mlattr.PhaseTrain && sp.Step > 0 {
		sp.Role = sample.Batch
	}
	sp.Tokens, _ = f.IntAt(slotOutput)
	sp.Conversation = hashOf(cmp.Or(f.TextAt(slotConversation), f.TextAt(slotSession)))
	sp.Operation = rule.Mix(r.service, hashOf(cmp.Or(f.TextAt(slotOperation), f.TextAt(slotGenAI))))
	errorType := f.TextAt(slotErrorType)
	sp.Failed = span.Status().Code() == ptrace.StatusCodeError || errorType != ""
	if sp.Failed && (isTrue(f.At(slotEpochEnd)) || mlattr.EndOfLoader(span.Name(), phase, errorType)) {
		sp.Failed = false
	}
	sp.Marked = isTrue(f.At(slotKeep))
	if span.Events().Len() > 0 && !sp.Marked {
		_, sp.Marked = span.Attributes().Get(attrArtifact)
	}
	return sp
}

// sourceOf returns the source of the span that was read: that of its resource,
// unless the span names a run, a rank or a host.
func (r *reader) sourceOf() sample.Source {
	f, source := &r.ofSpan, r.source
	systems := f.Systems
	source.OnDemand = systems.Has(mlattr.ManyRuns)
	source.OneTrace = systems.Has(mlattr.OneTrace)
	if id, _ := f.NamedRun(); id != "" {
		source.Run = rule.Hash(id)
	}
	if rank, ok := f.IntAt(slotRank); ok {
		source.Rank = rule.Mix(r.service, uint64(rank)) // #nosec G115 -- a key
	}
	if host := f.TextAt(slotHost); host != "" {
		source.Host = rule.Hash(host)
	}
	if attempt, ok := f.IntAt(slotAttempt); ok {
		source.Attempt = attempt
	}
	return source
}

func isTrue(f *mlattr.Fact) bool { return f != nil && f.Bool && !f.Unreadable }

// hashOf is rule.Hash with 0 for no text.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return rule.Hash(text)
}
