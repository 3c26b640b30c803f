package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/internal/sink"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/send"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSink(t *testing.T) *sink.Server {
	t.Helper()
	server, err := sink.New()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// spanIDs are the ids of what a server has, or of a log.
func received(server *sink.Server) map[string]string {
	out := map[string]string{}
	for _, td := range server.Traces() {
		for _, entry := range sentlog.SpanEntries("", td) {
			out[entry.Span.TraceID+"/"+entry.Span.SpanID] = entry.Span.Name
		}
	}
	return out
}

func logged(log *sentlog.Log) map[string]string {
	out := map[string]string{}
	for _, span := range log.Spans {
		out[span.TraceID+"/"+span.SpanID] = span.Name
	}
	return out
}

// TestSentLogMatchesServer sends every scenario over each transport and compares
// the log with what the server has.
func TestSentLogMatchesServer(t *testing.T) {
	for _, protocol := range []string{"auto", "grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			server := newSink(t)
			path := filepath.Join(t.TempDir(), "sent.jsonl")
			var out bytes.Buffer
			args := []string{
				"--endpoint", server.GRPC, "--http-endpoint", server.HTTP, "--protocol", protocol,
				"--seed", "7", "--rate", "100", "--duration", "1s", "--sent", path,
			}
			require.Equal(t, exitOK, run(t.Context(), args, &out, &out), out.String())

			log, err := sentlog.ReadFile(path)
			require.NoError(t, err)
			require.NotNil(t, log.Header)
			require.NotNil(t, log.Summary)
			assert.Equal(t, int64(7), log.Header.Seed)
			assert.Equal(t, scenario.Names(), log.Header.Scenarios)
			assert.False(t, log.Summary.Interrupted)
			assert.Empty(t, log.Rejected)
			assert.Equal(t, received(server), logged(log))
			points, records := 0, 0
			for _, md := range server.Metrics() {
				points += md.DataPointCount()
			}
			for _, ld := range server.Logs() {
				records += ld.LogRecordCount()
			}
			assert.Len(t, log.Metrics, points)
			assert.Len(t, log.Logs, records)
			total := int64(0)
			for _, name := range scenario.Names() {
				assert.NotZero(t, log.Summary.Scenarios[name].Items[sentlog.SignalTraces], name)
				total += log.Summary.Scenarios[name].Items[sentlog.SignalTraces]
			}
			assert.Len(t, log.Spans, int(total))
			assert.Equal(t, protocol != "grpc", len(server.Paths()) > 0)
			assert.Contains(t, out.String(), "simulated")
		})
	}
}

// TestSimulatedClock repeats a run: the same log, but for the time of its end.
func TestSimulatedClock(t *testing.T) {
	server := newSink(t)
	record := func() *sentlog.Log {
		path := filepath.Join(t.TempDir(), "sent.jsonl")
		args := []string{
			"--endpoint", server.GRPC, "--scenario", "torchtel", "--start", "2026-01-31T12:00:00Z",
			"--seed", "3", "--rate", "200", "--duration", "200ms", "--sent", path,
		}
		require.Equal(t, exitOK, run(t.Context(), args, io.Discard, io.Discard))
		log, err := sentlog.ReadFile(path)
		require.NoError(t, err)
		return log
	}
	first, second := record(), record()
	assert.Equal(t, int64(40), first.Summary.Scenarios["torchtel"].Steps)
	assert.Equal(t, first.Spans, second.Spans)
	assert.Equal(t, first.Metrics, second.Metrics)
	assert.Equal(t, first.Summary.Scenarios, second.Summary.Scenarios)
	assert.Equal(t, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).UnixNano(), first.Header.StartUnixNano)
}

