package reprogenprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/exception"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

// sawTraces looks at a batch of spans for failures and for what belongs to
// earlier ones. It never blocks and never fails.
func (r *recorder) sawTraces(ctx context.Context, td ptrace.Traces) {
	b := r.scan(td, fairness.SenderOf(client.FromContext(ctx)))
	if len(b.failed) == 0 && len(b.calls) == 0 && !b.held {
		return
	}
	if b.overlooked > 0 {
		r.dropped(ctx, b.overlooked, dropBatchLimit)
	}
	for i := range b.calls {
		r.sawCall(&b.calls[i])
	}
	chosen, others := candidates(r.reader, b.failed)
	// What earlier batches told is asked before this one is noted: of its own
	// spans the choice is made.
	for i := range chosen {
		attributes := chosen[i].span.Attributes()
		failed, ofRequest := r.ledger.isConsequence(chosen[i].key(), chosen[i].parentKey())
		chosen[i].consequence = failed && !hasConversation(attributes) && (!ofRequest || !isModelCall(attributes))
	}
	for i := range others {
		attributes := others[i].span.Attributes()
		r.ledger.failedBelow(others[i].parentKey(), isRequest(attributes) || explains(attributes))
	}
	held := b.held
	for i := range chosen {
		held = r.sawFailure(ctx, &chosen[i]) || held
	}
	if held {
		r.remember(ctx, td)
	}
	r.endOfBatch()
}

// endOfBatch lets what does not wait, or cannot wait any longer, go on at once.
func (r *recorder) endOfBatch() {
	if r.cfg.SiblingWait == 0 || r.book.pressed() {
		r.release(r.now(), false)
	}
}

// sawFailure decides what becomes of a failure. It is copied only if an
// artefact is wanted: of a flood of equal errors, nearly all are a number in a
// group. The span or record is told of its group, and of the group's folder
// only if there is one or will be. It reports whether an incident was opened.
func (r *recorder) sawFailure(ctx context.Context, l *located) (opened bool) {
	now := r.now()
	if l.err.Stack == "" && !l.fromLog {
		if e, ok := r.exceptions.get(l.key(), now); ok {
			l.err = mergedError(e, l.err)
		}
	}
	correlation := correlationOf(l.span.Attributes())
	if correlation != "" && !r.reader.hasPayload(l.span) {
		if call, ok := r.calls.get(correlation, now); ok {
			l.recorded = &call
		}
	}
	f := describe(r.reader, *l)
	f.SeenAt = now
	n := &incident{
		id: r.serial.Add(1), group: f.Fingerprint, failure: f, fromLog: l.fromLog,
		trace: l.span.TraceID(), span: l.span.SpanID(), parent: l.span.ParentSpanID(),
		correlation: correlation, at: failedAt(l.span, now), explains: explains(l.span.Attributes()), request: isRequest(l.span.Attributes()),
	}
	n.run, n.rank = jobOf(l)
	if n.rank != "" {
		c := newCopier()
		n.host = c.text(firstText(l.resource.Attributes(), mlattr.HostName), maxValueBytes)
		n.name = c.text(l.span.Name(), maxValueBytes)
	}
	f.Rank = n.rank
	d := r.admit(ctx, n, l, now)
	f.Variant, n.variant = d.variant, d.variant.ID
	switch d.verdict {
	case verdictPassed:
		return false // the failure began further down, and was counted there
	case verdictRepeated:
		r.improve(d.incident, n, l, now)
	case verdictCounted:
		if r.book.rankOf(n) == rankEarlier {
			r.copy(n, l)
			r.book.lead(n, now)
			opened = true
		}
	case verdictWanted:
		opened = r.takeIn(ctx, n, l, now)
		d.folder = d.folder || opened
	}
	if d.verdict == verdictWanted || d.verdict == verdictCounted {
		for _, i := range r.book.supersede(n) {
			r.withdrawn(ctx, i)
		}
	}
	mark(l.attributes(), d.fingerprint, d.folder)
	return opened
}

