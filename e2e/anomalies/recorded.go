package anomalies

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// recordings is the folder with what the clients' own programs have sent.
const recordings = "../../connector/mlmetricsconnector/testdata/recordings"

// afterRecording is how long a collector lives after the last request of a
// recording, at most what the timeouts for silence take.
const afterRecording = 4 * time.Minute

// replay sends a recording at the pace at which it was recorded, and returns what is
// reported of it. It must run in a synctest bubble.
func replay(ctx context.Context, folder string) ([]*sighting, int, error) {
	file, err := os.ReadFile(filepath.Join(folder, "traces.json")) //nolint:gosec // the tests name the folder
	if err != nil {
		return nil, 0, err
	}
	w, err := newWorld(ctx, 1, 15*time.Second)
	if err != nil {
		return nil, 0, err
	}
	var ahead time.Duration
	var last time.Time
	for line := range bytes.Lines(file) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return nil, 0, fmt.Errorf("recording %s: %w", folder, err)
		}
		sent := newest(td)
		if last.IsZero() {
			ahead = time.Until(sent)
		} else if sent.After(last) {
			w.live(sent.Sub(last))
		}
		last = sent
		shift(td, ahead)
		w.spans += td.SpanCount()
		w.collector.consume(ctx, scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
	}
	w.live(afterRecording)
	seen := w.collector.reported()
	if err := w.collector.stop(ctx); err != nil {
		return nil, 0, fmt.Errorf("stop the collector: %w", err)
	}
	return seen, w.spans, w.collector.failed()
}

// newest returns the end of the span that ended last.
func newest(td ptrace.Traces) time.Time {
	var at pcommon.Timestamp
	for span := range spansOf(td) {
		at = max(at, span.EndTimestamp())
	}
	return at.AsTime()
}

// shift moves all times back.
func shift(td ptrace.Traces, by time.Duration) {
	move := func(at pcommon.Timestamp) pcommon.Timestamp { return at - pcommon.Timestamp(by) }
	for span := range spansOf(td) {
		span.SetStartTimestamp(move(span.StartTimestamp()))
		span.SetEndTimestamp(move(span.EndTimestamp()))
		for _, e := range span.Events().All() {
			e.SetTimestamp(move(e.Timestamp()))
		}
	}
}

func spansOf(td ptrace.Traces) func(yield func(ptrace.Span) bool) {
	return func(yield func(ptrace.Span) bool) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !yield(span) {
						return
					}
				}
			}
		}
	}
}
