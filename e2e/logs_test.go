package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// logKey tells one log record from another.
type logKey struct {
	trace, span, body string
	time              int64
}

// awaitLogs waits until the back end has every log record that was sent, each
// exactly as often as it was sent, and returns all that it has.
func awaitLogs(t *testing.T, sink *harness.Sink, sent []*sentlog.LogEntry) []plog.LogRecord {
	t.Helper()
	require.NotEmpty(t, sent)
	wanted := map[logKey]int{}
	for _, entry := range sent {
		wanted[logKey{entry.TraceID, entry.SpanID, entry.Body, entry.TimeUnixNano}]++
	}
	var records []plog.LogRecord
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		records = sink.LogRecords()
		got := map[logKey]int{}
		for _, record := range records {
			switch record.EventName() {
			case mlattr.GPUXIDEvent, mlattr.EventChange, mlattr.Problem:
				continue // The collector's own, which mlgen does not send.
			}
			got[logKey{record.TraceID().String(), record.SpanID().String(), record.Body().AsString(), int64(record.Timestamp())}]++
		}
		different := 0
		for key, count := range wanted {
			if got[key] != count {
				different++
			}
		}
		assert.Zero(c, different, "log records that arrived another number of times than they were sent; %d arrived of %d", len(records), len(sent))
		assert.Len(c, got, len(wanted))
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	return records
}

// testLogs expects TuFT's log records to have the keys of the trace that they
// were written in, where these were known by then: a record that is ahead of
// its spans cannot have them.
func testLogs(t *testing.T, j *job) {
	records := awaitLogs(t, j.logs, j.sent.Logs)

	traces := harness.ByTrace(j.sent.Spans)
	keyed := 0
	for _, record := range records {
		run, ok := record.Attributes().Get("ml.training_run.id")
		if !ok {
			continue
		}
		keyed++
		values := map[string]bool{}
		for _, span := range traces[record.TraceID().String()] {
			if value, ok := canonicalFacts(span)["ml.training_run.id"]; ok {
				values[fmt.Sprint(value)] = true
			}
		}
		assert.True(t, values[run.AsString()], "record %q has the run %s, its trace %v", record.Body().AsString(), run.AsString(), values)
	}
	assert.Positive(t, keyed, "no log record has the training run of its trace")
}
