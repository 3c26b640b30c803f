package mlguardextension

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadatatest"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
)

func TestConfig(t *testing.T) {
	for file, message := range map[string]string{
		"default.yaml":  "",
		"least.yaml":    "",
		"depth.yaml":    `"max_depth" is 63; it must be between 64 and 10000`,
		"deep.yaml":     `"max_depth" is 10001; it must be between 64 and 10000`,
		"memory.yaml":   `"max_memory_mib" is 0; it must be between 1 and 1000000`,
		"failover.yaml": `"failover_after" is 100ms; it must be between 1s and 1h0m0s`,
		"messages.yaml": `"max_messages" is 0; it must be between 1000 and 100000000`,
	} {
		t.Run(file, func(t *testing.T) {
			conf, err := confmaptest.LoadConf(filepath.Join("testdata", file))
			require.NoError(t, err)
			config := NewFactory().CreateDefaultConfig()
			require.NoError(t, conf.Unmarshal(config))
			err = config.(*Config).Validate()
			if message == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, message)
			}
		})
	}
}

// started is an extension and what it reports.
type started struct {
	*guard
	host      *statetest.Host
	telemetry *componenttest.Telemetry
	log       *observer.ObservedLogs
}

func start(t *testing.T) started {
	t.Helper()
	return startWith(t, NewFactory().CreateDefaultConfig())
}

func startWith(t *testing.T, config component.Config) started {
	t.Helper()
	core, log := observer.New(zap.WarnLevel)
	telemetry := componenttest.NewTelemetry()
	settings := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: telemetry.NewTelemetrySettings()}
	settings.Logger = zap.New(core)
	host := new(statetest.Host)
	made, err := NewFactory().Create(t.Context(), settings, config)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), host))
	t.Cleanup(func() {
		assert.NoError(t, made.Shutdown(context.Background()))
		assert.NoError(t, telemetry.Shutdown(context.Background()))
	})
	return started{made.(*guard), host, telemetry, log}
}

func (s started) assertRefused(t *testing.T, limit string, n int64) {
	t.Helper()
	metadatatest.AssertEqualExtensionMlGuardRequestsRefused(t, s.telemetry, []metricdata.DataPoint[int64]{{
		Value:      n,
		Attributes: attribute.NewSet(attribute.String("limit", limit), attribute.String("extension", "ml_guard")),
	}}, metricdatatest.IgnoreTimestamp())
	assert.Equal(t, 1, s.log.Len(), "one line for all of them")
}

// logsServer takes requests, or refuses all of them as authentication does.
type logsServer struct {
	plogotlp.UnimplementedGRPCServer
	records, sizes []int
}

func (s *logsServer) Export(ctx context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	s.records, s.sizes = append(s.records, request.Logs().LogRecordCount()), append(s.sizes, sender.Size(ctx))
	return plogotlp.NewExportResponse(), nil
}

// serve returns a client of a gRPC server with the extension's options behind
// those given, which is where the receiver has them.
func serve(t *testing.T, s started, before ...grpc.ServerOption) (plogotlp.GRPCClient, *logsServer) {
	t.Helper()
	logs := &logsServer{}
	return serveWith(t, s, logs, before...), logs
}

func serveWith(t *testing.T, s started, logs plogotlp.GRPCServer, before ...grpc.ServerOption) plogotlp.GRPCClient {
	t.Helper()
	options, err := s.GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	server := grpc.NewServer(append(before, options...)...)
	plogotlp.RegisterGRPCServer(server, logs)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, connection.Close())
		server.Stop()
		assert.NoError(t, <-done)
	})
	return plogotlp.NewGRPCClient(connection)
}

func nested(t *testing.T, levels int) plogotlp.ExportRequest {
	t.Helper()
	logs := plog.NewLogs()
	otlpnest.Value(logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body(), levels)
	return plogotlp.NewExportRequestFromLogs(logs)
}

func TestGRPC(t *testing.T) {
	s := start(t)
	client, server := serve(t, s)
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
		_, err := client.Export(t.Context(), nested(t, 1_001), options...)
		assert.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, `ml_guard: values are nested deeper than "max_depth" (1000 levels)`)
		_, err = client.Export(t.Context(), nested(t, 1_000), options...)
		require.NoError(t, err)
	}
	assert.Equal(t, []int{1, 1}, server.records, "a refused request does not reach the receiver")
	encoded, err := nested(t, 1_000).MarshalProto()
	require.NoError(t, err)
	assert.Equal(t, []int{len(encoded), len(encoded)}, server.sizes, "components know the size, also of a compressed request")
	s.assertRefused(t, "depth", 2)
}

