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
	message := e.Message
	if m, ok := diagnosis.OutOfMemory(message); ok {
		out := jsontree.Of("about", "memory")
		if m.Device != "" {
			out = append(out, jsontree.Member{Key: "device", Value: m.Device})
		}
		out = appendKnown(out, "requested_bytes", m.Requested)
		out = appendKnown(out, "total_bytes", m.Total)
		out = appendKnown(out, "free_bytes", m.Free)
		out = appendKnown(out, "process_bytes", m.Process)
		out = appendKnown(out, "allocated_bytes", m.Allocated)
		out = appendKnown(out, "reserved_unused_bytes", m.Unused)
		out = appendKnown(out, "other_processes_bytes", m.Others)
		if reading := m.Reading(); reading != "" {
			out = append(out, jsontree.Member{Key: "reading", Value: reading})
		}
		return out
	}
	if c, ok := diagnosis.HungCollective(message); ok {
		out := jsontree.Of("about", "collective", "backend", c.Backend, "operation", c.Operation)
		out = appendKnown(out, "sequence", c.Sequence)
		out = appendKnown(out, "elements_in", c.ElementsIn)
		out = appendKnown(out, "elements_out", c.ElementsOut)
		out = appendKnown(out, "timeout_ms", c.TimeoutMillis)
		out = appendKnown(out, "ran_ms", c.RanMillis)
		return append(out, jsontree.Member{Key: "reading", Value: "Compare sequence and sizes with those of the other ranks: " +
			"a rank with a lower sequence is behind, and ranks that differ in the sizes run different code."})
	}
	return nil
}

func appendKnown(o jsontree.Object, key string, n int64) jsontree.Object {
	if n < 0 {
		return o
	}
	return append(o, jsontree.Member{Key: key, Value: jsontree.Int(n)})
}
