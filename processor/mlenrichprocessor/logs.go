package mlenrichprocessor

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

// record is a log record that names a trace, between its reading and its
// correlation.
type record struct {
	correlate.Record
	attrs    pcommon.Map
	resource int
	// process is set if each trace of the record's process is a run.
	process *run.Process
}

// processLogs enriches each record from what it reports, and from what the
// spans of its trace said before it came.
func (e *enricher) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	b := batches.Get().(*batch)
	defer b.free()

	records := e.readLogs(ld, b)
	for i, rl := range ld.ResourceLogs().All() {
		e.settleRun(rl.Resource().Attributes(), &b.resources[i])
	}
	e.count(ctx, b)
	if len(records) == 0 {
		return ld, nil
	}
	for i := range records {
		s := &records[i]
		r := &b.resources[s.resource]
		s.SetRun(r.run.ID, r.run.Inferred)
		if r.run.PerTrace {
			s.process = &r.process
		}
	}
	known := e.store.keys.Lookup(func(yield func(*correlate.Record) bool) {
		for i := range records {
			if !yield(&records[i].Record) {
				return
			}
		}
	})
	for i := range records {
		writeRecord(&records[i], known, &b.keys.Sources)
	}
	return ld, nil
}

// readLogs enriches records from themselves, and returns those that name a
// trace.
func (e *enricher) readLogs(ld plog.Logs, b *batch) (records []record) {
	for i, rl := range ld.ResourceLogs().All() {
		r := e.readResource(rl.Resource().Attributes(), b)
		for _, sl := range rl.ScopeLogs().All() {
			known := r.facts.Systems | e.reader.Scope(sl.Scope().Name())
			for _, log := range sl.LogRecords().All() {
				read := e.readRecord(log, known, b)
				read.resource = i
				if trace := read.Trace(); !trace.IsEmpty() {
					records = append(records, read)
				}
			}
		}
		e.store.clients.Recognise(r.key, r.facts.Systems)
	}
	return records
}

// readRecord enriches a record from itself and reads which span it is of.
func (e *enricher) readRecord(log plog.LogRecord, known vocabulary.System, b *batch) record {
	attrs := log.Attributes()
	trace, span := log.TraceID(), log.SpanID()
	if trace.IsEmpty() {
		// Python's logging bridge puts the ids into attributes if another
		// library makes the record.
		decodeID(attrs, "otelTraceID", trace[:])
		decodeID(attrs, "otelSpanID", span[:])
	}
	e.reader.Record(known, attrs, &b.facts)
	b.rejected += b.facts.Rejected
	read := record{Record: correlate.ReadRecord(&b.facts, trace, span), attrs: attrs}
	e.write(attrs, &b.facts)
	return read
}

// decodeID reads an id from a hexadecimal attribute of exactly its length. It
// leaves the id zero otherwise.
func decodeID(attrs pcommon.Map, key string, id []byte) {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeStr || len(v.Str()) != hex.EncodedLen(len(id)) {
		return
	}
	if _, err := hex.Decode(id, []byte(v.Str())); err != nil {
		clear(id)
	}
}

// writeRecord adds to a record what is known of its span and trace.
func writeRecord(r *record, known correlate.Known, sources *correlate.Sources) {
	hasRun := r.Write(r.attrs, known, sources)
	if r.process != nil && !hasRun {
		r.attrs.PutStr(mlattr.RunID, run.OfTrace(r.process, r.Trace()))
		r.attrs.PutBool(mlattr.RunInferred, true)
	}
}
