package mlguardprocessor

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// parts keeps what it gets, and refuses from the request with the number refuses on.
type parts struct {
	consumertest.Consumer
	all       []ptrace.Traces
	refuses   int
	telemetry component.TelemetrySettings
}

func (p *parts) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	if p.refuses > 0 && len(p.all)+1 >= p.refuses {
		return errors.New("sending queue is full")
	}
	p.all = append(p.all, td)
	return nil
}

// sent sends traces of had bytes through ml_guard/out with a max_size, as several exporters
// get them: read-only.
func (p *parts) sent(t *testing.T, had, limit int, whenRefused string, td ptrace.Traces) error {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	out := cfg.Out.GetOrInsertDefault()
	assert.Equal(t, 4_190_000, out.MaxSize)
	out.MaxSize, out.WhenRefused = limit, whenRefused
	require.NoError(t, out.Validate())
	p.Consumer = consumertest.NewNop()
	set := processortest.NewNopSettings(metadata.Type)
	if p.telemetry.MeterProvider != nil {
		set.TelemetrySettings = p.telemetry
	}
	guard, err := NewFactory().CreateTraces(t.Context(), set, cfg, p)
	require.NoError(t, err)
	started(t, guard)
	td.MarkReadOnly()
	return guard.ConsumeTraces(sender.WithSize(t.Context(), had), td)
}

// large returns spans of three resources with two scopes each.
func large(spans int, ofResource string) ptrace.Traces {
	td := ptrace.NewTraces()
	for r := range 3 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl("resource/" + strconv.Itoa(r))
		rs.Resource().Attributes().PutStr("service.name", strconv.Itoa(r)+ofResource)
		for s := range 2 {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.SetSchemaUrl("scope/" + strconv.Itoa(s))
			ss.Scope().SetName(strconv.Itoa(s))
			for i := range spans {
				ss.Spans().AppendEmpty().SetName(strconv.Itoa(i) + strings.Repeat("x", 100))
			}
		}
	}
	return td
}

// spansIn lists each span with its resource and scope.
func spansIn(all ...ptrace.Traces) (names []string) {
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					names = append(names, strings.Join([]string{rs.SchemaUrl(), service.Str(), ss.SchemaUrl(), ss.Scope().Name(), span.Name()}, " "))
				}
			}
		}
	}
	return names
}

func TestLargeRequestsPassInParts(t *testing.T) {
	td := large(70, "")
	var sizer ptrace.ProtoMarshaler
	for _, limit := range []int{1, 200, 1000, 30_000, sizer.TracesSize(td) - 1} {
		var got parts
		require.NoError(t, got.sent(t, 0, limit, Drop, large(70, "")))
		assert.Equal(t, spansIn(td), spansIn(got.all...), limit)
		assert.Greater(t, len(got.all), 1)
		for _, part := range got.all {
			assert.True(t, sizer.TracesSize(part) <= limit || part.SpanCount() == 1, "%d spans, limit %d", part.SpanCount(), limit)
			assert.Positive(t, part.ResourceSpans().At(0).ScopeSpans().At(0).Spans().Len())
		}
	}
}

// A request passes as it is if it is small enough or was so when it arrived, if there is no
// limit, and if its parts would be about as large.
func TestRequestsThatPassWhole(t *testing.T) {
	var sizer ptrace.ProtoMarshaler
	for name, tt := range map[string]struct {
		td         ptrace.Traces
		had, limit int
	}{
		"small enough":        {large(70, ""), 0, sizer.TracesSize(large(70, ""))},
		"no limit":            {large(70, ""), 0, 0},
		"resources":           {large(1, strings.Repeat("r", 10_000)), 0, 15_000},
		"nothing":             {ptrace.NewTraces(), 0, 1},
		"small at its coming": {large(70, ""), 1000, 32_000},
	} {
		t.Run(name, func(t *testing.T) {
			var got parts
			require.NoError(t, got.sent(t, tt.had, tt.limit, Refuse, tt.td))
			require.Len(t, got.all, 1)
			assert.Equal(t, tt.td, got.all[0])
		})
	}
}

// Of a request that is refused in the middle, the sender learns it, the rest is not sent, and
// all counts as refused; or only what is refused is dropped.
func TestAPartIsRefused(t *testing.T) {
	for whenRefused, want := range map[string]string{Refuse: "otelcol_processor_ml_guard_items_refused 420", Drop: "otelcol_processor_ml_guard_items_dropped 210"} {
		telemetry := componenttest.NewTelemetry()
		t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
		got := parts{refuses: 2, telemetry: telemetry.NewTelemetrySettings()}
		err := got.sent(t, 30_000, 30_000, whenRefused, large(70, ""))
		assert.Equal(t, whenRefused == Refuse, err != nil)
		require.Len(t, got.all, 1)
		assert.Equal(t, 210, got.all[0].SpanCount())
		name, _, _ := strings.Cut(want, " ")
		metric, err := telemetry.GetMetric(name)
		require.NoError(t, err)
		points := metric.Data.(metricdata.Sum[int64]).DataPoints
		require.Len(t, points, 1)
		assert.Equal(t, want, name+" "+strconv.FormatInt(points[0].Value, 10))
	}
}

func TestMaxSizeIsNotNegative(t *testing.T) {
	assert.EqualError(t, (&OutConfig{WhenRefused: Drop, MaxSize: -1}).Validate(), `"max_size" is -1; it must be 0 or a number of bytes`)
}

// FuzzParts: whatever the request and the limit, each span arrives once, in order.
func FuzzParts(f *testing.F) {
	encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(large(1, ""))
	require.NoError(f, err)
	f.Add(encoded, uint16(1))
	f.Add(encoded, uint16(300))
	f.Fuzz(func(t *testing.T, encoded []byte, limit uint16) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(encoded)
		if err != nil || td.SpanCount() > 1000 {
			t.Skip("not traces, or too many")
		}
		var got parts
		whole := ptrace.NewTraces()
		td.CopyTo(whole)
		require.NoError(t, got.sent(t, 0, int(limit), Refuse, td))
		assert.Equal(t, spansIn(whole), spansIn(got.all...))
	})
}
