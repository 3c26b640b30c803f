package mlmetricsconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// 60 new runs a minute, each of 20 s, for a quarter of an hour: those that have ended make room, so that
// each has series, and runs that train are not replaced.
func TestShortRunsMakeRoom(t *testing.T) {
	for name, last := range map[string]string{"the span of the training": "train", "a root span": "", "nothing": "none"} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			id := uint32(0)
			send := func(run int, phase string, took time.Duration, root bool) {
				td := ptrace.NewTraces()
				id++
				span := addSpan(td, fmt.Sprint("run-", run), 1, 1)
				span.SetSpanID(pcommon.SpanID{byte(id), byte(id >> 8), byte(id >> 16), 1})
				span.SetTraceID(pcommon.TraceID{byte(run), byte(run >> 8), 1})
				if !root {
					span.SetParentSpanID(pcommon.SpanID{9})
				}
				if phase != "" {
					span.Attributes().PutStr("ml.phase", phase)
				}
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(-took)))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock))
				require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
			}
			const minutes = 15
			for second := range minutes * 60 {
				r.clock = r.clock.Add(time.Second)
				for run := max(0, second-20); run <= second; run++ {
					send(run, "optimizer", time.Second, false)
				}
				if ends := second - 20; ends >= 0 && last != "none" {
					send(ends, last, 22*time.Second, true)
				}
				if second%60 == 0 {
					send(10_000, "optimizer", time.Second, false)
				}
				if second%15 == 0 {
					require.NoError(t, r.connector.emit(t.Context(), false))
				}
			}
			for _, n := range r.connector.telemetry.notices(r.connector.cfg, "") {
				assert.NotEqual(t, "Updates of new runs", n.What, "%d", n.Count)
			}
			steps := sums(r.after(t, 0), false)
			assert.InDelta(t, minutes, steps["ml.steps{ml.run.id=run-10000}"], 0, "a run that goes on is not replaced")
			for run := minutes*60 - 100; run < minutes*60-25; run++ {
				assert.InDelta(t, 21, steps[fmt.Sprintf("ml.steps{ml.run.id=run-%d}", run)], 0)
			}
		})
	}
}
