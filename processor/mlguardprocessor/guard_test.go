package mlguardprocessor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/otlpnest"
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
	assert.Equal(t, refusal, p.ConsumeTraces(t.Context(), ptrace.NewTraces()))

	config.RetryAfter = 1500 * time.Millisecond
	require.EqualError(t, config.Validate(), `"retry_after" is 1.5s; it must be whole seconds between 0s and 1h`)
	assert.NoError(t, factory.CreateDefaultConfig().(*Config).Validate())
}
