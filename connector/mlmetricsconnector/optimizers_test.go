package mlmetricsconnector

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestStepsOfManyRanks has 10,000 ranks take steps with two optimizers, of which each is
// a request of its own.
func TestStepsOfManyRanks(t *testing.T) {
	next := new(consumertest.MetricsSink)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.FlushInterval, cfg.MaxSeries = time.Hour, 1_000_000
	c := start(t, cfg, next)
	const ranks, steps = 10_000, 3
	began := time.Now().Add(-time.Minute)
	for n := range steps {
		for optimizer := range 2 {
			for rank := range ranks {
				td := ptrace.NewTraces()
				span := addSpan(td, "run", 1, uint16(4*n+2*optimizer+1))         // #nosec G115 -- small
				span.SetTraceID(pcommon.TraceID{1, byte(rank >> 8), byte(rank)}) // #nosec G115 -- small
				td.ResourceSpans().At(0).Resource().Attributes().PutInt("ml.rank.global", int64(rank))
				end := began.Add(time.Duration(n)*time.Second + time.Duration(optimizer)*100*time.Millisecond)
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-10 * time.Millisecond)))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
				span.Attributes().PutStr("ml.phase", "optimizer")
				if optimizer == 0 {
					forward := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
					span.CopyTo(forward)
					forward.SetSpanID(pcommon.SpanID{byte(n), 9, byte(rank >> 8), byte(rank)}) // #nosec G115 -- small
					forward.SetEndTimestamp(pcommon.NewTimestampFromTime(end.Add(-20 * time.Millisecond)))
					forward.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-50 * time.Millisecond)))
					forward.Attributes().PutStr("ml.phase", "forward")
				}
				require.NoError(t, c.ConsumeTraces(t.Context(), td))
			}
		}
	}
	require.NoError(t, c.Shutdown(t.Context()))
	// Sums are cumulative, and on a slow machine there are several of a series.
	newest, counted := map[string]int64{}, int64(0)
	for _, md := range next.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			of := fmt.Sprint(rm.Resource().Attributes().AsRaw())
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == "ml.steps" {
					for _, p := range m.Sum().DataPoints().All() {
						key := of + fmt.Sprint(p.Attributes().AsRaw())
						counted += p.IntValue() - newest[key]
						newest[key] = p.IntValue()
					}
				}
			}
		}
	}
	assert.EqualValues(t, ranks*steps, counted)
}

// TestRecordedOptimizers counts the steps of training loops whose optimizers are
// not one after each forward pass. testdata/optimizers/record.py had TorchTel
// trace them: four steps each.
func TestRecordedOptimizers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "optimizers", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var spans []ptrace.Traces
		for request := range bytes.Lines(text) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
			require.NoError(t, err)
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "r")
			spans = append(spans, singly(td)...)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			next := new(consumertest.MetricsSink)
			c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
			for _, request := range spans {
				require.NoError(t, c.ConsumeTraces(t.Context(), request))
			}
			require.NoError(t, c.Shutdown(t.Context()))
			md := lastOf(t, next)
			assert.Equal(t, int64(4), counters(md)["ml.steps"])
			assert.Equal(t, uint64(4), timedSteps(t, md))
			assert.Equal(t, "ended", state(t, md))
		})
		t.Run(filepath.Base(file)+" in any order", func(t *testing.T) {
			for range 20 {
				rand.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
				next := new(consumertest.MetricsSink)
				c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
				request := ptrace.NewTraces()
				for i, td := range spans {
					td.ResourceSpans().At(0).CopyTo(request.ResourceSpans().AppendEmpty())
					if i == len(spans)/2 {
						require.NoError(t, c.ConsumeTraces(t.Context(), request))
						request = ptrace.NewTraces()
					}
				}
				require.NoError(t, c.ConsumeTraces(t.Context(), request))
				require.NoError(t, c.Shutdown(t.Context()))
				// Optimizers whose forwards come later may be taken for too many
				// steps, until others follow.
				assert.GreaterOrEqual(t, counters(lastOf(t, next))["ml.steps"], int64(4))
			}
		})
	}
}
