package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// The memory of a span with hundreds of facts is not kept for the next request, that of
// others is, without what they said.
func TestForgottenFacts(t *testing.T) {
	for _, facts := range []int{3, 40} {
		f := new(Facts)
		for slot := range facts {
			f.set(Slot(slot+1), rankDerived, Fact{Kind: table.KindText, Text: "text"})
		}
		kept := f.list
		f.forget()
		assert.Zero(t, f.Len())
		assert.Nil(t, f.At(1))
		assert.Equal(t, facts <= maxIdle, cap(f.list) > 0)
		assert.Equal(t, make([]Fact, facts), kept)
	}
}
