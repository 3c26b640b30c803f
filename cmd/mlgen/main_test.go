package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/internal/sink"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func newSink(t *testing.T) *sink.Server {
	t.Helper()
	server, err := sink.New()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// TestSentLogMatchesServer sends every scenario over its own transport and
// compares the log with what the server has.
func TestSentLogMatchesServer(t *testing.T) {
	server := newSink(t)
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	var out bytes.Buffer
	status := run(context.Background(), []string{
		"--endpoint", server.GRPC, "--http-endpoint", server.HTTP, "--seed", "7",
		"--rate", "100", "--duration", "1s", "--sent", path,
	}, &out, &out)
	require.Equal(t, exitOK, status, out.String())

	log, err := sentlog.ReadFile(path)
	require.NoError(t, err)
	require.NotNil(t, log.Header)
	require.NotNil(t, log.Summary)
	assert.Equal(t, int64(7), log.Header.Seed)
	assert.Equal(t, scenario.Names(), log.Header.Scenarios)
	assert.Empty(t, log.Rejected)

	received := map[string]bool{}
	spans := 0
	for _, td := range server.Traces() {
		for _, entry := range sentlog.SpanEntries("", td) {
			received[entry.Span.TraceID+"/"+entry.Span.SpanID] = true
			spans++
		}
	}
	assert.Len(t, log.Spans, spans)
	for _, span := range log.Spans {
		assert.True(t, received[span.TraceID+"/"+span.SpanID], "span %s of %s did not arrive", span.Name, span.Scenario)
	}
	points, records := 0, 0
	for _, md := range server.Metrics() {
		points += md.DataPointCount()
	}
	for _, ld := range server.Logs() {
		records += ld.LogRecordCount()
	}
	assert.Len(t, log.Metrics, points)
	assert.Len(t, log.Logs, records)
	for _, name := range scenario.Names() {
		assert.NotZero(t, log.Summary.Scenarios[name].Items[sentlog.SignalTraces], name)
	}
}
