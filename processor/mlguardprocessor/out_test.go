package mlguardprocessor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadatatest"
)

// backEnd is what stands behind an ml_guard. It refuses with an error, if there is one.
type backEnd struct {
	consumertest.Consumer
	refusal error
	// items are what it took.
	items int
}

func (b *backEnd) take(items int) error {
	if b.refusal == nil {
		b.items += items
	}
	return b.refusal
}

func (b *backEnd) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	return b.take(td.SpanCount())
}

func (b *backEnd) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	return b.take(md.DataPointCount())
}

func (b *backEnd) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	return b.take(ld.LogRecordCount())
}

// signals make an ml_guard of a signal, and a function that sends it two items.
var signals = map[string]func(*testing.T, processor.Settings, *Config, consumertest.Consumer) (component.Component, func(context.Context) error){
	"traces": func(t *testing.T, set processor.Settings, cfg *Config, next consumertest.Consumer) (component.Component, func(context.Context) error) {
		p, err := NewFactory().CreateTraces(t.Context(), set, cfg, next)
		require.NoError(t, err)
		return p, func(ctx context.Context) error {
			td := ptrace.NewTraces()
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			spans.AppendEmpty()
			spans.AppendEmpty()
			return p.ConsumeTraces(ctx, td)
		}
	},
	"metrics": func(t *testing.T, set processor.Settings, cfg *Config, next consumertest.Consumer) (component.Component, func(context.Context) error) {
		p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		return p, func(ctx context.Context) error {
			md := pmetric.NewMetrics()
			points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
			points.AppendEmpty().SetIntValue(1)
			points.AppendEmpty().SetIntValue(2)
			return p.ConsumeMetrics(ctx, md)
		}
	},
	"logs": func(t *testing.T, set processor.Settings, cfg *Config, next consumertest.Consumer) (component.Component, func(context.Context) error) {
		p, err := NewFactory().CreateLogs(t.Context(), set, cfg, next)
		require.NoError(t, err)
		return p, func(ctx context.Context) error {
			ld := plog.NewLogs()
			records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			records.AppendEmpty()
			records.AppendEmpty()
			return p.ConsumeLogs(ctx, ld)
		}
	},
}

// started starts components until the test ends, and returns what they tell each
// other.
func started(t *testing.T, all ...component.Component) *shared.State {
	t.Helper()
	host := new(statetest.Host)
	for _, c := range all {
		require.NoError(t, c.Start(t.Context(), host))
		t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	}
	return host.State()
}

// refusals are what exporters and processors return for what they do not take.
var refusals = map[string]error{
	"a full queue":          errors.New("sending queue is full"),
	"a permanent error":     consumererror.NewPermanent(errors.New("element is too large")),
	"no back end":           status.Error(codes.Unavailable, "connection refused"),
	"a back end that hangs": status.Error(codes.DeadlineExceeded, "no answer"),
	"no access":             status.Error(codes.PermissionDenied, "no"),
}

// A way out drops whatever a back end does not take: the sender hears nothing of it.
// Somebody learns since when, and how much; and that it is over once it has taken all
// for 30 s.
func TestAWayOutDropsWhatIsRefused(t *testing.T) {
	for signal, create := range signals {
		for name, refusal := range refusals {
			t.Run(signal+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					telemetry := componenttest.NewTelemetry()
					t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
					set := processortest.NewNopSettings(metadata.Type)
					set.TelemetrySettings = telemetry.NewTelemetrySettings()
					cfg := createDefaultConfig().(*Config)
					address := "jaeger:4317"
					cfg.Out.GetOrInsertDefault().Destination = &address
					next := &backEnd{Consumer: consumertest.NewNop()}
					guard, send := create(t, set, cfg, next)
					state := started(t, guard)
					notices := func() []shared.Notice { return state.Notices()[set.ID.String()] }

					require.NoError(t, send(t.Context()))
					assert.Empty(t, notices())

					began := time.Now()
					next.refusal = refusal
					for range 10 {
						require.NoError(t, send(t.Context()))
						time.Sleep(time.Minute)
					}
					next.refusal = nil
					got := notices()
					require.Len(t, got, 1)
					assert.Equal(t, "Drops "+signal+" for the back end jaeger:4317", got[0].What)
					assert.Equal(t, began, got[0].Since)
					assert.Equal(t, int64(20), got[0].Count)
					assert.Equal(t, 2, next.items, "what was taken is not dropped")
					assert.Zero(t, state.LastRefusal(), "the sender was refused nothing")
					metadatatest.AssertEqualProcessorMlGuardItemsDropped(t, telemetry, []metricdata.DataPoint[int64]{{
						Value: 20, Attributes: attribute.NewSet(attribute.String("signal", signal), attribute.String("processor", set.ID.String())),
					}}, metricdatatest.IgnoreTimestamp())

					require.NoError(t, send(t.Context()))
					got = notices()
					require.Len(t, got, 1)
					assert.Zero(t, got[0].Since, "it is over")
					assert.Equal(t, int64(20), got[0].Count)
					assert.Contains(t, got[0].What, "that were dropped")
					assert.Contains(t, got[0].Why, began.UTC().Format("15:04:05")+" UTC to ")

					next.refusal = refusal
					require.NoError(t, send(t.Context()))
					next.refusal = nil
					time.Sleep(endsAfter - time.Second)
					require.NoError(t, send(t.Context()))
					got = notices()
					require.Len(t, got, 1)
					assert.False(t, got[0].Since.IsZero(), "one request is not the end of it")
					assert.Equal(t, int64(2), got[0].Count, "since it began again")
				})
			})
		}
	}
}

