package intake_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
)

// TestQuietRunOutlivesRequests: requests of 87 KB and of 400 KB, from the address of a
// quiet run and from another one, take neither the run nor its failure from the page.
func TestQuietRunOutlivesRequests(t *testing.T) {
	for _, tt := range []struct {
		address     string
		runs, bytes int
	}{
		{"127.0.0.1", 1_100, 87_000}, {"127.0.0.1", 5_000, 400_000}, {"192.0.2.66", 5_000, 400_000},
	} {
		t.Run(fmt.Sprint(tt.bytes, " bytes from ", tt.address), func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			store := pagetest.NewStore(input.Settings{Now: func() time.Time { return now }})
			reader := intake.New(store)
			add := func(td ptrace.Traces, service, run, failure string) {
				rs := td.ResourceSpans().AppendEmpty()
				rs.Resource().Attributes().PutStr("service.name", service)
				rs.Resource().Attributes().PutStr("ml.run.id", run)
				span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				span.SetTraceID(pcommon.TraceID{1})
				span.SetSpanID(pcommon.SpanID{1})
				span.Attributes().PutStr("ml.phase", "f")
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
				if failure != "" {
					span.Status().SetCode(ptrace.StatusCodeError)
					span.Attributes().PutStr("error.type", failure)
				}
			}
			consume := func(address string, td ptrace.Traces) {
				info := client.Info{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 40_000}}
				reader.ConsumeTraces(client.NewContext(context.Background(), info), td)
			}
			for i := range 60 {
				td := ptrace.NewTraces()
				add(td, "trainer", "quiet", map[bool]string{true: "QuietError"}[i == 59])
				consume("127.0.0.1", td)
				now = now.Add(10 * time.Second)
			}
			now = now.Add(20 * time.Minute)
			td := ptrace.NewTraces()
			for i := range tt.runs {
				add(td, fmt.Sprintf("s%d", i), strconv.Itoa(i), fmt.Sprintf("E%d", i))
			}
			raw, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, len(raw), tt.bytes)
			consume(tt.address, td)
			now = now.Add(2 * time.Second)

			state := store.State()
			quiet := 0
			for _, r := range state.Runs {
				if r.ID == "quiet" {
					quiet++
				}
			}
			assert.Equal(t, 1, quiet)
			for _, f := range state.Failures {
				if f.Class == "QuietError" {
					quiet++
				}
			}
			assert.Equal(t, 2, quiet)
		})
	}
}
