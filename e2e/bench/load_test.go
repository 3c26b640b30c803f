//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// The load is what the page about it says: full requests, each trace new.
func TestLoad(t *testing.T) {
	requests, err := encode(loads["traces"], 1, 20)
	require.NoError(t, err)
	traces := map[pcommon.TraceID]int{}
	failed := 0
	for _, raw := range requests {
		decoded := ptraceotlp.NewExportRequest()
		require.NoError(t, decoded.UnmarshalProto(raw))
		assert.Equal(t, itemsOfRequest, decoded.Traces().SpanCount())
		for _, rs := range decoded.Traces().ResourceSpans().All() {
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				traces[span.TraceID()]++
				failed += span.Events().Len()
			}
		}
	}
	for id, spans := range traces {
		assert.LessOrEqual(t, spans, spansOfTrace, id)
	}
	assert.InDelta(t, 20*itemsOfRequest/failing, failed, 60)
}

// Requests of each signal are full.
func TestItems(t *testing.T) {
	for name, s := range loads {
		requests, err := encode(s, 1, 2)
		require.NoError(t, err)
		for _, raw := range requests {
			items, attributes, err := s.count(raw)
			require.NoError(t, err)
			assert.Equal(t, itemsOfRequest, items, name)
			assert.Greater(t, attributes, 3*items, name)
		}
	}
}

func TestVariants(t *testing.T) {
	names, err := variantNames(options{variants: "variants/traces"})
	require.NoError(t, err)
	assert.Equal(t, reference, names[0])
	assert.Contains(t, names, "enriched")
	_, err = variantNames(options{variants: "variants/traces", only: "enrichd"})
	require.ErrorContains(t, err, `"enrichd"`)
	assert.Error(t, run(t.Context(), []string{"-rounds", "0"}, nil))
}
