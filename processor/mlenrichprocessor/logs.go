package mlenrichprocessor

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recordState is a log record between its reading and its correlation.
type recordState struct {
	attrs    pcommon.Map
	trace    [16]byte
	span     spanKey
	present  [keyCount]bool
	resource int
	// inherited and foreign are as in spanState.
	inherited origins
	foreign   bool
}

// processLogs enriches each record from what it says and from what the spans
// of its trace said before it came. It does not wait for spans.
func (e *enricher) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	b := batches.Get().(*batch)
	defer b.free()

	var records []recordState
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
				state.resource = i
				if state.trace != ([16]byte{}) {
					traces[state.trace] = nil
					if state.span.span != ([8]byte{}) {
						spans[state.span] = nil
					}
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
	for i := range records {
		s := &records[i]
		s.write(spans[s.span], traces[s.trace], b)
	}
	e.count(ctx, nil, b.rejected)
	return ld, nil
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

// write adds to a record what its span hands down, or else what its trace
// agrees about. Either may be unknown.
func (s *recordState) write(span *keySet, trace *agreement, b *batch) {
	r := &b.resources[s.resource]
	added := false
	for k := range keyInferred {
		if s.foreign || s.present[k] || k == keyRun && r.run.id != "" {
			continue
		}
		value, from := keyOf(k, span, trace)
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
		s.attrs.PutStr(mlattr.CorrelationSource, b.marks.text(s.inherited))
	}
	if r.run.perTrace && !s.present[keyRun] && !s.present[keyInferred] && s.inherited[keyRun] == fromNowhere {
		s.attrs.PutStr(mlattr.RunID, traceRunID(r.process, s.trace))
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
