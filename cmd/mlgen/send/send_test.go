package send

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/internal/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick tries three times without a pause worth waiting for.
func quick() Retry {
	return Retry{Attempts: 3, Wait: time.Nanosecond, MaxWait: time.Millisecond, Timeout: 10 * time.Second}
}

func newSink(t *testing.T) *sink.Server {
	t.Helper()
	server, err := sink.New()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// transports are the two ways to a server.
func transports(t *testing.T, server *sink.Server) map[string]Sender {
	t.Helper()
	overGRPC, err := NewGRPC(server.GRPC, quick())
	require.NoError(t, err)
	overHTTP, err := NewHTTP(server.HTTP, "", quick())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, overGRPC.Close())
		require.NoError(t, overHTTP.Close())
	})
	return map[string]Sender{"grpc": overGRPC, "http": overHTTP}
}

func oneSpan() ptrace.Traces {
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("one")
	span.Attributes().PutStr("key", "value")
	return td
}

func oneMetric() pmetric.Metrics {
	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	return md
}

func oneLog() plog.Logs {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("one")
	return ld
}

// signals sends one item of each signal.
var signals = map[string]func(context.Context, Sender) (Partial, error){
	"traces":  func(ctx context.Context, s Sender) (Partial, error) { return s.Traces(ctx, oneSpan()) },
	"metrics": func(ctx context.Context, s Sender) (Partial, error) { return s.Metrics(ctx, oneMetric()) },
	"logs":    func(ctx context.Context, s Sender) (Partial, error) { return s.Logs(ctx, oneLog()) },
}

func TestDelivery(t *testing.T) {
	server := newSink(t)
	for name, sender := range transports(t, server) {
		for signal, send := range signals {
			partial, err := send(t.Context(), sender)
			require.NoError(t, err, "%s by %s", signal, name)
			assert.Zero(t, partial)
		}
	}
	require.Len(t, server.Traces(), 2)
	assert.Len(t, server.Metrics(), 2)
	assert.Len(t, server.Logs(), 2)
	for _, td := range server.Traces() {
		span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, "one", span.Name())
		assert.Equal(t, map[string]any{"key": "value"}, span.Attributes().AsRaw())
	}
	assert.ElementsMatch(t, []string{"/v1/traces", "/v1/metrics", "/v1/logs"}, server.Paths())
}

func TestPartialSuccess(t *testing.T) {
	server := newSink(t)
	for name, sender := range transports(t, server) {
		for signal, send := range signals {
			server.Then(sink.Answer{Refused: 1, Message: "too old"})
			partial, err := send(t.Context(), sender)
			require.NoError(t, err)
			assert.Equal(t, Partial{Refused: 1, Message: "too old"}, partial, "%s by %s", signal, name)
		}
	}
}

func TestRetries(t *testing.T) {
	failing := sink.Answer{Err: status.Error(codes.Unavailable, "later"), Status: http.StatusServiceUnavailable, Body: []byte("later")}
	server := newSink(t)
	for name, sender := range transports(t, server) {
		t.Run(name+" succeeds in the end", func(t *testing.T) {
			before := len(server.Traces())
			server.Then(failing, failing)
			_, err := sender.Traces(t.Context(), oneSpan())
			require.NoError(t, err)
			assert.Len(t, server.Traces(), before+1)
		})
		t.Run(name+" gives up", func(t *testing.T) {
			server.Then(failing, failing, failing)
			_, err := sender.Traces(t.Context(), oneSpan())
			require.ErrorContains(t, err, "after 3 attempts")
			require.ErrorContains(t, err, "later")
		})
		t.Run(name+" does not insist", func(t *testing.T) {
			before := len(server.Traces())
			server.Then(sink.Answer{Err: status.Error(codes.InvalidArgument, "bad"), Status: http.StatusBadRequest, Body: []byte("bad")})
			_, err := sender.Traces(t.Context(), oneSpan())
			require.ErrorContains(t, err, "bad")
			require.NotContains(t, err.Error(), "attempts")
			assert.Len(t, server.Traces(), before, "a request that is refused for good is not sent again")
		})
	}
}

// TestCancelled shows that a pause ends with the context.
func TestCancelled(t *testing.T) {
	server := newSink(t)
	patient := Retry{Attempts: 2, Wait: time.Hour, MaxWait: time.Hour}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("stopped by the test")
	calls := 0
	_, err := patient.do(ctx, func(context.Context) (Partial, error) {
		calls++
		cancel(reason)
		return Partial{}, retryable{error: errors.New("down")}
	})
	require.ErrorIs(t, err, reason)
	require.ErrorContains(t, err, "down")
	assert.Equal(t, 1, calls)
	assert.Empty(t, server.Traces())
}

