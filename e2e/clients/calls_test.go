package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// checkCalls compares how many calls a job made of each function, and where
// timed how long they took in all, with the spans that stand for one call
// each.
func checkCalls(t *testing.T, metric, job string, calls []harness.StoredSpan, function func(harness.StoredSpan) string, timed bool) {
	t.Helper()
	require.NotEmpty(t, calls, job)
	counts, sums := map[string]float64{}, map[string]float64{}
	for _, span := range calls {
		name := function(span)
		counts[name]++
		sums[name] += float64(span.Span.EndTimestamp()-span.Span.StartTimestamp()) / 1e9
	}
	prometheus.AwaitValues(t, fmt.Sprintf("sum by (ml_function) (%s_count{job=%q})", metric, job), "ml_function", counts)
	if !timed {
		return
	}
	for name, want := range sums {
		got, err := prometheus.Scalar(t.Context(), fmt.Sprintf("sum(%s_sum{job=%q, ml_function=%q})", metric, job, name))
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-9, name)
	}
}

// attribute returns a function that reads an attribute as text.
func attribute(key string) func(harness.StoredSpan) string {
	return func(span harness.StoredSpan) string { return fmt.Sprint(span.Attributes[key]) }
}

func constant(text string) func(harness.StoredSpan) string {
	return func(harness.StoredSpan) string { return text }
}

// withPrefix returns the spans whose name begins with one of the texts.
func withPrefix(spans []harness.StoredSpan, texts ...string) (found []harness.StoredSpan) {
	for _, span := range spans {
		for _, text := range texts {
			if strings.HasPrefix(span.Span.Name(), text) {
				found = append(found, span)
				break
			}
		}
	}
	return found
}
