package sentlog

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// everyKind is a map with every kind of value.
func everyKind(to pcommon.Map) {
	to.PutStr("text", "5 <&> \u2028 'quoted'")
	to.PutBool("bool", true)
	to.PutInt("int", 5)
	to.PutInt("big", math.MinInt64)
	to.PutDouble("double", 5)
	to.PutDouble("small", 1e-300)
	to.PutDouble("infinite", math.Inf(-1))
	to.PutEmpty("empty")
	to.PutEmptyBytes("bytes").FromRaw([]byte{0, 1, 255})
	list := to.PutEmptySlice("list")
	list.AppendEmpty().SetInt(1)
	list.AppendEmpty().SetDouble(1)
	list.AppendEmpty().SetEmptySlice().AppendEmpty().SetStr("nested")
	to.PutEmptyMap("map").PutStr("bytes", "a member named like a tag")
}

func TestRoundTrip(t *testing.T) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	everyKind(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("scope")
	ss.Scope().SetVersion("1")
	span := ss.Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{15: 1})
	span.SetSpanID(pcommon.SpanID{7: 2})
	span.SetParentSpanID(pcommon.SpanID{7: 3})
	span.SetName("name")
	span.SetKind(ptrace.SpanKindClient)
	span.SetStartTimestamp(1_700_000_000_123_456_789)
	span.SetEndTimestamp(1_700_000_001_123_456_789)
	span.SetDroppedAttributesCount(3)
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage("bad")
	everyKind(span.Attributes())
	event := span.Events().AppendEmpty()
	event.SetName("event")
	everyKind(event.Attributes())

	md := pmetric.NewMetrics()
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	sum := sm.Metrics().AppendEmpty()
	sum.SetName("sum")
	sum.SetUnit("1")
	sum.SetEmptySum().SetIsMonotonic(true)
	sum.Sum().DataPoints().AppendEmpty().SetIntValue(7)
	gauge := sm.Metrics().AppendEmpty()
	gauge.SetName("gauge")
	gauge.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(0.5)
	histogram := sm.Metrics().AppendEmpty()
	histogram.SetName("histogram")
	point := histogram.SetEmptyHistogram().DataPoints().AppendEmpty()
	point.SetCount(3)
	point.SetSum(6)
	point.ExplicitBounds().FromRaw([]float64{1})
	point.BucketCounts().FromRaw([]uint64{1, 2})

	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr("body")
	record.SetSeverityNumber(plog.SeverityNumberWarn)
	record.SetSeverityText("WARN")

	summary := &Summary{EndUnixNano: 9, Scenarios: map[string]*ScenarioSummary{"fx": {Steps: 2, Items: map[string]int64{SignalTraces: 1}}}}
	summary.Scenarios["fx"].Truth.CountTokens("role", "input", 5)
	entries := []Entry{{Type: TypeHeader, Header: &Header{Version: Version, Seed: -1, Scenarios: []string{"fx"}, Rate: 0.5}}}
	entries = append(entries, SpanEntries("fx", td)...)
	entries = append(entries, MetricEntries("fx", md)...)
	entries = append(entries, LogEntries("fx", ld)...)
	entries = append(entries,
		Entry{Type: TypeRejected, Rejected: &Rejected{Scenario: "fx", Signal: SignalLogs, Items: 2, Refused: 1, Reason: "why"}},
		Entry{Type: TypeSummary, Summary: summary},
	)

	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, NewWriter(file).Write(entries...))
	require.NoError(t, file.Close())

	log, err := ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, entries[0].Header, log.Header)
	require.Len(t, log.Spans, 1)
	assert.Equal(t, entries[1].Span, log.Spans[0])
	assert.IsType(t, int64(0), log.Spans[0].Attributes["int"])
	assert.IsType(t, float64(0), log.Spans[0].Attributes["double"])
	require.Len(t, log.Metrics, 3)
	assert.Equal(t, entries[2].Metric, log.Metrics[0])
	assert.Equal(t, entries[3].Metric, log.Metrics[1])
	assert.Equal(t, entries[4].Metric, log.Metrics[2])
	require.Len(t, log.Logs, 1)
	assert.Equal(t, entries[5].Log, log.Logs[0])
	assert.Equal(t, []*Rejected{entries[6].Rejected}, log.Rejected)
	assert.Equal(t, summary, log.Summary)
}

