package mlguardprocessor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadatatest"
)

// What is cut is counted by limit, in each signal; what is within the limits
// passes as it is.
func TestWhatIsCutIsCounted(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	factory, sink := NewFactory(), new(consumertest.LogsSink)
	p, err := factory.CreateLogs(t.Context(), set, factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))

	logs := plog.NewLogs()
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	otlpnest.Value(record.Body(), 100_000)
	record.Attributes().PutStr("plain", "text")
	require.NoError(t, p.ConsumeLogs(t.Context(), logs))
	require.NoError(t, p.Shutdown(t.Context()))

	require.Equal(t, 1, sink.LogRecordCount())
	v, _ := record.Attributes().Get("plain")
	assert.Equal(t, "text", v.Str())
	metadatatest.AssertEqualProcessorMlGuardValuesCut(t, telemetry, []metricdata.DataPoint[int64]{{
		Value:      1,
		Attributes: attribute.NewSet(attribute.String("limit", "depth"), attribute.String("processor", set.ID.String())),
	}}, metricdatatest.IgnoreTimestamp())
}

// A refusal for the moment says when to send again, and remains what it was.
func TestRefusalsSayWhenToSendAgain(t *testing.T) {
	full := errors.New("sending queue is full")
	told, err := status.New(codes.ResourceExhausted, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		refusal error
		code    codes.Code
		after   time.Duration
	}{
		"plain":             {fmt.Errorf("refused: %w", full), codes.Unavailable, 5 * time.Second},
		"status":            {status.Error(codes.ResourceExhausted, "quota"), codes.ResourceExhausted, 5 * time.Second},
		"says when":         {told.Err(), codes.ResourceExhausted, time.Minute},
		"permanent":         {consumererror.NewPermanent(full), codes.Unknown, 0},
		"invalid":           {status.Error(codes.InvalidArgument, "no"), codes.InvalidArgument, 0},
		"the sender left":   {context.Canceled, codes.Unknown, 0},
		"partly, by traces": {consumererror.NewTraces(full, ptrace.NewTraces()), codes.Unavailable, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			factory, set := NewFactory(), processortest.NewNopSettings(metadata.Type)
			config := factory.CreateDefaultConfig()
			refuse := consumertest.NewErr(test.refusal)
			traces, err := factory.CreateTraces(t.Context(), set, config, refuse)
			require.NoError(t, err)
			metrics, err := factory.CreateMetrics(t.Context(), set, config, refuse)
			require.NoError(t, err)
			logs, err := factory.CreateLogs(t.Context(), set, config, refuse)
			require.NoError(t, err)
			started(t, traces, metrics, logs)
			for _, got := range []error{
				traces.ConsumeTraces(t.Context(), ptrace.NewTraces()),
				metrics.ConsumeMetrics(t.Context(), pmetric.NewMetrics()),
				logs.ConsumeLogs(t.Context(), plog.NewLogs()),
			} {
				require.ErrorIs(t, got, test.refusal)
				assert.Equal(t, consumererror.IsPermanent(test.refusal), consumererror.IsPermanent(got))
				assert.Equal(t, test.refusal.Error(), got.Error())
				s, _ := status.FromError(got)
				assert.Equal(t, test.code, s.Code())
				assert.Equal(t, test.after, retryDelay(s))
			}
		})
	}
}

func retryDelay(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func TestRetryAfterZeroLeavesRefusals(t *testing.T) {
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.RetryAfter = 0
	refusal := errors.New("refused")
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), config, consumertest.NewErr(refusal))
	require.NoError(t, err)
	started(t, p)
	assert.Equal(t, refusal, p.ConsumeTraces(t.Context(), ptrace.NewTraces()))

	config.RetryAfter = 1500 * time.Millisecond
	require.EqualError(t, config.Validate(), `"retry_after" is 1.5s; it must be whole seconds between 0s and 1h`)
	assert.NoError(t, factory.CreateDefaultConfig().(*Config).Validate())
}

// forged are a reading and a conclusion, and a metric and a record of a client's own.
func forged() (pmetric.Metrics, plog.Logs) {
	md, ld := pmetric.NewMetrics(), plog.NewLogs()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range []string{"nvidia.gpu.workload.memory.usage", "ml.problem.onset.timestamp", "app.requests"} {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		records.AppendEmpty().SetEventName(map[string]string{"app.requests": "app.event"}[name])
	}
	records.At(0).SetEventName("nvidia.gpu.xid")
	records.At(1).SetEventName("ml.problem")
	return md, ld
}

