package decompress

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// limit is that of the shipped configurations on the size of a request.
const limit = 4 << 20

// frame is a zstd frame with one block, of zeros. It is not the last one, so the
// decoder asks for more.
func frame(descriptor byte, header ...byte) []byte {
	const zeros = 1000<<3 | 1<<1
	return append(append([]byte{0x28, 0xb5, 0x2f, 0xfd, descriptor}, header...), zeros&0xff, zeros>>8, 0, 0)
}

// window is a frame that declares a window of 1<<log bytes, and single one whose
// window is its content of size bytes.
func window(log byte) []byte { return frame(0, (log-10)<<3) }

func single(size uint32) []byte { return frame(0xa0, binary.LittleEndian.AppendUint32(nil, size)...) }

func compressed(t testing.TB, content []byte, writer func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := writer(&b)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// writers are the encodings of confighttp that have a stream.
var writers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":            func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"zlib":            func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"deflate":         func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"x-snappy-framed": func(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) },
	"lz4":             func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		encoder, _ := zstd.NewWriter(w)
		return encoder
	},
}

// server is one as any component of the Collector starts it.
func server(t testing.TB) http.Handler {
	t.Helper()
	config := confighttp.NewDefaultServerConfig()
	config.MaxRequestBodySize = limit
	s, err := config.ToServer(t.Context(), nil, componenttest.NewNopTelemetrySettings(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(content)
	}))
	require.NoError(t, err)
	return s.Handler
}

func post(handler http.Handler, encoding string, body io.Reader) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("Content-Encoding", encoding)
	handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// receive decompresses a message as gRPC does.
func receive(name string, message []byte) (string, error) {
	decoder, err := encoding.GetCompressor(name).Decompress(mem.BufferSlice{mem.SliceBuffer(message)}.Reader())
	if err != nil {
		return "", err
	}
	if closer, ok := decoder.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	content, err := io.ReadAll(io.LimitReader(decoder, limit+1))
	return string(content), err
}

// allocated is the number of bytes that f allocates, the least of twelve times:
// what else runs allocates too, and the race detector makes pools forget one in
// four of what they are given.
func allocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 12 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// Whatever a request of a few bytes declares, and whatever its encoding, it costs
// no more than the content that a request may have, and a decoder.
func TestWhatIsDeclaredIsNotAllocated(t *testing.T) {
	bombs := map[string][][]byte{
		"zstd":   {window(29), window(27), window(24), window(41), single(512 << 20), single(64 << 20), single(1 << 31), window(23)},
		"snappy": {binary.AppendUvarint(nil, 1<<32-1), binary.AppendUvarint(nil, 1<<30), append(binary.AppendUvarint(nil, limit), 0)},
	}
	zeros := make([]byte, 2*limit)
	for name, writer := range writers {
		bomb := compressed(t, zeros, writer)
		bombs[name] = append(bombs[name], bomb, bomb[:40])
	}
	handler := server(t)
	// io.ReadAll takes the content several times.
	const most = maxWindow + 4<<20 + 5*limit
	for name, requests := range bombs {
		for i, request := range requests {
			t.Run(name+" "+strconv.Itoa(i), func(t *testing.T) {
				cost := allocated(func() {
					code, _ := post(handler, name, bytes.NewReader(request))
					assert.Equal(t, http.StatusBadRequest, code)
				})
				assert.Less(t, cost, uint64(most), "over HTTP, for %d bytes", len(request))
				if encoding.GetCompressor(name) == nil {
					return
				}
				cost = allocated(func() { _, _ = receive(name, request) })
				assert.Less(t, cost, uint64(most), "over gRPC, for %d bytes", len(request))
			})
		}
	}
	for _, request := range bombs["zstd"][:7] {
		_, err := receive("zstd", request)
		require.ErrorContains(t, err, "exceed")
	}
	assert.Empty(t, slots)
}

// What clients compress arrives, at each level of zstd that does not ask for more
// than the recommended window.
func TestContentArrives(t *testing.T) {
	content := []byte(strings.Repeat("a span of usual length ", 20_000))
	handler := server(t)
	for name, writer := range writers {
		code, got := post(handler, name, bytes.NewReader(compressed(t, content, writer)))
		assert.Equal(t, http.StatusOK, code, "%s: %.200s", name, got)
		assert.Equal(t, string(content), got, name)
	}
	for _, size := range []int{64 << 10, 1 << 20, maxWindow} {
		for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
			message := compressed(t, content, func(w io.Writer) io.WriteCloser {
				encoder, err := zstd.NewWriter(w, zstd.WithEncoderLevel(level), zstd.WithWindowSize(size))
				require.NoError(t, err)
				return encoder
			})
			got, err := receive("zstd", message)
			require.NoError(t, err)
			assert.Equal(t, string(content), got)
		}
	}
	for _, name := range []string{"gzip", "snappy", "zstd"} {
		compressor := encoding.GetCompressor(name)
		assert.Equal(t, name, compressor.Name())
		message := compressed(t, content, func(w io.Writer) io.WriteCloser {
			encoder, err := compressor.Compress(w)
			require.NoError(t, err)
			return encoder
		})
		got, err := receive(name, message)
		require.NoError(t, err)
		assert.Equal(t, string(content), got, name)
	}
	assert.Empty(t, slots)
}

// Clients that do not send the rest of a body keep no one else from being served.
func TestSlowClientsHoldNoDecoder(t *testing.T) {
	handler := server(t)
	for name, writer := range writers {
		message := compressed(t, []byte("content"), writer)
		var ends []*io.PipeWriter
		done := make(chan struct{})
		const clients = 100
		for range clients {
			body, end := io.Pipe()
			ends = append(ends, end)
			go func() {
				defer func() { done <- struct{}{} }()
				post(handler, name, body)
			}()
			// Returns when the server has read it.
			_, err := end.Write(message[:len(message)/2])
			require.NoError(t, err)
		}
		code, got := post(handler, name, bytes.NewReader(message))
		assert.Equal(t, http.StatusOK, code, name)
		assert.Equal(t, "content", got, name)
		for _, end := range ends {
			require.NoError(t, end.Close())
			<-done
		}
	}
	assert.Empty(t, slots)
}

// A handler that answers for as long as a client listens, and reads no body, keeps
// no one else from being served, whatever the client has sent.
func TestUnreadContentHoldsNoDecoder(t *testing.T) {
	for name, writer := range writers {
		message := compressed(t, []byte("content"), writer)
		for range 2 * cap(slots) {
			body, err := stockDecoders[strings.Replace(name, "deflate", "zlib", 1)](io.NopCloser(bytes.NewReader(message)))
			require.NoError(t, err)
			defer func() { assert.NoError(t, body.Close()) }()
		}
		assert.Empty(t, slots, name)
	}
}

// FuzzZstd compares with the decoder of the library, for what it may declare.
func FuzzZstd(f *testing.F) {
	f.Add(window(29))
	f.Add(window(20))
	f.Add(single(100))
	f.Add(compressed(f, []byte("content"), writers["zstd"]))
	f.Fuzz(func(t *testing.T, request []byte) {
		stock, err := zstd.NewReader(bytes.NewReader(request), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		require.NoError(t, err)
		defer stock.Close()
		var expected bytes.Buffer
		_, expectedErr := io.CopyN(&expected, stock, limit+1)
		got, err := receive("zstd", request)
		if expectedErr == nil || errors.Is(expectedErr, io.EOF) {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
		assert.Equal(t, expected.String(), got)
		assert.Empty(t, slots)
	})
}
