package problem_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func FuzzDecode(f *testing.F) {
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.Evident, p.Usual, p.Evidence = begin, math.NaN(), []string{"2 s a step"}
	entry := problem.Entry{Problem: p, Detected: begin, Before: []problem.Change{{Time: begin, Text: "version 2 (was 1)"}}}
	data, err := problem.Encode([]problem.Entry{entry})
	require.NoError(f, err)
	f.Add(data)
	long := entry
	long.Next = strings.Repeat("x", 5000)
	none, future := entry, entry
	none.Kind, future.Onset = "sad", begin.Add(1e6*time.Hour)
	data, err = problem.Encode([]problem.Entry{long, none, future, entry})
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		open, err := problem.Decode(data)
		if err != nil {
			return
		}
		b := problem.NewBoard()
		b.Restore(open, begin)
		b.Restore(open, begin)
		_, _, lasting := b.Settle(begin, nothing, always)
		assert.LessOrEqual(t, len(lasting), len(open))
		again, err := problem.Encode(lasting)
		require.NoError(t, err)
		_, err = problem.Decode(again)
		require.NoError(t, err)
		for _, e := range lasting {
			assert.False(t, e.Onset.After(begin))
			_ = e.Sentence()
			assert.False(t, math.IsNaN(e.GPUHours(begin)))
		}
	})
}
