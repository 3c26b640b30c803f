package artifact

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/diagnosis"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// diagnosisOf returns what a message says about memory that ran out, or about
// a collective operation that did not end, or nil. Only numbers and names of a
// closed form are taken from the message.
func diagnosisOf(e failure.Error) jsontree.Object {
	if e.Findings != nil {
		return e.Findings
	}
	if m, ok := diagnosis.OutOfMemory(e.Message); ok {
		return jsontree.OfKnown(
			"about", "memory",
			"device", m.Device,
			"requested_bytes", jsontree.Known(m.Requested),
			"total_bytes", jsontree.Known(m.Total),
			"free_bytes", jsontree.Known(m.Free),
			"process_bytes", jsontree.Known(m.Process),
			"allocated_bytes", jsontree.Known(m.Allocated),
			"reserved_unused_bytes", jsontree.Known(m.Unused),
			"other_processes_bytes", jsontree.Known(m.Others),
			"reading", m.Reading(),
		)
	}
	if c, ok := diagnosis.HungCollective(e.Message); ok {
		return jsontree.OfKnown(
			"about", "collective",
			"backend", c.Backend,
			"operation", c.Operation,
			"sequence", jsontree.Known(c.Sequence),
			"elements_in", jsontree.Known(c.ElementsIn),
			"elements_out", jsontree.Known(c.ElementsOut),
			"timeout_ms", jsontree.Known(c.TimeoutMillis),
			"ran_ms", jsontree.Known(c.RanMillis),
			"reading", "Compare sequence and sizes with those of the other ranks: "+
				"a rank with a lower sequence is behind, and ranks that differ in the sizes run different code.",
		)
	}
	return nil
}
