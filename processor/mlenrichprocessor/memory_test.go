package mlenrichprocessor

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
)

// TestTwoSpansOfOneID shows that of two spans with one id, which only broken
// clients send, the last is the parent, in the batch and after it.
func TestTwoSpansOfOneID(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, batchOf("gateway",
		testSpan{3, 1, 0, "first", map[string]any{"session.id": "a"}},
		testSpan{3, 1, 0, "last", map[string]any{"session.id": "b"}}))
	out := p.sendTraces(t, batchOf("gateway", testSpan{3, 2, 1, "child", nil}))
	assert.Equal(t, map[string]string{"child": "b"}, keysByName(out, "ml.session.id"))
}

// TestManyLateSpansOfALongTrace has a request, a link and a log record for each
// of many spans of a trace that came before.
func TestManyLateSpansOfALongTrace(t *testing.T) {
	const many = 99
	p := startDefault(t)
	var first, late []testSpan
	var consumers []linkedSpan
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	want := make(map[string]string)
	for i := range byte(many) {
		request := strconv.Itoa(int(i))
		first = append(first, testSpan{1, 100 + i, 0, "call", keys("", request)})
		late = append(late, testSpan{1, 1 + i, 100 + i, "late " + request, nil})
		consumers = append(consumers, linkedSpan{testSpan{2 + i, 1, 0, "late " + request, nil}, []to{{1, 100 + i}}})
		record := records.AppendEmpty()
		record.SetTraceID([16]byte{0: 0xa0, 15: 1})
		record.SetSpanID([8]byte{0: 0xb0, 7: 100 + i})
		want["late "+request] = request
	}
	p.sendTraces(t, batchOf("x", first...))
	assert.Equal(t, want, keysByName(p.sendTraces(t, batchOf("x", late...)), "ml.request.id"))
	assert.Equal(t, want, keysByName(p.sendTraces(t, batchWithLinks("x", consumers...)), "ml.request.id"))
	for i, record := range p.sendLogs(t, ld).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		assert.Equal(t, strconv.Itoa(i), readID(record.Attributes(), "ml.request.id"))
	}
}
