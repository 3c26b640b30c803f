package group

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

func admit(c *Counters, f *failure.Failure, span failure.SpanKey, now time.Time) Decision {
	return c.Admit(&incident.Incident{Failure: f, Span: span}, false, func(uint64) bool { return true }, now)
}

// TestSummariesKeepNobodyWaiting: redaction takes long, so it is done with
// nothing locked that failures wait for.
func TestSummariesKeepNobodyWaiting(t *testing.T) {
	l := NewCounters(Config{PerMinute: 10, Burst: 20, MaxGroups: 100, Capture: true}, share.NewHistory())
	l.redact = func(s string) string {
		if assert.True(t, l.mu.TryLock(), "failures wait for the redaction of %q", s) {
			l.mu.Unlock()
		}
		return "clean " + s
	}
	see := func(service string) {
		admit(l, &failure.Failure{Fingerprint: "f", Service: service, Version: "1", Rank: "0",
			Variant: failure.Variant{ID: "v", Text: "cpu"}}, failure.SpanKey{}, time.Unix(1, 0))
	}
	see("a")
	written := l.Written(&failure.Failure{Fingerprint: "f", Variant: failure.Variant{ID: "v", Text: "cpu"}}, "n")
	assert.Equal(t, []string{"clean a"}, written.Services)
	see("a")
	see("b")
	groups := l.TakeChanged()
	require.Len(t, groups, 1)
	assert.EqualValues(t, 3, groups[0].Count)
	assert.Equal(t, []string{"clean a", "clean b"}, groups[0].Services)
	assert.Equal(t, []string{"clean 1"}, groups[0].Versions)
	assert.Equal(t, []string{"clean 0"}, groups[0].Ranks)
	assert.Equal(t, []store.Variant{{ID: "v", Text: "clean cpu", Count: 3, Exemplar: "n"}}, groups[0].Variants)
}

// TestCountersForgetTheOldest: the number of groups in memory is bounded, and those that
// have a folder stay.
func TestCountersForgetTheOldest(t *testing.T) {
	const maxGroups = 1_000
	l := NewCounters(Config{PerMinute: 1_000_000, Burst: 1_000_000, MaxGroups: maxGroups, Capture: true}, share.NewHistory())
	now := time.Unix(1_700_000_000, 0)
	see := func(fingerprint string, trace int) Verdict {
		return admit(l, &failure.Failure{Fingerprint: fingerprint, Service: fingerprint},
			failure.SpanKey{Trace: pcommon.TraceID{1, byte(trace), byte(trace >> 8), byte(trace >> 16)}}, now).Verdict
	}
	require.Equal(t, Wanted, see("first", 0))
	l.Written(&failure.Failure{Fingerprint: "first"}, "artifact-1")
	see("first", 1)
	for i := range 2 * maxGroups {
		require.Equal(t, Wanted, see(strconv.Itoa(i), i+10))
		l.Suppressed(&failure.Failure{Fingerprint: strconv.Itoa(i)})
	}
	assert.LessOrEqual(t, l.Len(), maxGroups)
	assert.GreaterOrEqual(t, l.Len(), maxGroups-maxGroups/16)
	see("first", 5)
	dirty := l.TakeChanged()
	require.Len(t, dirty, 1, "groups without a folder have nothing to write")
	assert.EqualValues(t, 3, dirty[0].Count)
	assert.Equal(t, []string{"artifact-1"}, dirty[0].Exemplars)
	assert.Empty(t, l.TakeChanged())

	l.Changed("first")
	assert.Len(t, l.TakeChanged(), 1)
	l.Removed("first", "artifact-1")
	assert.Empty(t, l.TakeChanged(), "its folder is gone")
	assert.Equal(t, Wanted, see("first", 6), "and it is wanted again")
}

// TestGroupOfAnEarlierTime goes on with the counts that the directory had at start.
func TestGroupOfAnEarlierTime(t *testing.T) {
	l := NewCounters(Config{PerMinute: 60, Burst: 10, MaxGroups: 10, Capture: true}, share.NewHistory())
	now := time.Unix(1_700_000_000, 0)
	l.Load([]store.Group{{Fingerprint: "f", Count: 7, Suppressed: 2, FirstSeen: now.Add(-time.Hour), LastSeen: now.Add(-time.Minute),
		Services: []string{"s", "t"}, Exemplars: []string{"old"}}})
	require.Equal(t, Wanted, admit(l, &failure.Failure{Fingerprint: "f", Service: "s"}, failure.SpanKey{}, now).Verdict)
	got := l.Written(&failure.Failure{Fingerprint: "f", Error: failure.Error{Message: "password=hunter2"}}, "new")
	assert.EqualValues(t, 8, got.Count)
	assert.EqualValues(t, 2, got.Suppressed)
	assert.Equal(t, now.Add(-time.Hour), got.FirstSeen)
	assert.Equal(t, now, got.LastSeen)
	assert.Equal(t, []string{"s", "t"}, got.Services)
	assert.Equal(t, []string{"old", "new"}, got.Exemplars)
	assert.NotContains(t, got.Message, "hunter2")
}

// TestSeenIsBounded: however many failures come, the keys by which they are
// remembered are bounded.
func TestSeenIsBounded(t *testing.T) {
	l := NewCounters(Config{PerMinute: 60, Burst: 10, MaxGroups: 10, Capture: true}, share.NewHistory())
	for i := range 2 * maxSeen {
		admit(l, &failure.Failure{Fingerprint: "f"}, failure.SpanKey{Trace: pcommon.TraceID{1, byte(i), byte(i >> 8), byte(i >> 16)}}, time.Unix(1, 0))
	}
	assert.Len(t, l.seen.All(), maxSeen)
}