// Of guards in a row, the one that is next to what refuses says so, and the sender is
// told. What is wrong with the data, or a sender that has left, is no refusal.
func TestRefusalsAreSaid(t *testing.T) {
	temporary := map[string]bool{"a full queue": true, "no back end": true, "a back end that hangs": true}
	for signal, create := range signals {
		for name, refusal := range refusals {
			t.Run(signal+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					outer, inner := processortest.NewNopSettings(metadata.Type), processortest.NewNopSettings(metadata.Type)
					outer.ID, inner.ID = component.MustNewIDWithName("ml_guard", "outer"), component.MustNewIDWithName("ml_guard", "inner")
					cfg := createDefaultConfig().(*Config)
					cfg.Out.GetOrInsertDefault().WhenRefused = Refuse
					next := &backEnd{Consumer: consumertest.NewNop(), refusal: refusal}
					second, _ := create(t, inner, cfg, next)
					first, send := create(t, outer, createDefaultConfig().(*Config), joined(second))
					state := started(t, second, first)

					time.Sleep(time.Second)
					before := time.Now()
					require.ErrorIs(t, send(t.Context()), refusal)
					notices := state.Notices()
					assert.Empty(t, notices[outer.ID.String()])
					if !temporary[name] {
						assert.Empty(t, notices[inner.ID.String()])
						assert.Zero(t, state.LastRefusal())
						return
					}
					require.Len(t, notices[inner.ID.String()], 1)
					got := notices[inner.ID.String()][0]
					assert.Equal(t, "Refuses data: "+signal, got.What)
					assert.Equal(t, before, got.Since)
					assert.Equal(t, int64(2), got.Count)
					assert.True(t, state.LastRefusal().Equal(before))

					time.Sleep(time.Second)
					gone, leave := context.WithCancel(t.Context())
					leave()
					require.Error(t, send(gone))
					assert.True(t, state.LastRefusal().Equal(before), "the sender has left")

					next.refusal = nil
					time.Sleep(endsAfter)
					require.NoError(t, send(t.Context()))
					assert.Zero(t, state.Notices()[inner.ID.String()][0].Since)
				})
			})
		}
	}
}

// joined returns a component that consumes one signal as one that consumes all.
func joined(c component.Component) consumertest.Consumer {
	all := &chain{Consumer: consumertest.NewNop()}
	all.traces, _ = c.(processor.Traces)
	all.metrics, _ = c.(processor.Metrics)
	all.logs, _ = c.(processor.Logs)
	return all
}

type chain struct {
	consumertest.Consumer
	traces  processor.Traces
	metrics processor.Metrics
	logs    processor.Logs
}

func (c *chain) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return c.traces.ConsumeTraces(ctx, td)
}

func (c *chain) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return c.metrics.ConsumeMetrics(ctx, md)
}

func (c *chain) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return c.logs.ConsumeLogs(ctx, ld)
}

// An empty address of a back end is none: nothing is passed on, and the page says so.
func TestAWayOutWithoutABackEnd(t *testing.T) {
	for signal, create := range signals {
		t.Run(signal, func(t *testing.T) {
			set, cfg, none := processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), ""
			cfg.Out.GetOrInsertDefault().Destination = &none
			next := &backEnd{Consumer: consumertest.NewNop(), refusal: errors.New("must not be called")}
			guard, send := create(t, set, cfg, next)
			state := started(t, guard)
			require.NoError(t, send(t.Context()))
			notices := state.Notices()[set.ID.String()]
			require.Len(t, notices, 1)
			assert.Zero(t, notices[0].Since, "it was asked for")
			assert.Equal(t, "JAEGER_ENDPOINT=<host:port>", notices[0].Fix)
		})
	}
}

func TestTheSectionOut(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	out := cfg.Out.GetOrInsertDefault()
	require.NoError(t, out.Validate(), "the default")
	out.WhenRefused = Refuse
	require.NoError(t, out.Validate())
	out.WhenRefused = "wait"
	require.EqualError(t, out.Validate(), `"when_refused" is "wait"; it must be "drop" or "refuse"`)

	out.WhenRefused = Drop
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.False(t, p.Capabilities().MutatesData, "the fan-out need not copy for it")
}
