package mlsampleprocessor

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// attrArtifact is on spans that repro_gen has written an artifact for.
const attrArtifact = "repro.artifact.fingerprint"

// maxAhead is how far a client's clock may be ahead of the collector's, in nanoseconds.
// A time further ahead is treated as now, because it would exclude later ones.
const maxAhead = int64(time.Hour)

// processKeys identify a process that states no rank.
var processKeys = [...]string{"service.instance.id", "process.pid"}

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
	r.service = rule.Hash(f.Text(mlattr.ServiceName))
	id, _ := f.Run()
	r.source = sample.Source{Run: rule.Hash(id), Host: rule.Hash(f.Text(mlattr.HostName))}
	r.source.Attempt, _ = f.Int(mlattr.RunAttempt)
	if rank, ok := f.Int(mlattr.RankGlobal); ok {
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
	conversation     string
	run              spanfact.RunIDs
	keep, wrote      bool
	step, tokens     int64
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
	sp.Step = spanfact.StepOf(r.systems, a.step)
	if a.Phase != "" {
		sp.Role = roles[a.Phase]
		if a.Phase == mlattr.PhaseTrain && sp.Step > 0 { // of one step
			sp.Role = sample.Batch
		}
	}
	sp.Tokens = a.tokens
	sp.Conversation = hashOf(a.conversation)
	operation := cmp.Or(a.operation, a.genAI)
	sp.Operation = rule.Mix(r.service, hashOf(operation))
	sp.Like = rule.Mix(r.service, hashOf(cmp.Or(operation, span.Name())))
	sp.Failed = a.Failed(span)
	sp.Marked = a.keep || a.wrote
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
		a.step, _ = mlattr.ReadInt(value)
	case mlattr.Operation:
		a.operation, _ = mlattr.ReadText(value)
	case mlattr.GenAIOperationName:
		a.genAI, _ = mlattr.ReadText(value)
	case mlattr.GenAIConversationID:
		a.conversation, _ = mlattr.ReadText(value)
	case mlattr.GenAIOutputTokens:
		a.tokens, _ = mlattr.ReadInt(value)
	case mlattr.SampleKeep:
		a.keep = isTrue(value)
	case attrArtifact:
		a.wrote = true
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

func isTrue(v pcommon.Value) bool { return v.Type() == pcommon.ValueTypeBool && v.Bool() }

// hashOf is rule.Hash with 0 for no text.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return rule.Hash(text)
}