// TestInterrupted shows the clean end: what is open is ended and sent.
func TestInterrupted(t *testing.T) {
	server := newSink(t)
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	stop, cancel := context.WithCancel(t.Context())
	result := make(chan int, 1)
	go func() {
		result <- run(stop, []string{"--endpoint", server.GRPC, "--scenario", "torchtel", "--rate", "50", "--sent", path}, io.Discard, io.Discard)
	}()
	require.Eventually(t, func() bool { return len(server.Traces()) > 0 }, 20*time.Second, 5*time.Millisecond)
	cancel()
	assert.Equal(t, exitOK, <-result)
	log, err := sentlog.ReadFile(path)
	require.NoError(t, err)
	require.NotNil(t, log.Summary)
	assert.True(t, log.Summary.Interrupted)
	assert.Equal(t, received(server), logged(log))
	roots := 0
	for _, name := range logged(log) {
		if name == "train" {
			roots++
		}
	}
	assert.Equal(t, 2, roots, "both processes have ended their train span")
}

// TestRefused shows that nothing is logged that was not accepted whole.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer sink.Answer
		reason string
	}{
		{"for good", sink.Answer{Err: status.Error(codes.InvalidArgument, "no thanks"), Status: http.StatusBadRequest}, "no thanks"},
		{"in part", sink.Answer{Refused: 2, Message: "two are too old"}, "two are too old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := newSink(t)
			server.Then(test.answer)
			path := filepath.Join(t.TempDir(), "sent.jsonl")
			var out bytes.Buffer
			args := []string{"--endpoint", server.GRPC, "--scenario", "fx", "--rate", "2", "--duration", "500ms", "--sent", path}
			assert.Equal(t, exitRefused, run(t.Context(), args, &out, &out))
			assert.Contains(t, out.String(), "not accepted")
			assert.Contains(t, out.String(), test.reason)

			log, err := sentlog.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, log.Rejected, 1)
			assert.Contains(t, log.Rejected[0].Reason, test.reason)
			summary := log.Summary.Scenarios["fx"]
			assert.Equal(t, log.Rejected[0].Refused, summary.Refused[sentlog.SignalTraces])
			assert.Equal(t, map[string]int64{"unknown_service:python": 1}, summary.Truth.Batches, "the refused program's batch is not counted")
			for _, span := range log.Spans {
				assert.Equal(t, "unknown_service:python", span.Resource["service.name"])
			}
		})
	}
}

func TestUsage(t *testing.T) {
	var out, errs bytes.Buffer
	assert.Equal(t, exitUsage, run(t.Context(), []string{"--rate", "0"}, &out, &errs))
	assert.Contains(t, errs.String(), "--rate is 0")
	assert.Empty(t, out.String())
	assert.Equal(t, exitOK, run(t.Context(), []string{"-h"}, &out, &errs))
	assert.Contains(t, out.String(), "Usage: mlgen")
}

func TestSentLogCannotBeWritten(t *testing.T) {
	var errs bytes.Buffer
	args := []string{"--sent", filepath.Join(t.TempDir(), "no", "folder"), "--duration", "1s"}
	assert.Equal(t, exitRefused, run(t.Context(), args, io.Discard, &errs))
	assert.Contains(t, errs.String(), "--sent: ")
}

func TestProgressLine(t *testing.T) {
	results := newResults([]string{"fx"}, nil)
	results.step("fx")
	s, err := scenario.New("fx", scenario.Settings{Rate: 1, MetricsInterval: time.Second})
	require.NoError(t, err)
	for _, batch := range s.Step(time.Unix(1_800_000_000, 0)) {
		results.settle(batch, send.Partial{Refused: 1, Message: "why\x1b[31m"}, nil)
	}
	assert.Contains(t, results.line([]string{"fx"}, 3*time.Second), "mlgen (simulated) 3s | fx 1 steps")
	assert.Contains(t, results.line([]string{"fx"}, 3*time.Second), "2 NOT ACCEPTED")
	var out bytes.Buffer
	assert.Equal(t, int64(2), results.report(&out, []string{"fx"}))
	assert.NotContains(t, out.String(), "\x1b", "a server's words cannot drive the terminal")

	done := make(chan struct{})
	close(done)
	out.Reset()
	results.show(&out, []string{"fx"}, done)
	assert.Equal(t, "\r\x1b[2K", out.String())
}
