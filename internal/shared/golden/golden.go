// Package golden shows OTLP as text for the expected files of tests: one line
// for each series, span, event, link and log record.
//
//	metrics 2026-01-02T03:04:05Z
//	resource {hw.id="GPU-a", hw.type="gpu"}
//	scope name="gpureceiver"
//	metric name="hw.energy" type=sum temporality=cumulative monotonic=true unit="J"
//	hw.energy{hw.id="GPU-a"} 12.5 start=0s time=10s
//
//	traces 2026-01-02T03:04:05Z
//	resource {service.name="trainer"}
//	scope name="torchtel"
//	span trace=5a..1 id=5b..2 parent=5b..1 name="forward" kind=internal start=100ms end=1.5s {ml.phase="forward"}
//	  event name="exception" time=1.4s {exception.type="OSError"}
//
// The first line names the signal and the time that the others' times are
// offsets from. A value is JSON; an attribute's value has the type that it
// shows (1 is an int, 1.0 a double); ".." in an identifier stands for the zeros
// that fill it. Attributes are sorted by key, and of metrics everything is
// sorted: order says nothing there. Only the descriptions of metrics are left
// out, which metadata.yaml has. What Traces, Metrics and Logs write, the Read
// functions read; they skip empty lines and those that begin with #.
package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Update is set by the flag -update: Compare then writes the files.
var Update = flag.Bool("update", false, "write the expected files from what the tests get")

// Traces returns the text of traces, in their order.
func Traces(t testing.TB, td ptrace.Traces) string {
	t.Helper()
	raw, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return text(t, traces, raw, true)
}

// Metrics returns the text of metrics, sorted.
func Metrics(t testing.TB, md pmetric.Metrics) string {
	t.Helper()
	return ofMetrics(t, md, true)
}

// MetricsWithoutTimes returns the same without times, for what takes them from
// a clock that the test does not set.
func MetricsWithoutTimes(t testing.TB, md pmetric.Metrics) string {
	t.Helper()
	return ofMetrics(t, md, false)
}

func ofMetrics(t testing.TB, md pmetric.Metrics, times bool) string {
	t.Helper()
	raw, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return text(t, metrics, raw, times)
}

// Logs returns the text of logs, in their order.
func Logs(t testing.TB, ld plog.Logs) string {
	t.Helper()
	raw, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return text(t, logs, raw, true)
}

func text(t testing.TB, s signal, raw []byte, times bool) string {
	t.Helper()
	require.True(t, utf8.Valid(raw), "a string that is not UTF-8 has no text that could be told from others'")
	request, err := decode(raw)
	require.NoError(t, err)
	if !times {
		removeTimes(request)
	}
	return write(s, request)
}

// ReadTraces returns the traces of a file.
func ReadTraces(t testing.TB, path string) ptrace.Traces {
	t.Helper()
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(requestOf(t, traces, path))
	require.NoError(t, err, path)
	return td
}

// ReadMetrics returns the metrics of a file.
func ReadMetrics(t testing.TB, path string) pmetric.Metrics {
	t.Helper()
	md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(requestOf(t, metrics, path))
	require.NoError(t, err, path)
	return md
}

// ReadLogs returns the log records of a file.
func ReadLogs(t testing.TB, path string) plog.Logs {
	t.Helper()
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(requestOf(t, logs, path))
	require.NoError(t, err, path)
	return ld
}

// Signal returns the signal that a file has: "traces", "metrics" or "logs".
func Signal(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path) // #nosec G304 -- a file of a test
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" && word[0] != '#' {
			return word
		}
	}
	return ""
}

func requestOf(t testing.TB, s signal, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path) // #nosec G304 -- a file of a test
	require.NoError(t, err)
	raw, err := read(s, string(content))
	require.NoError(t, err, path)
	return raw
}

// Compare fails the test if a file does not have this text, and says which
// lines differ. With -update it writes the file.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path) // #nosec G304 -- a file of a test
	require.NoError(t, err, "-update writes it")
	if lines := difference(string(want), got); lines != "" {
		t.Errorf("%s has the lines with -, the test got those with +; -update writes the file:\n%s", path, lines)
	}
}

// difference returns the lines that only one of two texts has.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	surplus := map[string]int{}
	for line := range strings.Lines(got) {
		surplus[line]++
	}
	var b strings.Builder
	for line := range strings.Lines(want) {
		if surplus[line]--; surplus[line] < 0 {
			fmt.Fprint(&b, "- ", line)
		}
	}
	for line := range strings.Lines(got) {
		if surplus[line] > 0 {
			surplus[line]--
			fmt.Fprint(&b, "+ ", line)
		}
	}
	if b.Len() == 0 {
		return "the same lines in another order:\n" + got
	}
	return b.String()
}