func TestTimeoutOfAnAttempt(t *testing.T) {
	impatient := Retry{Attempts: 1, Timeout: time.Nanosecond}
	_, err := impatient.do(t.Context(), func(ctx context.Context) (Partial, error) {
		<-ctx.Done()
		return Partial{}, ctx.Err()
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestNoServer(t *testing.T) {
	server, err := sink.New()
	require.NoError(t, err)
	senders := transports(t, server)
	server.Close()
	for name, sender := range senders {
		_, err := sender.Traces(t.Context(), oneSpan())
		require.ErrorContains(t, err, "after 3 attempts", name)
	}
}

// TestGRPCRetryable follows the table of the OTLP specification.
func TestGRPCRetryable(t *testing.T) {
	again := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		var r retryable
		assert.Equal(t, slices.Contains(again, code), errors.As(grpcError(status.Error(code, "")), &r), code.String())
	}
	st, err := status.New(codes.ResourceExhausted, "full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
	require.NoError(t, err)
	var r retryable
	require.ErrorAs(t, grpcError(st.Err()), &r)
	assert.Equal(t, 3*time.Second, r.after)
}

func TestHTTPRetryable(t *testing.T) {
	again := map[int]bool{429: true, 502: true, 503: true, 504: true}
	request, err := http.NewRequest(http.MethodPost, "http://user:secret@localhost:4318/v1/traces", http.NoBody)
	require.NoError(t, err)
	for _, code := range []int{301, 400, 401, 404, 413, 429, 500, 502, 503, 504} {
		err := httpError(&http.Response{StatusCode: code, Request: request, Header: http.Header{"Retry-After": {"7"}}}, nil)
		var r retryable
		assert.Equal(t, again[code], errors.As(err, &r), code)
		if again[code] {
			assert.Equal(t, 7*time.Second, r.after)
		}
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestHTTPReason(t *testing.T) {
	server := newSink(t)
	sender := transports(t, server)["http"]
	body, err := proto.Marshal(&spb.Status{Code: 3, Message: "queue is full"})
	require.NoError(t, err)
	server.Then(sink.Answer{Status: 400, Header: http.Header{"Content-Type": {"application/x-protobuf"}}, Body: body})
	_, err = sender.Logs(t.Context(), oneLog())
	require.ErrorContains(t, err, `400 Bad Request: "queue is full"`)
	server.Then(sink.Answer{Status: 400, Body: []byte("first line\nsecond \x1b[31m")})
	_, err = sender.Logs(t.Context(), oneLog())
	require.ErrorContains(t, err, `"first line"`)
	require.NotContains(t, err.Error(), "second")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "3": 3 * time.Second, "999999999": time.Hour,
		"Sat, 31 Jan 2026 12:00:09 GMT": 9 * time.Second, "Sat, 31 Jan 2026 11:00:00 GMT": 0,
	} {
		assert.Equal(t, want, retryAfter(value, now), value)
	}
}

// TestTracesURL shows the client that posts to an address as it was given.
func TestTracesURL(t *testing.T) {
	server := newSink(t)
	sender, err := NewHTTP(server.HTTP, server.HTTP+"/", quick())
	require.NoError(t, err)
	defer func() { require.NoError(t, sender.Close()) }()
	_, err = sender.Traces(t.Context(), oneSpan())
	require.NoError(t, err)
	_, err = sender.Logs(t.Context(), oneLog())
	require.NoError(t, err)
	assert.Equal(t, []string{"/", "/v1/logs"}, server.Paths())
}

func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"localhost:4317": "localhost:4317", "http://127.0.0.1:4317": "127.0.0.1:4317",
		"https://collector:4317/": "collector:4317", "[::1]:4317": "[::1]:4317",
	} {
		target, secure, err := grpcTarget(endpoint)
		require.NoError(t, err, endpoint)
		assert.Equal(t, want, target)
		assert.Equal(t, endpoint == "https://collector:4317/", secure)
	}
	for _, endpoint := range []string{"", "localhost", ":4317", "localhost:", "unix:///tmp/x", "http://localhost:4317/v1/traces"} {
		_, err := NewGRPC(endpoint, quick())
		require.ErrorContains(t, err, "is not host:port", endpoint)
	}
	for _, endpoint := range []string{"", "localhost:4318", "ftp://localhost", "http://", "http://%zz"} {
		_, err := NewHTTP(endpoint, "", quick())
		require.ErrorContains(t, err, "is not an http:// or https:// URL", endpoint)
		if endpoint != "" {
			_, err = NewHTTP("http://localhost:4318", endpoint, quick())
			require.Error(t, err, endpoint)
		}
	}
}
