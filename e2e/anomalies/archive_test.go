package anomalies

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	archive      = flag.String("archive", "", "archived spans, a request a line")
	oldThreshold = flag.String("old", "", "thresholds before")
	newThreshold = flag.String("new", "", "thresholds after")
	verdictsFile = flag.String("verdicts", "", "verdicts")
	recordsFile  = flag.String("records", "", "records of problems, a request a line")
)

// TestThresholds replays an archive with two sets of thresholds, for make thresholds.
func TestThresholds(t *testing.T) {
	if *archive == "" {
		t.Skip("no archive is named")
	}
	require.NoError(t, thresholds(t, os.Stdout, *archive, *oldThreshold, *newThreshold, *verdictsFile, *recordsFile))
}

// thresholds replays an archive twice, and writes how the two differ.
func thresholds(t *testing.T, to io.Writer, archive, before, after, verdictsFile, recordsFile string) (err error) {
	var replayed [2][]*sighting
	for i, text := range []string{before, after} {
		set, err := readThresholds(text)
		if err != nil {
			return err
		}
		synctest.Test(t, func(t *testing.T) { replayed[i], err = replayArchive(t.Context(), archive, set) })
		if err != nil {
			return err
		}
	}
	var verdicts []verdict
	records := map[string]recordedProblem{}
	if verdictsFile != "" {
		if verdicts, err = readVerdicts(verdictsFile); err != nil {
			return err
		}
	}
	if recordsFile != "" {
		if records, err = readRecords(recordsFile); err != nil {
			return err
		}
	}
	return compare(to, replayed[0], replayed[1], verdicts, records)
}

// A training whose steps take 8 % longer after an hour, and one whose steps take 30 % longer:
// with a threshold of 1.2 only that of the second is reported, and the verdicts say that the
// first one was wrong.
func TestThresholdsAreReplayed(t *testing.T) {
	folder := t.TempDir()
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	var lines bytes.Buffer
	for step := range 1440 {
		td := ptrace.NewTraces()
		for i, times := range []float64{1.08, 1.3} {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", "trainer")
			rs.Resource().Attributes().PutStr("ml.run.id", fmt.Sprint("run-", i))
			rs.Resource().Attributes().PutStr("host.name", "h1")
			rs.Resource().Attributes().PutInt("ml.rank.global", 0)
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetName("optimizer")
			span.SetTraceID(pcommon.TraceID{1, byte(i)})
			span.SetSpanID(pcommon.SpanID{1, byte(i), byte(step >> 8), byte(step)})
			span.Attributes().PutStr("ml.phase", "optimizer")
			at := begin.Add(time.Duration(step)*5*time.Second + time.Duration(step*7919%100)*time.Millisecond)
			if step > 720 {
				at = at.Add(time.Duration(float64(step-720) * (times - 1) * float64(5*time.Second)))
			}
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-time.Second)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
		}
		line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	spans := write("replay.jsonl", lines.Bytes())
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "trainer")
	for i, id := range []string{"a1", "b2"} {
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName("ml.problem")
		require.NoError(t, record.Attributes().FromRaw(map[string]any{
			"ml.problem": "slow", "ml.problem.id": id, "ml.run.id": fmt.Sprint("run-", i), "ml.problem.onset": float64(begin.Add(time.Hour).Unix()),
		}))
	}
	logs, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	records := write("records.jsonl", logs)
	said := write("verdicts", []byte("slow a1 right\nslow a1 wrong a longer sequence\nslow b2 right\nslow c3 wrong\nslow d4 perhaps\n"))

	var out bytes.Buffer
	require.NoError(t, thresholds(t, &out, spans, "", "slow=1.2", said, records))
	assert.Equal(t, `problem  severity  old  new
slow     ticket    2    1

verdict  problem  old        new
wrong    slow a1  reported   not reported
right    slow b2  reported   reported
wrong    slow c3  no record  no record
`, out.String())

	require.ErrorContains(t, thresholds(t, io.Discard, spans, "slow=1.1,failing=0.1", "slow=1.01", "", ""), "must be between 1.035 and 100")
	require.ErrorContains(t, thresholds(t, io.Discard, spans, "slow", "", "", ""), `"slow" is no threshold`)
	require.ErrorContains(t, thresholds(t, io.Discard, said, "", "", "", ""), "verdicts, line 1: ")
}
