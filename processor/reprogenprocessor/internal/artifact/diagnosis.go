package artifact

import (
	"slices"

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
		return finding("memory", m, m.Reading())
	}
	if c, ok := diagnosis.HungCollective(e.Message); ok {
		return finding("collective", c, "Compare sequence and sizes with those of the other ranks: "+
			"a rank with a lower sequence is behind, and ranks that differ in the sizes run different code.")
	}
	return nil
}

func finding(about string, found any, reading string) jsontree.Object {
	numbers, _ := jsontree.From(found).(jsontree.Object)
	return slices.Concat(jsontree.Of("about", about), numbers, jsontree.OfKnown("reading", reading))
}
