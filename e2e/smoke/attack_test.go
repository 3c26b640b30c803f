package smoke

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// answer is what the collector says to a request over HTTP.
type answer struct {
	status int
	header http.Header
	body   string
}

func postOTLP(ctx context.Context, url, contentType string, body []byte, header ...string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}, err
}

const protobuf = "application/x-protobuf"

// Requests with values that are nested as deeply as a request can be are refused
// before they are decoded; the collector goes on, and cuts what it takes.
func TestNestedValuesDoNotEndTheCollector(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Env:    []string{"JAEGER_ENDPOINT=" + sink.Endpoint, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint},
	})
	url := "http://" + collector.Address(t, "receivers::otlp::protocols::http")
	exception := [][]byte{otlpnest.Attribute("exception.type", otlpnest.Field(1, []byte("E")))}
	for _, attack := range []struct {
		name, path, contentType string
		body                    []byte
		status                  int
	}{
		{"a body of 420,000 arrays", "/v1/logs", protobuf, otlpnest.Logs(nil, exception, otlpnest.Arrays(420_000)), http.StatusBadRequest},
		{"a service name of 200,000 maps", "/v1/logs", protobuf, otlpnest.Logs(
			[][]byte{otlpnest.Attribute("service.name", otlpnest.Maps(200_000))}, exception, nil), http.StatusBadRequest},
		{"a failed call's service name", "/v1/traces", protobuf, otlpnest.Traces(
			[][]byte{otlpnest.Attribute("service.name", otlpnest.Arrays(1_000))},
			[][]byte{otlpnest.Attribute("exception.type", otlpnest.Arrays(100))}), http.StatusOK},
		{"JSON", "/v1/logs", "application/json", []byte(
			`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + otlpnest.JSON(149_000) + `}]}]}]}`), http.StatusBadRequest},
	} {
		got, err := postOTLP(t.Context(), url+attack.path, attack.contentType, attack.body)
		require.NoError(t, err, "%s: %.2000s", attack.name, collector.Output())
		assert.Equal(t, attack.status, got.status, "%s: %s", attack.name, got.body)
	}

	// One above the limit on the size: the receiver ends the connection, and the
	// client may see that before the answer.
	if got, err := postOTLP(t.Context(), url+"/v1/logs", protobuf, otlpnest.Logs(nil, exception, otlpnest.Arrays(900_000))); err == nil {
		assert.Equal(t, http.StatusBadRequest, got.status, got.body)
	}

	// A plain record beside a nested one arrives as it was sent.
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	records.AppendEmpty().Body().SetStr("plain")
	otlpnest.Value(records.AppendEmpty().Body(), 100)
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	got, err := postOTLP(t.Context(), url+"/v1/logs", protobuf, body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, got.status, got.body)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var bodies []string
		for _, record := range sink.LogRecords() {
			bodies = append(bodies, innermost(record.Body()))
		}
		assert.Contains(c, bodies, "plain")
		assert.Contains(c, bodies, "[cut: nested deeper than 64 levels]")
		assert.NotEmpty(c, sink.Spans())
	}, arrival, poll)

	samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
	require.NoError(t, err)
	cut := harness.Select(samples, "otelcol_processor_ml_guard_values_cut", harness.Labels{"limit": "depth", "processor": "ml_guard"})
	require.NotEmpty(t, cut)
	assert.True(t, collector.Running())
	assert.Zero(t, collector.Stop(t))
	assert.NotContains(t, collector.Output(), "goroutine stack exceeds")
}

// What pdata's decoder would recurse into is refused before it does, whatever the
// protocol, encoding and compression, with an answer that names the limit and
// that no client takes for one to try again. Others' data pass in the meantime.
func TestWhatIsExpensiveToDecodeIsRefusedBefore(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Env:    []string{"LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint},
	})
	nested := otlpnest.Logs(nil, nil, otlpnest.Arrays(420_000))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(nested)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	url := "http://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/logs"
	for _, attack := range []struct {
		contentType, encoding, limit string
		body                         []byte
	}{
		{protobuf, "", "max_depth", nested},
		{protobuf, "gzip", "max_depth", zipped.Bytes()},
		{"application/json", "", "max_depth", []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + otlpnest.JSON(140_000) + `}]}]}]}`)},
		{protobuf, "", "max_messages", bytes.Repeat([]byte{1<<3 | 2, 0}, 2_000_000)},
	} {
		got, err := postOTLP(t.Context(), url, attack.contentType, attack.body, "Content-Encoding", attack.encoding)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, got.status, got.body)
		assert.Equal(t, attack.contentType, got.header.Get("Content-Type"))
		assert.Contains(t, got.body, "ml_guard: ")
		assert.Contains(t, got.body, attack.limit)
	}

	// Over gRPC, the same bytes: they are no message that a client could make of
	// pdata.
	connection, err := grpc.NewClient(collector.Address(t, "receivers::otlp::protocols::grpc"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asIs{})))
	require.NoError(t, err)
	defer func() { assert.NoError(t, connection.Close()) }()
	const export = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
		var answer []byte
		err = connection.Invoke(t.Context(), export, nested, &answer, options...)
		assert.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "max_depth")
		require.NoError(t, connection.Invoke(t.Context(), export, otlpnest.Logs(nil, nil, otlpnest.Arrays(100)), &answer, options...))
	}
	plain := plog.NewLogs()
	plain.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("plain")
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	require.NoError(t, sender.Logs(t.Context(), plain))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var bodies []string
		for _, record := range sink.LogRecords() {
			bodies = append(bodies, innermost(record.Body()))
		}
		assert.Contains(c, bodies, "plain")
		assert.Contains(c, bodies, "[cut: nested deeper than 64 levels]")
	}, arrival, poll)
	samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
	require.NoError(t, err)
	for limit, n := range map[string]float64{"depth": 5, "messages": 1} {
		refused := harness.Select(samples, "otelcol_extension_ml_guard_requests_refused", harness.Labels{"limit": limit, "extension": "ml_guard"})
		require.Len(t, refused, 1)
		assert.InDelta(t, n, refused[0].Value, 0)
	}
}

// asIs is a codec that sends and returns bytes as they are.
type asIs struct{}

func (asIs) Name() string { return "proto" }

func (asIs) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (asIs) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// innermost follows the first elements of arrays and maps.
func innermost(v pcommon.Value) string {
	for {
		switch {
		case v.Type() == pcommon.ValueTypeSlice && v.Slice().Len() > 0:
			v = v.Slice().At(0)
		case v.Type() == pcommon.ValueTypeMap && v.Map().Len() > 0:
			v, _ = v.Map().Get("k")
		default:
			return v.Str()
		}
	}
}

// Compressed or not, over HTTP or gRPC, a request of more than 4 MiB is refused.
func TestLargeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml")})
	large := plog.NewLogs()
	large.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr(strings.Repeat("x", 4<<20))
	body, err := plogotlp.NewExportRequestFromLogs(large).MarshalProto()
	require.NoError(t, err)

	url := "http://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/logs"
	for name, compress := range map[string]func(io.Writer) io.WriteCloser{
		"":        nil,
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	} {
		sent := body
		if compress != nil {
			var compressed bytes.Buffer
			w := compress(&compressed)
			_, err := w.Write(body)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			sent = compressed.Bytes()
		}
		got, err := postOTLP(t.Context(), url, protobuf, sent, "Content-Encoding", name)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, got.status, "%q: %s", name, got.body)
		assert.Contains(t, got.body, "request body too large", "%q", name)
	}

	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	err = sender.Logs(t.Context(), large)
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	assert.True(t, collector.Running())
}

// A page in a browser on the same machine, whose name resolves to the loopback
// interface, can read neither the metrics nor the live page.
func TestPortsRefuseForeignNames(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml")})
	for path, port := range map[string]struct {
		page    string
		foreign int
	}{
		"exporters::prometheus": {"/metrics", http.StatusForbidden},
		"exporters::ml_view":    {"/api/v1/state", http.StatusForbidden},
		// These are stock servers that answer to any name; docs/upstream has the reports.
		"extensions::health_check": {"/", http.StatusOK},
		harness.TelemetryPath:      {"/metrics", http.StatusOK},
	} {
		address := collector.Address(t, path)
		for name, status := range map[string]int{"attacker.example": port.foreign, address: http.StatusOK, "localhost": http.StatusOK} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+port.page, nil)
			require.NoError(t, err)
			request.Host = name
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, status, response.StatusCode, "%s as %s", path, name)
		}
	}
}

// A request that is refused for the moment is answered with the time after which
// to send it again.
func TestRefusedRequestsSayWhenToSendAgain(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{"processors::memory_limiter::limit_mib": 1},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	traces := ptrace.NewTraces()
	traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("a")
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	require.NoError(t, err)
	url := "http://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/traces"
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		got, err := postOTLP(t.Context(), url, protobuf, body)
		require.NoError(c, err)
		assert.Equal(c, http.StatusServiceUnavailable, got.status)
		assert.Equal(c, "5", got.header.Get("Retry-After"))
	}, arrival, poll)

	refusal := status.Convert(sender.Traces(t.Context(), traces))
	assert.Equal(t, codes.Unavailable, refusal.Code(), refusal.Message())
	require.Len(t, refusal.Details(), 1)
	info, ok := refusal.Details()[0].(*errdetails.RetryInfo)
	require.True(t, ok)
	assert.Equal(t, 5*time.Second, info.GetRetryDelay().AsDuration())
}
