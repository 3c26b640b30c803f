package mlenrichprocessor

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/logwait"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

// record is a log record that names a trace, between its reading and its
// correlation.
type record = logwait.Record[recordState]

type recordState struct {
	correlate.Record
	resource int
	// process is set if each trace of the record's process is a run.
	process *run.Process
}

// processLogs enriches each record from what it reports, and from what the
// spans of its trace said before it came. A record that is ahead of its spans
// goes on, unless it may wait: then it is not among what is returned.
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
		s := &records[i].State
		r := &b.resources[s.resource]
		s.SetRun(r.run.ID, r.run.Inferred)
		if r.run.PerTrace {
			s.process = &r.process
		}
	}
	known := e.store.keys.Lookup(func(yield func(*correlate.Record) bool) {
		for i := range records {
			if !yield(&records[i].State.Record) {
				return
			}
		}
	})
	if e.waiting != nil {
		all := len(records)
		records = e.letWait(ctx, ld, records, known)
		if len(records) < all && ld.ResourceLogs().Len() == 0 {
			return ld, processorhelper.ErrSkipProcessingData
		}
	}
	for i := range records {
		writeRecord(&records[i], known, &b.keys.Sources)
	}
	return ld, nil
}

// readLogs enriches records from themselves, and returns those that name a
// trace.
func (e *enricher) readLogs(ld plog.Logs, b *batch) (records []record) {
	ordinal := 0
	for i, rl := range ld.ResourceLogs().All() {
		r := e.readResource(rl.Resource().Attributes(), b)
		for _, sl := range rl.ScopeLogs().All() {
			known := r.facts.Systems | e.reader.Scope(sl.Scope().Name())
			for _, log := range sl.LogRecords().All() {
				read := e.readRecord(log, known, b)
				read.Ordinal, read.State.resource = ordinal, i
				ordinal++
				if !read.Trace.IsEmpty() {
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
	state := recordState{Record: correlate.ReadRecord(&b.facts, trace, span)}
	e.write(attrs, &b.facts)
	return record{Trace: trace, Attrs: attrs, State: state}
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

// letWait takes the records out that could learn something and have learnt
// nothing, as far as there is memory, and returns the others.
func (e *enricher) letWait(ctx context.Context, ld plog.Logs, records []record, known *correlate.Known) (others []record) {
	var waiting []record
	processes := make(map[*run.Process]*run.Process)
	for _, r := range records {
		if !r.State.Teachable() || r.State.Learns(known) {
			others = append(others, r)
			continue
		}
		if p := r.State.process; p != nil {
			// The batch's memory is used again before the record goes on.
			if processes[p] == nil {
				own := *p
				processes[p] = &own
			}
			r.State.process = processes[p]
		}
		waiting = append(waiting, r)
	}
	if len(waiting) == 0 {
		return others
	}
	return append(others, e.waiting.Take(ctx, ld, waiting)...)
}

// writeRecord adds to a record what is known of its span and trace.
func writeRecord(r *record, known *correlate.Known, sources *correlate.Sources) {
	hasRun := r.State.Write(r.Attrs, known, sources)
	if r.State.process != nil && !hasRun {
		r.Attrs.PutStr(mlattr.RunID, run.OfTrace(r.State.process, r.Trace))
		r.Attrs.PutBool(mlattr.RunInferred, true)
	}
}

// correlator correlates log records that have waited.
type correlator struct{ keys *correlate.Store }

func (c correlator) lookup(records []*record) *correlate.Known {
	return c.keys.Lookup(func(yield func(*correlate.Record) bool) {
		for _, r := range records {
			if !yield(&r.State.Record) {
				return
			}
		}
	})
}

// Learns reports for each record whether it gets a key by now.
func (c correlator) Learns(records []*record) []bool {
	known := c.lookup(records)
	learns := make([]bool, len(records))
	for i, r := range records {
		learns[i] = r.State.Learns(known)
	}
	return learns
}

// Write adds to each record what is known of it.
func (c correlator) Write(records []*record) {
	known := c.lookup(records)
	var sources correlate.Sources
	for _, r := range records {
		writeRecord(r, known, &sources)
	}
}
