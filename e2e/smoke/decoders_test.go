package smoke

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// zstdFrame is a frame with a block of zeros that is not the last one. header is
// what follows the magic number.
func zstdFrame(header ...byte) []byte {
	const zeros = 1000<<3 | 1<<1
	return append(append([]byte{0x28, 0xb5, 0x2f, 0xfd}, header...), zeros&0xff, zeros>>8, 0, 0)
}

// bombs are a few bytes each, by encoding, that declare or contain megabytes.
func bombs(t *testing.T) map[string][][]byte {
	t.Helper()
	pack := func(writer func(io.Writer) io.WriteCloser) []byte {
		var b bytes.Buffer
		w := writer(&b)
		_, err := w.Write(make([]byte, 8<<20))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	return map[string][][]byte{
		"zstd": {
			zstdFrame(0, (29-10)<<3), // a window of 512 MiB
			zstdFrame(0, (27-10)<<3),
			zstdFrame(append([]byte{0xa0}, binary.LittleEndian.AppendUint32(nil, 512<<20)...)...), // content of 512 MiB
			zstdFrame(0, (23-10)<<3), // 8 MiB
		},
		"gzip":   {pack(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })},
		"snappy": {append(binary.AppendUvarint(nil, 4<<20), 0), binary.AppendUvarint(nil, 1<<32-1)},
		// Blocks of 4 MiB, of which the first has not begun.
		"lz4":     {{0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 0xff, 0x00, 0x00, 0x00}},
		"deflate": {pack(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })},
	}
}

// sentAs is a compressor of gRPC's that sends bytes as they are, as what encoding
// has made.
type sentAs string

func (sentAs) Do(w io.Writer, p []byte) error { _, err := w.Write(p); return err }

func (s sentAs) Type() string { return string(s) }

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// withAuthentication is a configuration to be merged over a shipped one.
func withAuthentication(t *testing.T) string {
	t.Helper()
	return writeConfig(t, `
extensions: {bearertokenauth: {token: secret}}
receivers:
  otlp:
    protocols:
      grpc: {auth: {authenticator: bearertokenauth}}
      http: {auth: {authenticator: bearertokenauth}}
service: {extensions: [health_check, ml_guard, bearertokenauth]}
`)
}

// withoutGuard is a receiver as users configure it who know nothing of ml_guard.
const withoutGuard = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:4317"}
      http: {endpoint: "127.0.0.1:4318"}
exporters: {nop: }
service:
  pipelines:
    logs: {receivers: [otlp], exporters: [nop]}
`

// otherReceivers are those besides that decompress.
const otherReceivers = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:4317"}
      http: {endpoint: "127.0.0.1:4318"}
  zipkin: {endpoint: "127.0.0.1:9411"}
  jaeger:
    protocols:
      grpc: {endpoint: "127.0.0.1:14250"}
      thrift_http: {endpoint: "127.0.0.1:14268"}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp, zipkin, jaeger], exporters: [nop]}
    logs: {receivers: [otlp], exporters: [nop]}
`

// Requests of a few bytes that declare hundreds of megabytes take none of them, in
// any encoding, over HTTP and gRPC, with and without authentication, in configurations
// without ml_guard, and at receivers of other protocols. Others are served in the meantime.
func TestSmallRequestsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	agent := harness.Path("distribution", "config", "agent.yaml")
	const others = "other receivers"
	for name, configs := range map[string][]string{
		"agent.yaml":          {agent},
		"with authentication": {agent, withAuthentication(t)},
		"without ml_guard":    {writeConfig(t, withoutGuard)},
		others:                {writeConfig(t, otherReceivers)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := harness.StartCollector(t, harness.CollectorOptions{Config: configs[0], Merged: configs[1:]})
			url := "http://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/logs"
			urls, address, export := []string{url}, collector.Address(t, "receivers::otlp::protocols::grpc"), "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
			if name == others {
				urls = append(urls, "http://"+collector.Address(t, "receivers::zipkin")+"/api/v2/spans", "http://"+collector.Address(t, "receivers::jaeger::protocols::thrift_http")+"/api/traces")
				address, export = collector.Address(t, "receivers::jaeger::protocols::grpc"), "/jaeger.api_v2.CollectorService/PostSpans"
			}
			before := collector.PeakMemory(t)
			const clients, times = 5, 5
			var all sync.WaitGroup
			for encoding, requests := range bombs(t) {
				for range clients {
					all.Go(func() {
						connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
							grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asIs{})), grpc.WithCompressor(sentAs(encoding))) //nolint:staticcheck // the only way to send what no compressor makes
						if err != nil {
							t.Error(err)
							return
						}
						defer func() { assert.NoError(t, connection.Close()) }()
						for range times {
							for _, request := range requests {
								for _, url := range urls {
									if _, err := postOTLP(t.Context(), url, protobuf, request, "Content-Encoding", encoding); err != nil {
										t.Errorf("%s to %s: %v", encoding, url, err)
									}
								}
								err := connection.Invoke(t.Context(), export, request, new([]byte))
								assert.NotEqual(t, codes.Unavailable, status.Code(err), "%s over gRPC: %v", encoding, err)
							}
						}
					})
				}
			}
			body, err := plogotlp.NewExportRequest().MarshalProto()
			require.NoError(t, err)
			for range times {
				got, err := postOTLP(t.Context(), url, protobuf, body, "Authorization", "Bearer secret")
				require.NoError(t, err)
				assert.Equal(t, http.StatusOK, got.status, got.body)
			}
			all.Wait()
			grown := (collector.PeakMemory(t) - before) >> 20
			t.Logf("%s: %d MiB more", name, grown)
			assert.Less(t, grown, int64(300), "MiB")
			assert.True(t, collector.Running())
			assert.Zero(t, collector.Stop(t))
		})
	}
}

