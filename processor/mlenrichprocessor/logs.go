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

// processLogs enriches each record from what it reports, and from what the
// spans of its trace said before it came.
func (e *enricher) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	b := batches.Get().(*batch)
	defer b.free()

	records := e.readLogs(ld, b)
	for i, rl := range ld.ResourceLogs().All() {
		e.settleRun(rl.Resource().Attributes(), &b.resources[i])
	}
	e.store.count(ctx, b)
	if len(records) == 0 {
		return ld, nil
	}
	for i := range records {
		of := &b.resources[records[i].Resource].run
		records[i].Run, records[i].Inferred = of.ID, of.Inferred
	}
	known := e.store.keys.Lookup(records)
	for i := range records {
		record := &records[i]
		r := &b.resources[record.Resource]
		if hasRun := record.Write(known, &b.keys.Sources); r.run.PerTrace && !hasRun {
			record.Attrs.PutStr(mlattr.RunID, run.OfTrace(&r.process, record.Trace()))
			record.Attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	return ld, nil
}

// readLogs enriches records from themselves, and returns those that name a
// trace.
func (e *enricher) readLogs(ld plog.Logs, b *batch) (records []correlate.Record) {
	for i, rl := range ld.ResourceLogs().All() {
		r := e.readResource(rl.Resource().Attributes(), b)
		for _, sl := range rl.ScopeLogs().All() {
			known := r.facts.Systems | e.reader.Scope(sl.Scope().Name())
			for _, log := range sl.LogRecords().All() {
				read := e.readRecord(log, known, b)
				if trace := read.Trace(); !trace.IsEmpty() {
					read.Attrs, read.Resource = log.Attributes(), i
					records = append(records, read)
				}
			}
		}
		e.store.clients.Recognise(r.key, r.facts.Systems)
	}
	return records
}

// readRecord enriches a record from itself and reads which span it is of.
func (e *enricher) readRecord(log plog.LogRecord, known vocabulary.System, b *batch) correlate.Record {
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
	read := correlate.ReadRecord(&b.facts, trace, span)
	e.write(attrs, &b.facts, b)
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
