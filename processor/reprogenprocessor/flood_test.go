package reprogenprocessor

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// TestUniqueMessages: 10 000 errors that are all unlike fill no disk and no
// memory, and all of them are passed on.
func TestUniqueMessages(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 10, 20
	cfg.limits.groups = 1_000
	w := newWorld(t, cfg)
	for i := range 100 {
		td := ptrace.NewTraces()
		for j := range 100 {
			n := i*100 + j
			c := failedCall{errorType: "E", message: "word" + letters(n)}
			c.appendTo(td).SetTraceID(pcommon.TraceID{1, byte(n), byte(n >> 8)})
		}
		w.send(td)
	}
	assert.Equal(t, 10, w.traces.Shared.incidents.Sizes().Traces, "those that wait")
	w.pass(10 * time.Second)
	assert.Zero(t, w.traces.Shared.incidents.Sizes())
	assert.Equal(t, 10_000, w.spans.SpanCount())
	assert.EqualValues(t, 10_000, w.count("candidates"))
	assert.Len(t, artifacts(t, cfg), 10, "half of the burst for one service")
	assert.Equal(t, map[string]int64{"rate_limited": 9_990}, dropped(t, w.tel))
	assert.InDelta(t, 1_000, w.traces.Shared.groups.Len(), 1_000/16+1)
	assert.LessOrEqual(t, w.traces.Shared.groups.Len(), 1_000)
}

// letters spells a number without digits, which a template would take out.
func letters(n int) string {
	var b strings.Builder
	for range 6 {
		b.WriteByte(byte('g' + n%10))
		n /= 10
	}
	return b.String()
}

// TestVeryLongTrace: of 50 000 spans of one trace, at once or in pieces, 500
// are kept, those above the failure among them.
func TestVeryLongTrace(t *testing.T) {
	const size = 50_000
	for name, pieces := range map[string]int{"at once": 1, "in pieces": 50} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			leaf := mean()
			leaf.name, leaf.span, leaf.parent = "leaf", 3, 2
			for p := range pieces {
				td := ptrace.NewTraces()
				if p == 0 {
					leaf.appendTo(td)
					failedCall{name: "root", span: 1}.appendTo(td).Status().SetCode(ptrace.StatusCodeUnset)
					failedCall{name: "middle", span: 2, parent: 1}.appendTo(td).Status().SetCode(ptrace.StatusCodeUnset)
				}
				rs := td.ResourceSpans().AppendEmpty()
				all := rs.ScopeSpans().AppendEmpty().Spans()
				all.EnsureCapacity(size / pieces)
				for i := range size / pieces {
					s := all.AppendEmpty()
					s.SetTraceID(pcommon.TraceID{15: 1})
					s.SetSpanID(pcommon.SpanID{1, byte(p), byte(i), byte(i >> 8), byte(i >> 16)})
					s.SetParentSpanID(pcommon.SpanID{7: 1})
					s.SetName("other")
				}
				w.send(td)
			}
			assert.LessOrEqual(t, w.traces.Shared.incidents.Sizes().Bytes, int64(300<<10), "500 spans, each of some 530 bytes")
			w.pass(10 * time.Second)
			got := readTrace(t, onlyArtifact(t, w.cfg))
			assert.Equal(t, []string{"middle", "root"}, names(got.Ancestors))
			assert.True(t, got.Complete)
			assert.True(t, got.Truncated)
			assert.LessOrEqual(t, len(got.Others), 498)
			assert.Equal(t, size+3, w.spans.SpanCount())
		})
	}
}

// TestStrangeIDs: ids of zeros, equal ids and circles end nowhere.
func TestStrangeIDs(t *testing.T) {
	zero := func(td ptrace.Traces) ptrace.Traces {
		for _, s := range spans(td) {
			s.SetTraceID(pcommon.TraceID{})
			s.SetSpanID(pcommon.SpanID{})
		}
		return td
	}
	circle := ptrace.NewTraces()
	for i := range 40 {
		failedCall{name: fmt.Sprintf("s%d", i), span: byte(i + 1), parent: byte((i+1)%40 + 1), message: "x"}.appendTo(circle)
	}
	unset := ptrace.NewTraces()
	mean().appendTo(unset).SetParentSpanID(pcommon.SpanID{7: 2})
	for _, c := range []failedCall{{span: 2, parent: 3}, {span: 3, parent: 2}} {
		c.appendTo(unset).Status().SetCode(ptrace.StatusCodeUnset)
	}
	for name, tc := range map[string]struct {
		batches []ptrace.Traces
		want    int
	}{
		"zero ids":                    {[]ptrace.Traces{zero(mean().traces())}, 1},
		"zero ids of unlike errors":   {[]ptrace.Traces{zero(mean().traces()), zero(unlike(1).traces())}, 2},
		"zero ids of equal errors":    {[]ptrace.Traces{zero(mean().traces()), zero(mean().variant(1).traces())}, 1},
		"a circle of 40":              {[]ptrace.Traces{circle}, 1},
		"ancestors that are a circle": {[]ptrace.Traces{unset}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			for _, td := range tc.batches {
				w.send(td)
			}
			w.pass(10 * time.Second)
			w.pass(time.Hour)
			assert.Len(t, artifacts(t, w.cfg), tc.want)
			assert.Zero(t, w.traces.Shared.incidents.Sizes().Bytes)
			assert.Zero(t, w.traces.Shared.incidents.Sizes().Reserved)
		})
	}
}

