package mlmetricsconnector

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// TestInventedRunsTakeNoSeries: a run that has trained for ten minutes and is silent keeps
// its series, whatever runs come once: under other services, under its own, and from
// elsewhere.
func TestInventedRunsTakeNoSeries(t *testing.T) {
	for name, tt := range map[string]struct {
		address string
		service func(i int) string
	}{
		"of other services": {"127.0.0.1", func(i int) string { return "s" + strconv.Itoa(i) }},
		"of its service":    {"127.0.0.1", func(int) string { return "trainer" }},
		"from elsewhere":    {"192.0.2.66", func(i int) string { return "s" + strconv.Itoa(i) }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			r := newRun(t, cfg)
			sent := byte(0)
			send := func(address, service, run string) {
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				rs.Resource().Attributes().PutStr(mlattr.ServiceName, service)
				rs.Resource().Attributes().PutStr(mlattr.RunID, run)
				span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				sent++
				span.SetTraceID(pcommon.TraceID([]byte(run + "----------------")[:16]))
				span.SetSpanID([8]byte{1, sent})
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(-time.Second)))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock))
				span.Attributes().PutStr(mlattr.Phase, "optimizer")
				info := client.Info{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 40_000}}
				require.NoError(t, r.connector.ConsumeTraces(client.NewContext(context.Background(), info), td))
			}
			for range 60 {
				send("127.0.0.1", "trainer", "quiet")
				r.clock = r.clock.Add(10 * time.Second)
			}
			r.clock = r.clock.Add(20 * time.Minute)
			r.after(t, 0)
			for i := range 10 * cfg.MaxRuns {
				send(tt.address, tt.service(i), "x"+strconv.Itoa(i))
			}
			r.clock = r.clock.Add(time.Minute)
			steps := int64(0)
			for m := range metricsOf(r.after(t, 0)) {
				if m.Name() != "ml.steps" {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					if run, ok := p.Attributes().Get(mlattr.RunID); ok && run.Str() == "quiet" && !p.Flags().NoRecordedValue() {
						steps = p.IntValue()
					}
				}
			}
			assert.Equal(t, int64(60), steps)
		})
	}
}