func TestNaN(t *testing.T) {
	raw, err := Attributes{"v": math.NaN()}.MarshalJSON()
	require.NoError(t, err)
	var back Attributes
	require.NoError(t, back.UnmarshalJSON(raw))
	assert.True(t, math.IsNaN(back["v"].(float64)))
}

func TestReaderRefuses(t *testing.T) {
	for _, test := range []struct{ name, input, want string }{
		{"no JSON", "{", "line 1: unexpected end of JSON input"},
		{"another type", `{"type":"other"}`, `line 1: unknown entry type "other"`},
		{"no member", `{"type":"span"}`, `line 1: entry of type "span" has no member "span"`},
		{"two members", `{"type":"span","span":{},"log":{}}`, `line 1: entry of type "span" has a member "log"`},
		{"another version", "\n" + `{"type":"header","header":{"version":2}}`, "line 2: format version 2, want 1"},
		{"a bad value", `{"type":"span","span":{"attributes":{"a":{"b":1}}}}`, `attribute "a": unknown value object "b"`},
		{"a bad double", `{"type":"span","span":{"attributes":{"a":{"double":"x"}}}}`, `"double" is "x"`},
		{"too big an integer", `{"type":"span","span":{"attributes":{"a":99999999999999999999}}}`, "value out of range"},
		{"deep lists", `{"type":"span","span":{"attributes":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}}`, "nest too deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readAll(strings.NewReader(test.input))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestCutLog reads the log of a generator that was killed.
func TestCutLog(t *testing.T) {
	log, err := readAll(strings.NewReader(`{"type":"header","header":{"version":1}}` + "\n" + `{"type":"span","sp`))
	require.ErrorContains(t, err, "line 2")
	assert.NotNil(t, log.Header)
	assert.Nil(t, log.Summary)
	_, err = ReadFile(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

type brokenDisk struct{ written bytes.Buffer }

var errDisk = errors.New("disk full")

func (b *brokenDisk) Write(p []byte) (int, error) {
	if b.written.Len() > 0 {
		return 0, errDisk
	}
	return b.written.Write(p)
}

func TestWriterKeepsItsError(t *testing.T) {
	w := NewWriter(&brokenDisk{})
	entry := Entry{Type: TypeRejected, Rejected: &Rejected{}}
	require.NoError(t, w.Write(entry))
	require.ErrorIs(t, w.Write(entry), errDisk)
	require.ErrorIs(t, w.Write(), errDisk)
}

func TestTruthMerge(t *testing.T) {
	var a, b Truth
	Count(&a.Steps, "0", 1)
	Count(&b.Steps, "0", 2)
	Count(&b.Epochs, "1", 3)
	b.CountTokens("role", "input", 4)
	for range 700 {
		a.Fail(Failure{})
		b.Fail(Failure{})
	}
	a.Merge(b)
	assert.Equal(t, map[string]int64{"0": 3}, a.Steps)
	assert.Equal(t, map[string]int64{"1": 3}, a.Epochs)
	assert.Equal(t, int64(4), a.Tokens["role"]["input"])
	assert.Equal(t, int64(1400), a.FailureCount)
	assert.Len(t, a.Failures, 1000, "the list is bounded")
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"type":"header","header":{"version":1,"seed":3}}` + "\n" + `{"type":"summary","summary":{"scenarios":{"fx":null}}}`))
	f.Add([]byte(`{"type":"span","span":{"attributes":{"a":1,"b":1.0,"c":{"map":{"d":[null,{"bytes":"AA=="}]}}}}}`))
	f.Add([]byte(`{"type":"metric","metric":{"value":1e400}}`))
	f.Add([]byte("\x00\xff\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := newReader(bytes.NewReader(data))
		for {
			entry, err := reader.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				break
			}
			// What was read can be written, and then says the same.
			var out bytes.Buffer
			if err := NewWriter(&out).Write(entry); err != nil {
				t.Fatalf("cannot write what was read: %v", err)
			}
			again, err := newReader(&out).next()
			if err != nil {
				t.Fatalf("cannot read what was written: %v", err)
			}
			if entry.Type != again.Type {
				t.Fatalf("type %q became %q", entry.Type, again.Type)
			}
			if entry.Span != nil && len(entry.Span.Attributes) != len(again.Span.Attributes) {
				t.Fatalf("%d attributes became %d", len(entry.Span.Attributes), len(again.Span.Attributes))
			}
		}
		if _, err := readAll(bytes.NewReader(data)); err == nil {
			t.Fatal("readAll accepts what next refuses")
		}
	})
}