// Clients that never send the end of a request, or nothing, hold next to nothing,
// and keep no one else from being served.
func TestSilentClientsLockNobodyOut(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml")})
	grpcAddress, httpAddress := collector.Address(t, "receivers::otlp::protocols::grpc"), collector.Address(t, "receivers::otlp::protocols::http")
	before := collector.PeakMemory(t)
	dial := func(address string) net.Conn {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	for range 200 {
		dial(grpcAddress)
		dial(httpAddress)
	}
	for encoding, requests := range bombs(t) {
		for range 40 {
			connection := dial(httpAddress)
			// The server asks for the body when its handler begins to read it.
			_, err := fmt.Fprintf(connection, "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n", protobuf, encoding)
			require.NoError(t, err)
			line, err := bufio.NewReader(connection).ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "100 Continue")
			_, err = connection.Write(requests[0])
			require.NoError(t, err)
		}
	}
	body, err := plogotlp.NewExportRequest().MarshalProto()
	require.NoError(t, err)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for range 20 {
		got, err := postOTLP(t.Context(), "http://"+httpAddress+"/v1/logs", protobuf, zipped.Bytes(), "Content-Encoding", "gzip")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, got.status, got.body)
	}
	sender, err := harness.NewGRPCSender(grpcAddress)
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	require.NoError(t, sender.Logs(t.Context(), plogotlp.NewExportRequest().Logs()))
	grown := (collector.PeakMemory(t) - before) >> 20
	t.Logf("%d MiB more", grown)
	assert.Less(t, grown, int64(100), "MiB")
}

// The shipped configurations close connections on which nothing happens.
func TestEveryReceiverHasTimeLimits(t *testing.T) {
	files, err := filepath.Glob(harness.Path("distribution", "config", "*.yaml"))
	require.NoError(t, err)
	files = append(files, harness.Path("docker", "collector", "stack.yaml"), harness.Path("examples", "groupbytrace", "collector.yaml"))
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var config struct {
			Receivers map[string]struct{ Protocols map[string]any }
		}
		require.NoError(t, yaml.Unmarshal(text, &config))
		for id, receiver := range config.Receivers {
			for protocol, keys := range map[string][]string{
				"grpc": {"max_recv_msg_size_mib", "read_buffer_size", "max_concurrent_streams", "keepalive"},
				"http": {"max_request_body_size", "read_header_timeout", "read_timeout", "write_timeout", "idle_timeout"},
			} {
				server, ok := receiver.Protocols[protocol].(map[string]any)
				if !ok {
					continue
				}
				seen++
				for _, key := range append(keys, "middlewares") {
					assert.Contains(t, server, key, "%s: %s", file, id)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, seen, 12)
}

// mostMemory is the most memory in MiB that docs/limits.md promises for requests
// within the limits, whatever their number.
const mostMemory = 400

// Requests that are mostly empty messages, as many at a time as there may be, take
// no more memory than documented, and clients are told to send what was not
// processed again.
func TestEmptyMessagesTakeWhatIsDocumented(t *testing.T) {
	t.Parallel()
	const most = 249_900
	list := func(n int, numbers ...int) []byte {
		last := len(numbers) - 1
		content := bytes.Repeat([]byte{byte(numbers[last]<<3 | 2), 0}, n)
		for _, number := range slices.Backward(numbers[:last]) {
			content = otlpnest.Field(number, content)
		}
		return content
	}
	nulls := func(n int) []byte {
		return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat("null,", n) + `null]}]}]}`)
	}
	const json = "application/json"
	for name, attack := range map[string]struct {
		path, contentType string
		body              []byte
		refused           bool
	}{
		"spans":                {"/v1/traces", protobuf, list(most, 1, 2, 2), false},
		"resources":            {"/v1/traces", protobuf, list(most, 1), false},
		"points of histograms": {"/v1/metrics", protobuf, list(most, 1, 2, 2, 9, 1), false},
		"records":              {"/v1/logs", protobuf, list(most, 1, 2, 2), false},
		"entities":             {"/v1/logs", protobuf, list(2_000_000, 1, 1, 3), true},
		"null":                 {"/v1/traces", json, nulls(most), false},
		"more null":            {"/v1/traces", json, nulls(838_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml")})
			url := "http://" + collector.Address(t, "receivers::otlp::protocols::http") + attack.path
			var mu sync.Mutex
			answers := map[int]int{}
			var all sync.WaitGroup
			for range 24 {
				all.Go(func() {
					got, err := postOTLP(t.Context(), url, attack.contentType, attack.body)
					if assert.NoError(t, err) {
						mu.Lock()
						defer mu.Unlock()
						answers[got.status]++
					}
				})
			}
			all.Wait()
			t.Logf("%s: %d MiB, %v", name, collector.PeakMemory(t)>>20, answers)
			assert.LessOrEqual(t, collector.PeakMemory(t)>>20, int64(mostMemory), "MiB")
			if attack.refused {
				assert.Equal(t, map[int]int{http.StatusBadRequest: 24}, answers)
			} else {
				assert.NotZero(t, answers[http.StatusOK])
				assert.Equal(t, 24, answers[http.StatusOK]+answers[http.StatusServiceUnavailable], answers)
			}
			assert.Zero(t, collector.Stop(t))
		})
	}
}
