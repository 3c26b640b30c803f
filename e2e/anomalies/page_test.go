package anomalies

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"42s": 42 * time.Second, "5m": 5 * time.Minute, "5m8s": 5*time.Minute + 8*time.Second,
		"1h30m": 90 * time.Minute, "36h": 36 * time.Hour, "a day": 24 * time.Hour, "7 days": 168 * time.Hour,
	} {
		assert.Equal(t, want, span(d))
	}
}

func TestQuantile(t *testing.T) {
	assert.Zero(t, quantile(nil, 0.5))
	times := []time.Duration{4, 1, 3, 2}
	assert.Equal(t, time.Duration(3), quantile(times, 0.5))
	assert.Equal(t, time.Duration(4), quantile(times, 0.9))
}

// A limit is refuted by a count above it: after a week by any, before only by one
// that chance does not explain.
func TestRefuted(t *testing.T) {
	page, ticket := limits[0], limits[1]
	of := func(runs int, lived time.Duration, kinds ...string) *health {
		h := &health{runs: runs, lived: lived}
		for _, kind := range kinds {
			h.untrue = append(h.untrue, &sighting{subject: subject{kind: kind}})
		}
		return h
	}
	week := 7 * 24 * time.Hour
	assert.False(t, of(300, week, mlattr.ProblemLooksHung).refuted(page), "one a week")
	assert.True(t, of(300, week, mlattr.ProblemLooksHung, mlattr.ProblemGPUFailed).refuted(page))
	assert.False(t, of(300, week, mlattr.ProblemSlow, mlattr.ProblemSlow).refuted(page), "tickets")
	day := 16 * time.Hour
	assert.True(t, of(100, day, mlattr.ProblemLooksHung).refuted(page), "0.03 are allowed")
	assert.False(t, of(100, day).refuted(page))
	assert.False(t, of(100, day, mlattr.ProblemSlow).refuted(ticket), "0.44 are allowed, and one may be chance")
	assert.True(t, of(100, day, mlattr.ProblemSlow, mlattr.ProblemSlow, mlattr.ProblemSlow).refuted(ticket))
}

// The page has a row for each kind of problem, and for all that is planted. Only make
// anomalies UPDATE=1 writes the whole page, which takes hours.
func TestThePageHasAllKinds(t *testing.T) {
	page, err := os.ReadFile("../../docs/evidence/anomalies.md")
	require.NoError(t, err)
	kinds := map[string]bool{}
	for _, p := range plans {
		kinds[p.kind] = true
		row := fmt.Sprintf("\n| %s | %s | %s |", p.kind, p.system, p.strength)
		assert.True(t, bytes.Contains(page, []byte(row)), row)
	}
	for _, kind := range mlattr.Problems {
		assert.True(t, kinds[kind.Name], "nothing sets %s off", kind.Name)
	}
}
