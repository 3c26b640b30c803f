package mlmetricsconnector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A backlog, and a clock that is set back by an hour, change neither steps nor the time by
// state, and a clock that is set ahead no step.
func TestABacklog(t *testing.T) {
	const steps = 120
	synctest.Test(t, func(t *testing.T) {
		// as returns the counts if spans arrive so long after their ends, and have so wrong times.
		as := func(late func(at time.Duration) time.Duration, wrong func(at time.Duration) time.Duration) map[string]float64 {
			l := lives{kept: &memory{}}
			l.start(t)
			began := time.Now()
			for _, td := range spansOfWork(began, steps) {
				span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
				ends := span.EndTimestamp().AsTime().Sub(began)
				time.Sleep(time.Until(began.Add(ends + late(ends))))
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(span.StartTimestamp().AsTime().Add(wrong(ends))))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(span.EndTimestamp().AsTime().Add(wrong(ends))))
				require.NoError(t, l.traces.ConsumeTraces(t.Context(), td))
			}
			time.Sleep(time.Minute)
			l.stop(t)
			all := sums(lastOf(t, l.sink), false)
			for key := range all {
				if !strings.HasPrefix(key, "ml.steps") && !strings.HasPrefix(key, "ml.run.time") {
					delete(all, key)
				}
			}
			return all
		}
		none := func(time.Duration) time.Duration { return 0 }
		from := func(after, by time.Duration) func(time.Duration) time.Duration {
			return func(at time.Duration) time.Duration {
				if at > after {
					return by
				}
				return 0
			}
		}
		want := as(none, none)
		require.InDelta(t, steps, want["ml.steps{ml.rank.global=0,ml.run.id=run-a}"], 0)
		for name, got := range map[string]map[string]float64{
			"1 h back":   as(none, from(40*time.Second, -time.Hour)),
			"20 s ahead": as(none, from(40*time.Second, 20*time.Second)),
			// From 30 s on all is held back for 10 minutes, and then comes at once.
			"a backlog": as(func(at time.Duration) time.Duration {
				if at < 30*time.Second {
					return 0
				}
				return 10*time.Minute - at
			}, none),
		} {
			for key := range want {
				if name == "20 s ahead" && strings.Contains(key, "state=other") {
					continue
				}
				most := 1.5
				if strings.HasPrefix(key, "ml.steps") {
					most = 0
				}
				assert.InDelta(t, want[key], got[key], most, "%s %s", name, key)
			}
			for key := range got {
				assert.Contains(t, want, key, "%s %v", name, got[key])
			}
		}
	})
}
