package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Texts as they are written, each with what is hard to tell from something else.
var texts = map[string]string{
	"traces": `traces 2026-01-02T03:04:05Z
resource {service.name="trainer"}
scope name="torchtel" version="1" {language="python"}
span trace=5a..1 id=5b..2 parent=5b..1 name="for=\"ward\" {" kind=server start=100ms end=1m0.5s status=error message="line\nline" traceState="a=b" {double=1.0, empty=@{}, int=1, "key, with={}"="", list=[1, "1", [], {a=true}], nan=@{"doubleValue":"NaN"}, raw=@{"bytesValue":"AQI="}, text="1"}
  event name="exception" time=1.4s {exception.type="OSError"}
  link trace=01020304050607080102030405060708 id=0102030405060708 {why="retry"}
span name="no ids" start=18446744073709551615
`,
	"metrics": `metrics 2026-01-02T03:04:05Z
resource schemaUrl="https://opentelemetry.io/schemas/1.36.0"
scope
metric name="a gauge" type=gauge unit="1"
"a gauge"{hw.id="GPU-a"} 5 time=10s
"a gauge"{hw.id="GPU-b"} 5.0 time=10s
"a gauge"{hw.id="GPU-c"} @{"doubleValue":"NaN"} time=10s
metric name="exponential" type=exponentialHistogram temporality=delta
exponential{} start=0s time=10s count=3 negative.offset=1 positive.bucketCounts=[1,2] positive.offset=-1 scale=2 sum=7.5 zeroCount=1
metric name="hist" type=histogram temporality=cumulative unit="s"
hist{a="b"} start=0s time=10s buckets=[1,0] bounds=[0.5] count=1 max=0.25 min=0.25 sum=0.25
  exemplar 0.25 trace=b..1 id=a..2 time=9s filteredAttributes={rank=1}
metric name="none"
metric name="sum" type=sum temporality=cumulative monotonic=true
metric name="summary" type=summary
summary{} time=10s count=2 quantileValues=[{"quantile":0.5,"value":3}] sum=6
`,
	"logs": `logs 2026-01-02T03:04:05Z
resource
scope
log time=0s observed=0s body="XID 31" eventName="xid" severityNumber=13 severityText="WARN" {nvidia.gpu.xid.code=31}
log body={a=[1]}
log
`,
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for signal, content := range texts {
		path := filepath.Join(t.TempDir(), signal)
		require.NoError(t, os.WriteFile(path, []byte("# A comment.\n\n"+content), 0o600))
		assert.Equal(t, signal, Signal(t, path))
		got := ""
		switch signal {
		case "traces":
			got = Traces(t, ReadTraces(t, path))
		case "metrics":
			got = Metrics(t, ReadMetrics(t, path))
		case "logs":
			got = Logs(t, ReadLogs(t, path))
		}
		assert.Empty(t, difference("# A comment.\n\n"+content, "# A comment.\n\n"+got))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		Compare(t, path, content)
	}
}

// What a component adds, removes and changes is marked in the file of what it
// gets, and what is marked as added is not read.
func TestChanges(t *testing.T) {
	before := `logs 2026-01-02T03:04:05Z
resource {a=1, a=1}
scope name="old"
log time=0s body="secret" {"+plus"=true, k=1}
log observed=1s
`
	after := `logs 2026-01-02T03:04:05Z
resource {a=1}
scope name="new"
log time=0s body="[text]" {k=2, n=1, "+plus"=true}
log trace=1.. observed=1s {z=1}
log body="new"
resource
scope
log body="new too"
`
	expected := `logs 2026-01-02T03:04:05Z
resource {a=1, -a=1}
scope -name="old" +name="new"
log time=0s -body="secret" +body="[text]" {"+plus"=true, -k=1, +k=2, +n=1}
log +trace=1.. observed=1s {+z=1}
+log body="new"
+resource
+scope
+log body="new too"
`
	from, to, path := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "expected")
	require.NoError(t, os.WriteFile(from, []byte(before), 0o600))
	require.NoError(t, os.WriteFile(to, []byte(after), 0o600))
	require.NoError(t, os.WriteFile(path, []byte("# A comment.\n"+expected), 0o600))
	assert.Empty(t, difference(before, Logs(t, ReadLogs(t, path))))
	CompareLogs(t, path, ReadLogs(t, to))
}

func TestChangesThatHaveNoMark(t *testing.T) {
	for _, test := range []struct{ before, after, expected string }{
		{"resource", "", "1 resourceMetrics became 0"},
		{"resource\nscope\nmetric type=sum\nm{} -1", "resource\nscope\nmetric type=sum\nm{} -2", "the value -1 became -2"},
	} {
		var sides []object
		for _, side := range []string{test.before, test.after} {
			raw, err := read(metrics.signal, "metrics\n"+side, "+")
			require.NoError(t, err)
			tree, err := decode(raw)
			require.NoError(t, err)
			sides = append(sides, tree)
		}
		_, err := changed(sides[0], sides[1])
		assert.ErrorContains(t, err, test.expected)
	}
}

func TestMetricsWithoutTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	require.NoError(t, os.WriteFile(path, []byte("metrics 2026-01-02T03:04:05Z\nresource\nscope\nmetric name=\"m\" type=gauge\nm{time=\"1s\"} 5 start=0s time=10s\n"), 0o600))
	assert.Equal(t, "metrics\nresource\nscope\nmetric name=\"m\" type=gauge\nm{time=\"1s\"} 5\n", MetricsWithoutTimes(t, ReadMetrics(t, path)))
}

func TestLinesThatCannotBeRead(t *testing.T) {
	for line, expected := range map[string]string{
		"metrics":                                  `line 1: the signal is "metrics", not "traces"`,
		"traces yesterday":                         "line 1: parsing time",
		"traces\nspan":                             `line 2: no place for "span"`,
		"traces\nresource\nhw.energy{} 5":          `line 3: no place for "hw.energy"`,
		"traces\nresource {a=1":                    `line 2: "}" is missing before ""`,
		"traces\nresource {a=b}":                   "line 2: invalid character",
		"traces\nresource {a}":                     `line 2: "a}" has no value`,
		"traces\nresource schemaUrl":               `line 2: "schemaUrl" has no value`,
		"traces\nresource\nscope\nspan kind=best":  `line 4: kind: "best" is none of`,
		"traces\nresource\nscope\nspan start=soon": "line 4: startTimeUnixNano: time: invalid duration",
	} {
		_, err := read(traces.signal, line, "+")
		assert.ErrorContains(t, err, expected, line)
	}
}

// The heading of a page is not a comment.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("# Series\n\nText.\n"), 0o600))
	File(t, path, "# Series\n\nText.\n")
}

func TestDifference(t *testing.T) {
	for _, test := range []struct{ want, got, expected string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\nb\n", "b\nc\n", "- a\n- b\n+ c\n"},
		{"a=1 b=22\n", "a=1 b=3\n", "- a=1 b=22\n+ a=1 b=3\n  which is \"3\\n\", not \"22\\n\", at 6\n"},
		{"a\nb\n", "b\na\n", "the same lines in another order:\nb\na\n"},
	} {
		assert.Equal(t, test.expected, difference(test.want, test.got))
	}
}
