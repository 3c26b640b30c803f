package runs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAttempts(t *testing.T) {
	numbered := func(n int64) sign { return sign{number: n, numbered: true} }
	traced := func(trace byte, start int64) sign { return sign{trace: [16]byte{trace}, start: start} }
	type seen struct {
		sign  sign
		ended int64
		begun int64
		old   bool
	}
	for name, spans := range map[string][]seen{
		"a launcher that counts": {
			{sign: numbered(0)}, {sign: numbered(0)},
			{sign: numbered(1), begun: 1}, {sign: numbered(0), old: true}, {sign: numbered(1)},
			{sign: numbered(4), begun: 3}, {sign: sign{}},
		},
		"one that has counted before": {{sign: numbered(7)}, {sign: numbered(8), begun: 1}},
		"a number beyond belief":      {{sign: numbered(0)}, {sign: numbered(1 << 60), begun: maxAttemptGap}},
		"another life of the process": {
			{sign: traced(1, 10)}, {sign: traced(1, 90)},
			{sign: traced(2, 101), begun: 1}, {sign: traced(1, 95), old: true}, {sign: traced(2, 110)},
			{sign: traced(3, 120), begun: 1},
		},
		"another process at the same time": {
			{sign: traced(1, 10)}, {sign: traced(2, 50)}, {sign: traced(2, 120)}, {sign: traced(1, 121)},
		},
		"work after the end": {
			{sign: sign{start: 10}}, {sign: sign{start: 90}, ended: 100}, {sign: sign{start: 100}, ended: 100, begun: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a attempts
			for i, s := range spans {
				begun, old := a.see(s.sign, 100, s.ended)
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
		a.see(sign{trace: [16]byte{byte(i + 1)}, start: int64(i + 1)}, int64(i), 0)
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
