package problem_test

import (
	"bytes"
	"encoding/gob"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func FuzzPlausible(f *testing.F) {
	encode := func(all ...problem.Entry) []byte {
		var data bytes.Buffer
		require.NoError(f, gob.NewEncoder(&data).Encode(all))
		return data.Bytes()
	}
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.Evident, p.Usual, p.Evidence = begin, math.NaN(), []string{"2 s a step"}
	entry := problem.Entry{Problem: p, Detected: begin, Before: []change.Change{{Time: begin, Text: "version 2 (was 1)"}}}
	f.Add(encode(entry))
	many := entry
	many.Evidence = make([]string, 1000)
	none, future := entry, entry
	none.Kind, future.Onset = "sad", begin.Add(1e6*time.Hour)
	assert.Len(f, problem.Plausible([]problem.Entry{many, none, entry}), 1)
	f.Add(encode(many, none, future, entry))
	f.Fuzz(func(t *testing.T, data []byte) {
		var open []problem.Entry
		if gob.NewDecoder(bytes.NewReader(data)).Decode(&open) != nil {
			return
		}
		open = problem.Plausible(open)
		b := problem.NewBoard()
		b.Restore(open, begin)
		b.Restore(open, begin)
		_, _, lasting := b.Settle(begin, false, nothing, always)
		assert.LessOrEqual(t, len(lasting), len(open))
		assert.Len(t, problem.Plausible(slices.Clone(lasting)), len(lasting), "they can be kept again")
		for _, e := range lasting {
			assert.False(t, e.Onset.After(begin))
			_ = e.Sentence()
			assert.False(t, math.IsNaN(e.GPUHours(begin)))
		}
	})
}
