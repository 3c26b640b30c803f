package mlenrichprocessor

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadatatest"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestSelfTelemetry(t *testing.T) {
	p := startDefault(t)
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "taskweaver.otlp.tracer")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("Session.send_message")
	span.SetTraceID([16]byte{1})
	span.SetSpanID([8]byte{1})
	span.Attributes().PutStr("session_id", "has space")
	span.Attributes().PutStr("round_id", "r")
	span.Attributes().PutInt("prompt_size", 3)
	p.sendTraces(t, td)

	id := attribute.String("processor", metadata.Type.String())
	metadatatest.AssertEqualProcessorMlEnrichRatesSkipped(t, p.telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(id, attribute.String("reason", "missing_tokens"))},
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorMlEnrichValuesRejected(t, p.telemetry, []metricdata.DataPoint[int64]{
		{Value: 2, Attributes: attribute.NewSet(id)}, // for the session and for the conversation
	}, metricdatatest.IgnoreTimestamp())
	var want []metricdata.DataPoint[int64]
	for index, n := range map[string]int64{"answers": 0, "epochs": 0, "gpus": 0, "joins": 0, "requests": 0, "resources": 1, "runs": 0, "spans": 1, "streams": 0, "traces": 1, "trainers": 0, "usage": 0} {
		want = append(want, metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(id, attribute.String("index", index))})
	}
	metadatatest.AssertEqualProcessorMlEnrichStoreEntries(t, p.telemetry, want, metricdatatest.IgnoreTimestamp())
}
