//go:build linux

package main

import (
	"runtime"
	"strings"
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
	names, err = variantNames(options{variants: "variants/traces", only: "whole", before: "otelcol"})
	require.NoError(t, err)
	assert.Equal(t, []string{"plain", "whole", "plain_before", "whole_before"}, names)
}

// Options that say nothing together are errors.
func TestOptions(t *testing.T) {
	for want, arguments := range map[string][]string{
		"-rounds":                   {"-rounds", "0"},
		"-cores and -rising":        {"-cores", "-rising"},
		"-profile measures one":     {"-profile", "p", "-before", "otelcol"},
		"-series measures one":      {"-series", "9", "-stock", "otelcol"},
		`-signal is "steps"`:        {"-signal", "steps"},
		"flag provided but not def": {"-colour"},
	} {
		assert.ErrorContains(t, run(t.Context(), arguments, nil), want)
	}
}

// All spans pass with one core and with all.
func TestCores(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-cores", "-rounds", "1", "-requests", "2"}, &out)
	if runtime.GOMAXPROCS(0) < 2 {
		require.ErrorContains(t, err, "two cores")
		return
	}
	require.NoError(t, err)
	assert.Regexp(t, `^\d+ cores pass on [0-9.]+ times as many spans as one \([0-9.]+ to [0-9.]+\)\n$`, out.String())
}
