package reprogenprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// TestSummariesKeepNobodyWaiting: redaction takes long, so it is done with
// nothing locked that failures wait for, and once for each text.
func TestSummariesKeepNobodyWaiting(t *testing.T) {
	l, err := newLedger(RateLimitConfig{PerMinute: 10, Burst: 20}, 100, fairness.NewStandings())
	require.NoError(t, err)
	looked := map[string]int{}
	l.redact = func(s string) string {
		looked[s]++
		if assert.True(t, l.mu.TryLock(), "failures wait for the redaction of %q", s) {
			l.mu.Unlock()
		}
		return "clean " + s
	}
	see := func(service string) {
		l.admit(occurrence{fingerprint: "f", service: service, version: "1", rank: "0", counted: true,
			variant: failure.Variant{ID: "v", Text: "cpu"}}, time.Unix(1, 0))
	}
	see("a")
	_, changed := l.takeCounts()
	require.True(t, changed)
	see("a")
	see("b")
	groups, _ := l.takeCounts()
	require.Len(t, groups, 1)
	assert.EqualValues(t, 3, groups[0].Count)
	assert.Equal(t, []string{"clean a", "clean b"}, groups[0].Services)
	assert.Equal(t, []string{"clean 1"}, groups[0].Versions)
	assert.Equal(t, []string{"clean 0"}, groups[0].Ranks)
	assert.Equal(t, []store.Variant{{ID: "v", Text: "clean cpu", Count: 3}}, groups[0].Variants)
	g := l.wrote(&failure.Failure{Fingerprint: "f", Variant: failure.Variant{ID: "v", Text: "cpu"}}, "n", store.Group{Services: []string{"old"}})
	assert.Equal(t, []string{"clean a", "clean b", "clean old"}, g.Services)
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "1": 1, "0": 1, "cpu": 1, "old": 1}, looked)
}
