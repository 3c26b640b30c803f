package mlenrichprocessor

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recordState is a log record between its reading and its correlation.
type recordState struct {
	attrs    pcommon.Map
	trace    [16]byte
	span     spanKey
	present  [keyCount]bool
	resource int
	// ordinal is the record's place in its batch.
	ordinal int32
	// waits is true where it goes on later.
	waits bool
	// inherited and foreign are as in spanState.
	inherited origins
	foreign   bool
}

// processLogs enriches each record from what it says and from what the spans
// of its trace said before it came. What is ahead of its spans goes on, unless
// it may wait: it is not among what is returned then.
func (e *enricher) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	b := batches.Get().(*batch)
	defer b.free()

	var records []recordState
	var ordinal int32
	spans := make(map[spanKey]*keySet)
	traces := make(map[[16]byte]*agreement)
	for i, rl := range ld.ResourceLogs().All() {
		r := b.addResource()
		attrs := rl.Resource().Attributes()
		e.readResource(attrs, r)
		b.rejected += r.facts.Rejected
		for _, sl := range rl.ScopeLogs().All() {
			known := r.facts.Systems | e.reader.Scope(sl.Scope().Name())
			for _, record := range sl.LogRecords().All() {
				state := e.readRecord(record, known, b)
				state.resource, state.ordinal = i, ordinal
				ordinal++
				if state.trace != ([16]byte{}) {
					state.wants(spans, traces)
					records = append(records, state)
				}
			}
		}
		e.store.recognise(r.key, r.facts.Systems)
	}
	for i, rl := range ld.ResourceLogs().All() {
		r := &b.resources[i]
		e.settleRun(rl.Resource().Attributes(), r, e.store.recognise(r.key, 0))
	}
	if len(records) > 0 {
		e.store.lookup(spans, traces)
	}
	e.count(ctx, nil, b.rejected)
	if e.waiting != nil && e.letWait(ctx, ld, b, records, spans, traces) && ld.ResourceLogs().Len() == 0 {
		return ld, processorhelper.ErrSkipProcessingData
	}
	for i := range records {
		if s := &records[i]; !s.waits {
			r := &b.resources[s.resource]
			s.write(spans[s.span], traces[s.trace], &r.run, &r.process, &b.marks)
		}
	}
	return ld, nil
}

// letWait takes the records out that could learn something and have learnt
// nothing, as far as there is room, and says whether there were any.
func (e *enricher) letWait(ctx context.Context, ld plog.Logs, b *batch, records []recordState, spans map[spanKey]*keySet, traces map[[16]byte]*agreement) bool {
	some := false
	for i := range records {
		s := &records[i]
		s.waits = s.teachable() && !s.learns(spans[s.span], traces[s.trace], &b.resources[s.resource].run)
		some = some || s.waits
	}
	if some {
		e.waiting.take(ctx, ld, b, records)
	}
	return some
}

// readRecord enriches a record from itself and notes whose span it is of.
func (e *enricher) readRecord(record plog.LogRecord, known mlattr.System, b *batch) recordState {
	f := &b.facts
	attrs := record.Attributes()
	e.reader.Record(known, attrs, f)
	b.rejected += f.Rejected
	s := recordState{attrs: attrs, trace: record.TraceID()}
	s.inherited, s.foreign = readOrigins(f)
	settleTrainingRun(f, &s.inherited)
	e.write(attrs, f)

	span := [8]byte(record.SpanID())
	if s.trace == ([16]byte{}) {
		// Python's logging bridge puts the ids into attributes where the
		// record itself is made by somebody else.
		decodeID(attrs, "otelTraceID", s.trace[:])
		decodeID(attrs, "otelSpanID", span[:])
	}
	s.span = spanKey{s.trace, span}
	for k, name := range keyNames {
		s.present[k] = f.Find(name) != nil
	}
	return s
}

// decodeID reads an id from a hexadecimal attribute of exactly its length; it
// leaves id zero otherwise.
func decodeID(attrs pcommon.Map, key string, id []byte) {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeStr || len(v.Str()) != hex.EncodedLen(len(id)) {
		return
	}
	if _, err := hex.Decode(id, []byte(v.Str())); err != nil {
		clear(id)
	}
}

// wants asks for what is known of the record's span and trace.
func (s *recordState) wants(spans map[spanKey]*keySet, traces map[[16]byte]*agreement) {
	traces[s.trace] = nil
	if s.span.span != ([8]byte{}) {
		spans[s.span] = nil
	}
}

// teachable says whether spans that come could say something of the record. One
// that an ml_enrich before this one has given keys has what it can have.
func (s *recordState) teachable() bool { return !s.foreign && s.inherited == (origins{}) }

// learns says whether the record gets a key of its span or trace.
func (s *recordState) learns(span *keySet, trace *agreement, of *run) bool {
	for k := range keyInferred {
		if value, _ := s.learn(k, span, trace, of); value != "" {
			return true
		}
	}
	return false
}

// learn is the key that the record gets of its span or trace, or "".
func (s *recordState) learn(key int, span *keySet, trace *agreement, of *run) (string, origin) {
	if s.foreign || s.present[key] {
		return "", fromNowhere
	}
	value, from := keyOf(key, span, trace)
	if key == keyRun && value != "" && of.id != "" && (value == of.id || inferredRun(span, trace, from) || from != fromSpan && !of.inferred) {
		// The resource has the record's run, unless the record's span is of
		// another, or nobody named the resource's.
		return "", fromNowhere
	}
	return value, from
}

// write adds to a record what its span hands down, or else what its trace
// agrees about. Either may be unknown. The run and the process are those of the
// record's resource.
func (s *recordState) write(span *keySet, trace *agreement, of *run, p *process, marks *marks) {
	added := false
	for k := range keyInferred {
		value, from := s.learn(k, span, trace, of)
		if value == "" {
			continue
		}
		s.attrs.PutStr(keyNames[k], value)
		s.inherited[k], added = from, true
		if k == keyRun && !s.present[keyInferred] && inferredRun(span, trace, from) {
			s.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	if added {
		s.attrs.PutStr(mlattr.CorrelationSource, marks.text(s.inherited))
	}
	if of.perTrace && !s.present[keyRun] && !s.present[keyInferred] && s.inherited[keyRun] == fromNowhere {
		s.attrs.PutStr(mlattr.RunID, traceRunID(*p, s.trace))
		s.attrs.PutBool(mlattr.RunInferred, true)
	}
}

// keyOf is the value of a key that the span hands down, or else that the trace
// agrees about, and where it came from. Either may be nil.
func keyOf(key int, span *keySet, trace *agreement) (string, origin) {
	if span != nil && span[key] != "" {
		return span[key], fromSpan
	}
	if trace != nil {
		return trace.agreed(key), fromTrace
	}
	return "", fromNowhere
}

func inferredRun(span *keySet, trace *agreement, from origin) bool {
	if from == fromSpan {
		return span[keyInferred] != ""
	}
	return trace.values[keyInferred] != ""
}
