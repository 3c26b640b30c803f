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
// The first line names the signal and the time that all other times are offsets
// from. Values are JSON. An attribute shows its type: 1 is an int, 1.0 a double.
// ".." in an identifier stands for zeros. Attributes are sorted by key, as their
// order says nothing; of metrics all is sorted. The descriptions of metrics are
// left out: metadata.yaml has them.
//
// A file can also hold what a component gets together with what it makes of it,
// as CompareTraces, CompareMetrics and CompareLogs write it: a + before a line,
// a field or an attribute that is added, a - before what is removed. Their order
// is the file's.
//
//	span trace=5a..1 id=5b..2 -name="step" +name="[text]" {loss=0.5, +ml.loss=0.5}
//
// The Read functions read what the file's component gets. They skip empty lines
// and comments, which begin with #.
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

// codec turns a signal into OTLP's JSON and back.
type codec[T any] struct {
	signal
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
}

var (
	traces = codec[ptrace.Traces]{
		signal{"traces", "resourceSpans", "scopeSpans", "spans", "span"},
		(&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces,
	}
	metrics = codec[pmetric.Metrics]{
		signal{"metrics", "resourceMetrics", "scopeMetrics", "metrics", "metric"},
		(&pmetric.JSONMarshaler{}).MarshalMetrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics,
	}
	logs = codec[plog.Logs]{
		signal{"logs", "resourceLogs", "scopeLogs", "logRecords", "log"},
		(&plog.JSONMarshaler{}).MarshalLogs, (&plog.JSONUnmarshaler{}).UnmarshalLogs,
	}
)

// Traces returns the text of traces, in their order.
func Traces(t testing.TB, td ptrace.Traces) string {
	t.Helper()
	return write(traces.signal, traces.tree(t, td), false)
}

// Metrics returns the text of metrics, sorted.
func Metrics(t testing.TB, md pmetric.Metrics) string {
	t.Helper()
	return write(metrics.signal, metrics.tree(t, md), false)
}

// MetricsWithoutTimes returns the same without times, for what takes them from
// a clock that the test does not set.
func MetricsWithoutTimes(t testing.TB, md pmetric.Metrics) string {
	t.Helper()
	tree := metrics.tree(t, md)
	removeTimes(tree)
	return write(metrics.signal, tree, false)
}

// Logs returns the text of logs, in their order.
func Logs(t testing.TB, ld plog.Logs) string {
	t.Helper()
	return write(logs.signal, logs.tree(t, ld), false)
}

// ReadTraces returns the traces of a file.
func ReadTraces(t testing.TB, path string) ptrace.Traces { t.Helper(); return traces.read(t, path) }

// ReadMetrics returns the metrics of a file.
func ReadMetrics(t testing.TB, path string) pmetric.Metrics { t.Helper(); return metrics.read(t, path) }

// ReadLogs returns the log records of a file.
func ReadLogs(t testing.TB, path string) plog.Logs { t.Helper(); return logs.read(t, path) }

// CompareTraces fails the test unless got is what a file says of its traces:
// what a component adds has a + before it there, what it removes a -. With
// -update it writes the file.
func CompareTraces(t testing.TB, path string, got ptrace.Traces) {
	t.Helper()
	traces.compare(t, path, got)
}

// CompareMetrics does the same with metrics.
func CompareMetrics(t testing.TB, path string, got pmetric.Metrics) {
	t.Helper()
	metrics.compare(t, path, got)
}

// CompareLogs does the same with log records.
func CompareLogs(t testing.TB, path string, got plog.Logs) { t.Helper(); logs.compare(t, path, got) }

func (c codec[T]) tree(t testing.TB, data T) object {
	t.Helper()
	raw, err := c.marshal(data)
	require.NoError(t, err)
	require.True(t, utf8.Valid(raw), "a string that is not UTF-8 has no text that could be told from others'")
	tree, err := decode(raw)
	require.NoError(t, err)
	return tree
}

func (c codec[T]) read(t testing.TB, path string) T {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	raw, err := read(c.signal, string(content), "+")
	require.NoError(t, err, path)
	data, err := c.unmarshal(raw)
	require.NoError(t, err, path)
	return data
}

func (c codec[T]) compare(t testing.TB, path string, got T) {
	t.Helper()
	marked, err := changed(c.tree(t, c.read(t, path)), c.tree(t, got))
	require.NoError(t, err, path)
	Compare(t, path, write(c.signal, marked, true))
}

// Signal returns the signal that a file has: "traces", "metrics" or "logs".
func Signal(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" && word[0] != '#' {
			return word
		}
	}
	return ""
}

// Compare fails the test unless a file has this text, behind the comments that
// it begins with. With -update it writes the file.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	want := content(t, path)
	comments := ""
	for strings.HasPrefix(want, "#") {
		line, rest, _ := strings.Cut(want, "\n")
		comments, want = comments+line+"\n", rest
	}
	compare(t, path, comments, want, got)
}

// File fails the test unless a generated file has this text. With -update it writes
// the file.
func File(t testing.TB, path, got string) {
	t.Helper()
	compare(t, path, "", content(t, path), got)
}

// content returns what a file has. With -update the file need not exist.
func content(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if !*Update {
		require.NoError(t, err, "-update writes it")
	}
	return string(text)
}

func compare(t testing.TB, path, comments, want, got string) {
	t.Helper()
	switch lines := difference(want, got); {
	case lines == "":
	case *Update:
		require.NoError(t, os.WriteFile(path, []byte(comments+got), 0o600))
	default:
		t.Errorf("%s has the lines with -, the test got those with +; -update writes the file:\n%s", path, lines)
	}
}

// difference returns the lines that only one of two texts has. Where they are
// as many on both sides it says where each differs from its counterpart.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	surplus := map[string]int{}
	for line := range strings.Lines(got) {
		surplus[line]++
	}
	var gone, come []string
	for line := range strings.Lines(want) {
		if surplus[line]--; surplus[line] < 0 {
			gone = append(gone, line)
		}
	}
	for line := range strings.Lines(got) {
		if surplus[line] > 0 {
			surplus[line]--
			come = append(come, line)
		}
	}
	var b strings.Builder
	for _, line := range gone {
		b.WriteString("- " + line)
	}
	for i, line := range come {
		b.WriteString("+ " + line)
		if len(gone) == len(come) {
			at := 0
			for at < min(len(line), len(gone[i])) && line[at] == gone[i][at] {
				at++
			}
			fmt.Fprintf(&b, "  which is %.40q, not %.40q, at %d\n", line[at:], gone[i][at:], at)
		}
	}
	if b.Len() == 0 {
		return "the same lines in another order:\n" + got
	}
	return b.String()
}