// Readings and conclusions of a client that is not trusted are dropped, counted and said
// on the page; those of one that is, of an authenticated one and of the collector itself
// pass, and pass the later positions too.
func TestUntrustedSenders(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	consume := func(edit func(*Config), info client.Info) (points, records int) {
		factory, host, metrics, logs := NewFactory(), new(statetest.Host), new(consumertest.MetricsSink), new(consumertest.LogsSink)
		cfg := factory.CreateDefaultConfig().(*Config)
		edit(cfg)
		require.NoError(t, cfg.Validate())
		m, err := factory.CreateMetrics(t.Context(), set, cfg, metrics)
		require.NoError(t, err)
		l, err := factory.CreateLogs(t.Context(), set, cfg, logs)
		require.NoError(t, err)
		require.NoError(t, m.Start(t.Context(), host))
		require.NoError(t, l.Start(t.Context(), host))
		md, ld := forged()
		ctx := client.NewContext(t.Context(), info)
		require.NoError(t, m.ConsumeMetrics(ctx, md))
		require.NoError(t, l.ConsumeLogs(ctx, ld))
		if logs.LogRecordCount() == 1 {
			assert.Equal(t, shared.Notice{
				Key: "from 192.0.2.1", Kind: "sender", Count: 4, What: "Readings of GPUs and conclusions of collectors from 192.0.2.1",
				Why: "The sender is not authenticated, and trusted_senders does not list it.",
				Fix: set.ID.String() + ": {trusted_senders: [<address, network or loopback>]}",
			}, host.State().Notices()[set.ID.String()][0])
		}
		require.NoError(t, m.Shutdown(t.Context()))
		require.NoError(t, l.Shutdown(t.Context()))
		return metrics.DataPointCount(), logs.LogRecordCount()
	}
	address := client.Info{Addr: &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1}}
	unchanged := func(*Config) {}
	for name, tt := range map[string]struct {
		edit func(*Config)
		from client.Info
		want int
	}{
		"a client":               {unchanged, address, 1},
		"the collector itself":   {unchanged, client.Info{}, 3},
		"an authenticated one":   {unchanged, client.Info{Addr: address.Addr, Auth: named{}}, 3},
		"one that is listed":     {func(c *Config) { c.TrustedSenders = []string{"192.0.2.0/24"} }, address, 3},
		"at a later identities":  {func(c *Config) { c.Identities.GetOrInsertDefault() }, address, 3},
		"before a back end":      {func(c *Config) { c.Out.GetOrInsertDefault() }, address, 3},
		"at a later content":     {func(c *Config) { c.Content.GetOrInsertDefault() }, address, 3},
		"where another is named": {func(c *Config) { c.TrustedSenders = []string{"loopback"} }, address, 1},
	} {
		t.Run(name, func(t *testing.T) {
			points, records := consume(tt.edit, tt.from)
			assert.Equal(t, tt.want, points)
			assert.Equal(t, tt.want, records)
		})
	}
	dropped := func(signal string) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: 4, Attributes: attribute.NewSet(attribute.String("signal", signal), attribute.String("processor", set.ID.String()))}
	}
	metadatatest.AssertEqualProcessorMlGuardUntrusted(t, telemetry, []metricdata.DataPoint[int64]{dropped("metrics"), dropped("logs")}, metricdatatest.IgnoreTimestamp())
}

type named struct{}

func (named) GetAttribute(string) any     { return "agent" }
func (named) GetAttributeNames() []string { return []string{"username"} }

// A request of nothing else does not go on.
func TestARequestThatIsNotBelieved(t *testing.T) {
	factory, sink := NewFactory(), new(consumertest.MetricsSink)
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	md, _ := forged()
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() == "app.requests" })
	require.NoError(t, p.ConsumeMetrics(client.NewContext(t.Context(), client.Info{Addr: &net.UnixAddr{}}), md))
	assert.Empty(t, sink.AllMetrics())
}

// Whoever names senders in a later position, where they are not known, is told so.
func TestTrustedSendersAtALaterPosition(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.TrustedSenders = []string{"me"}
	require.ErrorContains(t, cfg.Validate(), `trusted_senders[0] is "me"; it must be an IP address`)
	cfg.TrustedSenders = []string{"any"}
	require.NoError(t, cfg.Validate())
	cfg.Identities.GetOrInsertDefault()
	require.ErrorContains(t, cfg.Validate(), `"trusted_senders" is set beside identities, content or out`)
}

// However many senders are not believed, few are named.
func TestFewSendersAreNamed(t *testing.T) {
	factory, set, host := NewFactory(), processortest.NewNopSettings(metadata.Type), new(statetest.Host)
	p, err := factory.CreateMetrics(t.Context(), set, factory.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host))
	for i := range 100 {
		md, _ := forged()
		require.NoError(t, p.ConsumeMetrics(client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(i))}}), md))
	}
	notices := host.State().Notices()[set.ID.String()]
	require.Len(t, notices, maxNamed+1)
	assert.Equal(t, int64(2*(100-maxNamed)), notices[maxNamed].Count)
	require.NoError(t, p.Shutdown(t.Context()))
}
