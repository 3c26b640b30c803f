package model_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A run of 10,000 ranks that hangs costs bounded memory, and a page of bounded size.
func TestTenThousandHangingRanks(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) // #nosec G115 -- below 2^63
	}
	before := heap()
	w := newWorld(input.Settings{})
	const ranks = 10_000
	for range 2 {
		for rank := range ranks {
			w.span(func(s *input.Span) {
				s.Source = &input.Source{Service: "trainer", Run: "r", Rank: strconv.Itoa(rank), Host: fmt.Sprint("h", rank/8)}
			})
		}
		w.now = w.now.Add(2 * time.Second)
	}
	w.point(series.RunState, "r", 1, "stalled")
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemLooksHung)
	state := w.state()
	require.Len(t, state.Runs, 1)
	page, err := json.Marshal(state)
	require.NoError(t, err)
	run := w.run(t)
	assert.Len(t, run.Ranks, ranks)
	detail, err := json.Marshal(run)
	require.NoError(t, err)
	used := heap() - before
	t.Logf("state %d bytes, the run %d bytes, heap %d bytes", len(page), len(detail), used)
	assert.Less(t, len(page), 64<<10)
	assert.Less(t, len(detail), 2<<20)
	assert.Less(t, used, int64(64<<20))
	runtime.KeepAlive(w)
}
