package mlmetricsconnector

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// recordings has what real clients sent, by folder, request by request as recorded by
// examples/record.py.
func recordings(t *testing.T) map[string][]ptrace.Traces {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	all := map[string][]ptrace.Traces{}
	for _, folder := range folders {
		all[folder] = requestsOf(t, folder)
	}
	return all
}

// TestRecordings sends the recordings without ml_enrich before it, with the default
// configuration. The series are compared with the expected.txt of each client.
func TestRecordings(t *testing.T) {
	for folder, requests := range recordings(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			compare(t, folder, metricsFrom(t, folder, requests...))
		})
	}
}

// A span can only show that it waits for another rank if it belongs to one, and if its
// trace or its links lead to a span of another. No recorded client sends such spans,
// and the one that names ranks sends no calls. If a new recording does, ml.call.time
// has to say so.
func TestRecordedSpansShowNoWaitForAnotherRank(t *testing.T) {
	ranked := 0
	for folder, requests := range recordings(t) {
		ranks := map[pcommon.TraceID]int64{}
		var facts vocabulary.Facts
		for _, td := range requests {
			for _, rs := range td.ResourceSpans().All() {
				vocabulary.Default().Resource(rs.Resource().Attributes(), &facts)
				rank, ok := facts.IntAt(vocabulary.SlotRankGlobal)
				if !ok {
					rank = -1
				}
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						other, known := ranks[span.TraceID()]
						assert.True(t, !known || other == rank, "%s: %s is in a trace of two ranks", folder, span.Name())
						assert.True(t, !ok || span.Links().Len() == 0, "%s: %s has links", folder, span.Name())
						ranks[span.TraceID()] = rank
					}
				}
			}
		}
		if slices.Max(slices.Collect(maps.Values(ranks))) < 0 {
			continue
		}
		ranked++
		for m := range metricsOf(metricsFrom(t, folder, requests...)) {
			assert.NotEqual(t, "ml.call.time", m.Name(), "%s: a rank has calls", folder)
		}
	}
	assert.Equal(t, 1, ranked, "one client names ranks")
}
