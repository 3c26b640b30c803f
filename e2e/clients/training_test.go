package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// testTimeOfRuns compares the time of runs with the spans of their training: all
// of it is in some state, from the first span's begin to the last one's end.
// key is what tells the runs apart on spans, and label in Prometheus.
func testTimeOfRuns(t *testing.T, spans []harness.StoredSpan, selector, key, label string) {
	t.Helper()
	phases := []string{"forward", "backward", "forward_backward", "optimizer", "batch", "checkpoint", "validation", "data_load"}
	type extent struct{ first, last int64 }
	extents := map[string]extent{}
	for _, span := range spans {
		phase, _ := span.Attribute("ml.phase")
		if name, ok := phase.(string); !ok || !slices.Contains(phases, name) {
			continue
		}
		value, _ := span.Attribute(key)
		run := fmt.Sprint(value)
		start, end := int64(span.Span.StartTimestamp()), int64(span.Span.EndTimestamp())
		e, known := extents[run]
		if !known {
			e = extent{start, end}
		}
		extents[run] = extent{min(e.first, start), max(e.last, end)}
	}
	wanted := map[string]float64{}
	for run, e := range extents {
		wanted[run] = float64(e.last-e.first) / 1e9
	}
	require.NotEmpty(t, wanted)
	prometheus.AwaitNear(t, fmt.Sprintf(`sum by (%s) (ml_run_time_seconds_total%s)`, label, selector), []string{label}, wanted, 1e-9)
}
