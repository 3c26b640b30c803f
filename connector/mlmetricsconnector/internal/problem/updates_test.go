package problem_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A problem is updated if other words are said of it, or its value has changed by more
// than a fifth, at most once a minute.
func TestUpdates(t *testing.T) {
	b, now := problem.NewBoard(), begin
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.Value, p.Evidence, p.Next = 10, []string{"3.1 s a step, usually 1.9"}, "Look."
	settle := func(after time.Duration) (updated bool) {
		now = now.Add(after)
		b.Report(p)
		began, _, open := b.Settle(now, false, nothing, always)
		assert.Len(t, open, 1)
		assert.False(t, len(began) > 0 && open[0].Updated, "one record")
		return open[0].Updated
	}
	assert.False(t, settle(0), "it begins")
	p.Value, p.Evidence = 11.9, []string{"3.75 s a step, usually 2"}
	assert.False(t, settle(time.Hour), "other figures")
	p.Value = 12.1
	assert.True(t, settle(time.Minute), "a value that is a fifth more")
	assert.False(t, settle(time.Minute), "it is known")
	p.Value = 9.6
	assert.True(t, settle(time.Minute), "a value that is a fifth less")
	p.Evidence = append(p.Evidence, "clocks are lowered")
	assert.False(t, settle(59*time.Second), "the last one is no minute ago")
	assert.True(t, settle(time.Second))
	p.Next = "Look elsewhere."
	assert.True(t, settle(time.Minute))
	p.Rank = "13"
	assert.True(t, settle(time.Minute), "another rank")
	p.PID = 4242
	assert.True(t, settle(time.Minute), "a process is known")
	p.Evidence, p.Evident = []string{"nothing"}, now
	assert.False(t, settle(3*time.Minute), "it is stale")
}

// An emission has few updates, those first that wait for longest.
func TestUpdatesAreBounded(t *testing.T) {
	b := problem.NewBoard()
	updated := make(map[string]int)
	for minute := range 4 {
		for n := range 600 {
			p := ofRun(mlattr.ProblemSlow, strconv.Itoa(n), begin)
			p.Evidence = []string{map[bool]string{true: "as before", false: "other words"}[minute == 0]}
			b.Report(p)
		}
		_, _, open := b.Settle(begin.Add(time.Duration(minute)*time.Minute), false, nothing, always)
		n := 0
		for i := range open {
			if open[i].Updated {
				updated[open[i].Subject.Run]++
				n++
			}
		}
		assert.LessOrEqual(t, n, 256)
	}
	assert.Len(t, updated, 600, "each, once")
}