func TestGRPCMessages(t *testing.T) {
	s := start(t)
	client, _ := serve(t, s)
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	records.EnsureCapacity(250_000)
	for range 250_000 {
		records.AppendEmpty()
	}
	_, err := client.Export(t.Context(), plogotlp.NewExportRequestFromLogs(logs))
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, `ml_guard: the request has more messages than "max_messages" (250000)`)
	s.assertRefused(t, "messages", 1)
}

func TestGRPCHeaders(t *testing.T) {
	client, _ := serve(t, start(t))
	for size, code := range map[int]codes.Code{32 << 10: codes.OK, 128 << 10: codes.Internal} {
		ctx := grpcmetadata.AppendToOutgoingContext(t.Context(), "authorization", strings.Repeat("a", size))
		_, err := client.Export(ctx, nested(t, 1))
		assert.Equal(t, code, status.Code(err), "%d bytes: %v", size, err)
	}
}

// unauthenticated is an interceptor that refuses all calls, as authentication does.
func unauthenticated(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.Unauthenticated, "who")
}

// An interceptor that refuses before the extension's leaves nothing behind.
func TestGRPCBehindAuthentication(t *testing.T) {
	s := start(t)
	options, err := s.GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, options)
	client, _ := serve(t, s, grpc.ChainUnaryInterceptor(unauthenticated))
	_, err = client.Export(t.Context(), nested(t, 2_000))
	assert.Equal(t, codes.Unauthenticated, status.Code(err))
	s.assertRefused(t, "depth", 1)
}

// What reads a body as the receiver does.
type reader struct {
	read []byte
	err  error
}

func (r *reader) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	r.read, r.err = io.ReadAll(request.Body)
}

func TestHTTP(t *testing.T) {
	const protobuf, json = "application/x-protobuf", "application/json; charset=utf-8"
	encode := func(levels int, contentType string) []byte {
		marshal := nested(t, levels).MarshalProto
		if contentType == json {
			marshal = nested(t, levels).MarshalJSON
		}
		body, err := marshal()
		require.NoError(t, err)
		return body
	}
	for _, contentType := range []string{protobuf, json} {
		s, inner := start(t), &reader{}
		wrap, err := s.GetHTTPHandler(t.Context())
		require.NoError(t, err)
		handler, err := wrap(t.Context(), inner)
		require.NoError(t, err)
		for _, levels := range []int{5_000, 100} {
			body := encode(levels, contentType)
			request := httptest.NewRequest(http.MethodPost, "/any", bytes.NewReader(body))
			request.Header.Set("Content-Type", contentType)
			handler.ServeHTTP(httptest.NewRecorder(), request)
			if levels == 5_000 {
				assert.Equal(t, codes.InvalidArgument, status.Code(inner.err))
				assert.Less(t, len(inner.read), len(body))
				continue
			}
			require.NoError(t, inner.err)
			assert.Equal(t, body, inner.read)
		}
		s.assertRefused(t, "depth", 1)
	}
}

// An error of the body is the receiver's, and what is no OTLP is not looked at.
func TestHTTPPassesOn(t *testing.T) {
	s, inner := start(t), &reader{}
	wrap, err := s.GetHTTPHandler(t.Context())
	require.NoError(t, err)
	handler, err := wrap(t.Context(), inner)
	require.NoError(t, err)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/v1/logs", bytes.NewReader(make([]byte, 100)))
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Body = http.MaxBytesReader(recorder, request.Body, 10)
	handler.ServeHTTP(recorder, request)
	var tooLarge *http.MaxBytesError
	require.ErrorAs(t, inner.err, &tooLarge)

	text := bytes.Repeat([]byte("["), 100_000)
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/logs", bytes.NewReader(text)))
	require.NoError(t, inner.err)
	assert.Equal(t, text, inner.read)
	assert.Zero(t, s.log.Len())
}

// What is served on the loopback interface can only be read by names of the machine.
// Other interfaces, and what clients send, may have any name, such as a proxy's.
func TestReadingUnderAnotherName(t *testing.T) {
	wrap, err := start(t).GetHTTPHandler(t.Context())
	require.NoError(t, err)
	handler, err := wrap(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	require.NoError(t, err)
	loopback, other := net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 7)
	for _, test := range []struct {
		method, host string
		address      net.IP
		code         int
	}{
		{http.MethodGet, "attacker.example:8889", loopback, http.StatusForbidden},
		{http.MethodHead, "attacker.example", net.IPv6loopback, http.StatusForbidden},
		{http.MethodGet, "127.0.0.1:8889", loopback, http.StatusOK},
		{http.MethodGet, "localhost:8889", loopback, http.StatusOK},
		{http.MethodGet, "otelcol-ml:8889", other, http.StatusOK},
		{http.MethodPost, "collector.example", loopback, http.StatusOK},
	} {
		r, w := httptest.NewRequest(test.method, "/metrics", nil), httptest.NewRecorder()
		r.Host = test.host
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: test.address})))
		assert.Equal(t, test.code, w.Code, "%s %s at %s", test.method, test.host, test.address)
	}
}

