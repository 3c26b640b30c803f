package model_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// heldBytes returns how many bytes the program holds.
func heldBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A name of a span is kept only as far as it is shown.
func TestLongNamesOfFailuresAreNotKept(t *testing.T) {
	w := newWorld(model.Settings{})
	before := heldBytes()
	for i := range 100 {
		w.span(func(in *model.SpanInput) {
			in.Failed, in.Class = true, strings.Repeat("E", 1<<18)+strconv.Itoa(i)
			in.Name = strings.Repeat("n", 1<<18) + strconv.Itoa(i)
		})
	}
	assert.Less(t, heldBytes(), before+16<<20)
	assert.Len(t, w.state().Failures, 1)
	assert.EqualValues(t, 100, w.State().Failures[0].Count)
}