// admit counts a failure, and tells the other ranks of its job of it. One
// that another rank led to gets no artefact of its own.
func (r *recorder) admit(ctx context.Context, n *incident, l *located, now time.Time) ruling {
	rank := r.book.rankOf(n)
	o := r.occurrenceOf(n, l)
	o.counted = rank == rankLater
	d := r.ledger.admit(o, now)
	if d.verdict == verdictRepeated && d.better {
		if waits, _ := r.book.known(d.incident, n); !waits {
			// The first artefact is written. A span that can be replayed is
			// worth another one.
			o.anew = true
			d = r.ledger.admit(o, now)
		}
	}
	r.count(ctx, d.verdict)
	if d.verdict != verdictRepeated && d.verdict != verdictPassed {
		r.book.listRank(n)
	}
	return d
}

func (r *recorder) occurrenceOf(n *incident, l *located) occurrence {
	f := n.failure
	o := occurrence{
		fingerprint: n.group, service: f.Service, origin: f.SentBy, rank: n.rank,
		version: newCopier().text(firstText(l.resource.Attributes(), attrServiceVersion), maxID),
		span:    l.key(), parent: l.parentKey(), correlation: n.correlation,
		errorType: exception.Name(f.Error.Type), message: f.Error.Message,
		consequence: l.consequence, request: n.request || n.explains, hasCall: f.Call != nil, incident: n.id, variant: variantOf(f, l, r.cfg.CaptureContent),
	}
	if !r.cfg.CaptureContent {
		o.service, o.rank, o.version = content.Word(o.service), content.Word(o.rank), content.Word(o.version)
	}
	return o
}

// takeIn copies a failure and takes it in, unless the queue or the memory is
// full.
func (r *recorder) takeIn(ctx context.Context, n *incident, l *located, now time.Time) bool {
	if !r.reserve(n) {
		r.refused(ctx, n, dropQueueFull)
		return false
	}
	r.copy(n, l)
	if !r.book.open(n, now) {
		r.unreserve(n)
		r.refused(ctx, n, dropMemory)
		return false
	}
	if later := r.book.leadRanks(n); later != nil {
		r.withdrawn(ctx, later)
	}
	return true
}

// improve adds to an incident that waits what another span or record of it
// has to tell.
func (r *recorder) improve(id uint64, n *incident, l *located, now time.Time) {
	if _, better := r.book.known(id, n); better {
		r.copy(n, l)
		r.book.improve(id, n, now)
		if n.failure.Call != nil {
			r.ledger.nowHasCall(r.occurrenceOf(n, l))
		}
	}
}

// copy keeps the failed span and its resource.
func (r *recorder) copy(n *incident, l *located) {
	c := r.newCopier()
	n.failure.Span = c.span(l.span, l.scope)
	if l.fromLog {
		n.failure.Span.Kind = "Log"
	}
	n.failure.Resource = c.attributes(l.resource.Attributes())
	e := n.failure.Error
	n.failure.Weight = maxCopyBytes - c.budget + len(e.Type) + len(e.Message) + len(e.Stack)
	if n.failure.Call != nil {
		n.failure.Weight += n.failure.Call.Weight
	}
	r.lookAround(n, l)
}

// mark writes onto a span or record where its artefact is. What a client
// claims under these names leads nowhere.
func mark(attributes pcommon.Map, fingerprint string, folder bool) {
	attributes.PutStr(attrArtifactFingerprint, fingerprint)
	if folder {
		attributes.PutStr(attrArtifactPath, fingerprint)
	} else {
		attributes.Remove(attrArtifactPath)
	}
}

// failedAt returns when a span failed, by its sender's clock.
func failedAt(span ptrace.Span, now time.Time) time.Time {
	events := span.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if e := events.At(i); e.Name() == attrExceptionEvent && e.Timestamp() != 0 {
			return e.Timestamp().AsTime()
		}
	}
	if end := span.EndTimestamp(); end != 0 {
		return end.AsTime()
	}
	return now
}