// TestStrangeTimes: names and ages come from the collector's clock.
func TestStrangeTimes(t *testing.T) {
	for name, at := range map[string]pcommon.Timestamp{"the far future": math.MaxUint64, "the beginning": 0, "next year": 1_900_000_000e9} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			td := mean().traces()
			s := spans(td)[0]
			s.SetStartTimestamp(at)
			s.SetEndTimestamp(at)
			s.Events().At(0).SetTimestamp(at)
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "r")
			td.ResourceSpans().At(0).Resource().Attributes().PutInt("ml.rank.global", 1)
			w.send(td)
			w.pass(10 * time.Second)
			assert.True(t, strings.HasPrefix(filepath.Base(onlyArtifact(t, w.cfg)), "20261120T120000Z-"))
			g := groups(t, w.cfg)
			assert.Equal(t, 2026, g[0].LastSeen.Year())
		})
	}
}

// TestTmpThatIsInTheWay: somebody has put files where the next temporary ones
// would be. They are left alone.
func TestTmpThatIsInTheWay(t *testing.T) {
	w := newWorld(t, testConfig(t))
	outside := filepath.Join(t.TempDir(), "outside")
	for i := range 10 {
		tmp := filepath.Join(w.cfg.Directory, fmt.Sprintf(".tmp-%d", i))
		if i%2 == 0 {
			require.NoError(t, os.Symlink(outside, tmp))
		} else {
			write(t, tmp, "mine")
		}
	}
	w.span(mean())
	w.pass(0)
	onlyArtifact(t, w.cfg)
	assert.NoFileExists(t, outside)
	assert.Equal(t, "mine", text(t, w.cfg.Directory, ".tmp-1"))
}

// TestLongServiceName: a service of 5 000 characters is cut, everywhere.
func TestLongServiceName(t *testing.T) {
	w := newWorld(t, testConfig(t))
	c := mean()
	c.service = strings.Repeat("s", 5_000)
	w.span(c)
	w.pass(0)
	require.Len(t, groups(t, w.cfg), 1)
	assert.Len(t, groups(t, w.cfg)[0].Services[0], snapshot.MaxValue)
}

// TestDiskThatFails: whatever the disk says, nothing but telemetry comes out
// of the pipelines, and no error.
func TestDiskThatFails(t *testing.T) {
	d := newStuckDisk()
	d.err = os.ErrPermission
	close(d.free)
	p, sink, tel := startOn(t, testConfig(t), d)
	for i := range 20 {
		require.NoError(t, p.ConsumeTraces(t.Context(), unlike(i).traces()))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 20, sink.SpanCount())
	assert.Equal(t, map[string]int64{"write_error": 20}, dropped(t, tel))
	assert.Zero(t, p.Shared.incidents.Sizes().Bytes)
}

// FuzzConsumeLogs: whatever comes in goes on, changed by the two attributes at
// most.
func FuzzConsumeLogs(f *testing.F) {
	var marshaler plog.ProtoMarshaler
	for _, ld := range []plog.Logs{plog.NewLogs(), logged().logs(plog.SeverityNumberError), logged().logs(plog.SeverityNumberWarn), hung("run", mlattr.ProblemBegan)} {
		b, err := marshaler.MarshalLogs(ld)
		require.NoError(f, err)
		f.Add(b, "ValueError", "x", int32(17), uint16(0))
		f.Add(b, "ValueError", "x", int32(17), uint16(3000))
	}
	f.Add([]byte{}, "ray.exceptions.RayTaskError(E)", "ray::f() (pid=1)\nE: x", int32(-5), uint16(64))
	dir := filepath.Join(f.TempDir(), "reproductions")
	f.Fuzz(func(t *testing.T, b []byte, errorType, message string, severity int32, levels uint16) {
		var unmarshaler plog.ProtoUnmarshaler
		ld, err := unmarshaler.UnmarshalLogs(b)
		if err != nil {
			ld = plog.NewLogs()
		}
		failedCall{service: message, errorType: errorType, message: message, stack: message,
			attrs: map[string]any{message: errorType, "repro.payload": message}}.logs(plog.SeverityNumber(severity)).
			ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
		for _, rl := range ld.ResourceLogs().All() {
			otlpnest.Attributes(rl.Resource().Attributes(), int(levels))
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					otlpnest.Value(r.Body(), int(levels))
					if levels%2 == 1 {
						otlpnest.Attributes(r.Attributes(), int(levels))
					}
				}
			}
		}
		before := plog.NewLogs()
		ld.CopyTo(before)
		cfg := testConfig(t)
		cfg.Directory = dir
		cfg.Retention.MaxArtifacts = 5
		w := newWorld(t, cfg)
		require.NoError(t, w.logs.ConsumeLogs(t.Context(), ld))
		w.shutdown()
		got := w.records.AllLogs()[0]
		for _, one := range []plog.Logs{got, before} {
			for _, rl := range one.ResourceLogs().All() {
				for _, sl := range rl.ScopeLogs().All() {
					for _, r := range sl.LogRecords().All() {
						r.Attributes().Remove("repro.artifact.path")
						r.Attributes().Remove("repro.artifact.fingerprint")
					}
				}
			}
		}
		want, err := (&plog.JSONMarshaler{}).MarshalLogs(before)
		require.NoError(t, err)
		have, err := (&plog.JSONMarshaler{}).MarshalLogs(got)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have))
		require.LessOrEqual(t, len(artifacts(t, cfg)), 5)
	})
}