func TestStartsWithoutTelemetry(t *testing.T) {
	_, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), NewFactory().CreateDefaultConfig())
	assert.NoError(t, err)
}

// least is the configuration with the least memory for the requests in progress.
func least() *Config {
	config := NewFactory().CreateDefaultConfig().(*Config)
	config.MaxMemoryMiB = 1
	return config
}

// used is the memory of the requests in progress.
func (s started) used() int64 {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.used
}

// half is a request of which two need more than least has.
func half(t *testing.T) plogotlp.ExportRequest {
	t.Helper()
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 5_000 {
		records.AppendEmpty()
	}
	return plogotlp.NewExportRequestFromLogs(logs)
}

// busy is a receiver whose pipeline takes as long as the test wants. It says when
// it has a request.
type busy struct {
	plogotlp.UnimplementedGRPCServer
	has, goOn chan struct{}
}

func (b *busy) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	if request.Logs().LogRecordCount() > 1 {
		b.has <- struct{}{}
		<-b.goOn
	}
	return plogotlp.NewExportResponse(), nil
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	request := plogotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = b.Export(r.Context(), request)
}

// While requests are processed, one that needs more memory than is left is refused
// for the moment, and small ones pass. A request that is alone always passes.
func TestRequestsInProgressAreBounded(t *testing.T) {
	for name, export := range map[string]func(*testing.T, started, *busy) func(plogotlp.ExportRequest) error{
		"gRPC": func(t *testing.T, s started, b *busy) func(plogotlp.ExportRequest) error {
			client := serveWith(t, s, b)
			return func(request plogotlp.ExportRequest) error {
				_, err := client.Export(t.Context(), request)
				if err != nil {
					assert.Equal(t, codes.Unavailable, status.Code(err), "clients send again")
				}
				return err
			}
		},
		"HTTP": func(t *testing.T, s started, b *busy) func(plogotlp.ExportRequest) error {
			wrap, err := s.GetHTTPHandler(t.Context())
			require.NoError(t, err)
			handler, err := wrap(t.Context(), b)
			require.NoError(t, err)
			return func(request plogotlp.ExportRequest) error {
				body, err := request.MarshalProto()
				require.NoError(t, err)
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/logs", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/x-protobuf")
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					return errors.New(w.Body.String())
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startWith(t, least())
			b := &busy{has: make(chan struct{}), goOn: make(chan struct{})}
			send := export(t, s, b)
			first := make(chan error)
			go func() { first <- send(half(t)) }()
			<-b.has
			require.ErrorContains(t, send(half(t)), `more memory than "max_memory_mib" (1)`)
			require.NoError(t, send(nested(t, 1)))
			b.goOn <- struct{}{}
			require.NoError(t, <-first)
			assert.Zero(t, s.used())
			go func() { first <- send(half(t)) }()
			<-b.has
			b.goOn <- struct{}{}
			require.NoError(t, <-first)
			s.assertRefused(t, "memory_mib", 1)
			assert.Less(t, time.Since(s.host.State().LastRefusal()), time.Hour, "what is not there says nothing about its sender")
			notices := s.host.State().Notices()["ml_guard"]
			require.Len(t, notices, 1)
			assert.EqualValues(t, 1, notices[0].Count)
			assert.Equal(t, "ml_guard: {max_memory_mib: <more>}", notices[0].Fix)
		})
	}
}

// Two instances on one receiver do not take the memory of each other's requests.
func TestTwoInstances(t *testing.T) {
	first, second := startWith(t, least()), startWith(t, least())
	options, err := first.GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	client, _ := serve(t, second, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unauthenticated)}, options...)...)
	for range 5 {
		_, err := client.Export(t.Context(), half(t))
		assert.Equal(t, codes.Unauthenticated, status.Code(err))
		require.Eventually(t, func() bool { return first.used() == 0 && second.used() == 0 }, time.Minute, time.Millisecond)
	}
}

// A request that ends before it reaches the receiver leaves no memory behind.
func TestMemoryOfRefusedRequestsIsFree(t *testing.T) {
	s := startWith(t, least())
	client, _ := serve(t, s, grpc.ChainUnaryInterceptor(unauthenticated))
	for range 10 {
		_, err := client.Export(t.Context(), half(t))
		assert.Equal(t, codes.Unauthenticated, status.Code(err))
		require.Eventually(t, func() bool { return s.used() == 0 }, time.Minute, time.Millisecond)
	}
}
