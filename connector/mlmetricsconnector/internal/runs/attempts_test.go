package runs

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
)

// traced is a span of a process that has one trace.
func traced(trace byte, start int64) *Span {
	return &Span{OneTrace: true, Trace: [16]byte{trace}, Time: wallclock.Span{Start: start}}
}

func TestAttempts(t *testing.T) {
	numbered := func(n int64) Span { return Span{Program: Program{Restarts: n, Numbered: true}} }
	at := func(start int64) Span { return Span{Time: wallclock.Span{Start: start}} }
	type seen struct {
		span  Span
		ended int64
		begun int64
		old   bool
	}
	for name, spans := range map[string][]seen{
		"a launcher that counts": {
			{span: numbered(0)}, {span: numbered(0)},
			{span: numbered(1), begun: 1}, {span: numbered(0), old: true}, {span: numbered(1)},
			{span: numbered(4), begun: 3}, {span: Span{}},
		},
		"one that has counted before": {{span: numbered(7)}, {span: numbered(8), begun: 1}},
		"a number beyond belief":      {{span: numbered(0)}, {span: numbered(1 << 60), begun: maxAttemptGap}},
		"another life of the process": {
			{span: *traced(1, 10)}, {span: *traced(1, 90)},
			{span: *traced(2, 101), begun: 1}, {span: *traced(1, 95), old: true}, {span: *traced(2, 110)},
			{span: *traced(3, 120), begun: 1},
		},
		"another process at the same time": {
			{span: *traced(1, 10)}, {span: *traced(2, 50)}, {span: *traced(2, 120)}, {span: *traced(1, 121)},
		},
		"work after the end": {
			{span: at(10)}, {span: at(90), ended: 100}, {span: at(100), ended: 100, begun: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a attempts
			for i, s := range spans {
				begun, old := a.see(&s.span, 100, s.ended)
				assert.Equal(t, s.begun, begun, "span %d", i)
				assert.Equal(t, s.old, old, "span %d", i)
			}
		})
	}
}

// A hostile client has as many traces as it likes.
func TestAttemptsAreBounded(t *testing.T) {
	var a attempts
	for i := range 100 {
		a.see(traced(byte(i+1), int64(i+1)), int64(i), 0)
	}
	assert.Equal(t, byte(100), a.Trace[0])
}

func TestRework(t *testing.T) {
	var r rework
	for step := range int64(5) {
		assert.False(t, r.see(step))
	}
	r.restart()
	assert.True(t, r.see(0), "before its first number an attempt does what was done")
	assert.True(t, r.see(3))
	assert.True(t, r.see(0))
	assert.True(t, r.see(4))
	assert.False(t, r.see(5))
	assert.False(t, r.see(0))
	r.restart()
	assert.True(t, r.see(5))
	assert.False(t, r.see(6))

	var bare rework
	bare.restart()
	assert.False(t, bare.see(0), "nobody numbers the steps")
}
