package mlguardprocessor

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// requestBytes is the size of the requests that the shipped configurations take.
const requestBytes = 4 << 20

// plainRequest is a request of that size with records of usual attributes.
func plainRequest(tb testing.TB) []byte {
	tb.Helper()
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range requestBytes / 310 {
		record := records.AppendEmpty()
		record.SetTimestamp(1)
		record.SetSeverityText("ERROR")
		record.Body().SetStr("step 120 failed: CUDA out of memory, tried to allocate 2 GiB on device 3")
		for _, key := range []string{"exception.type", "exception.message", "code.function.name", "thread.name", "ml.run.id"} {
			record.Attributes().PutStr(key, "a value of usual length")
		}
	}
	request, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	require.NoError(tb, err)
	return request
}

func attacks() map[string][]byte {
	record := otlpnest.Attribute("exception.type", otlpnest.Field(1, []byte("E")))
	emptyRecords := otlpnest.Field(1, otlpnest.Field(2, bytes.Repeat([]byte{2<<3 | 2, 0}, requestBytes/2-16)))
	return map[string][]byte{
		"arrays":          otlpnest.Logs(nil, [][]byte{record}, otlpnest.Arrays(450_000)),
		"maps":            otlpnest.Logs(nil, [][]byte{record}, otlpnest.Maps(250_000)),
		"resource":        otlpnest.Logs([][]byte{otlpnest.Attribute("service.name", otlpnest.Arrays(450_000))}, [][]byte{record}, nil),
		"empty records":   emptyRecords,
		"empty resources": bytes.Repeat([]byte{1<<3 | 2, 0}, requestBytes/2),
		"elements":        otlpnest.Logs(nil, nil, otlpnest.Field(5, bytes.Repeat([]byte{1<<3 | 2, 0}, requestBytes/2-16))),
		"attributes":      otlpnest.Logs(nil, bytesOf(requestBytes/2-16), nil),
		"text":            otlpnest.Logs(nil, nil, otlpnest.Field(1, bytes.Repeat([]byte("x"), requestBytes-64))),
	}
}

func bytesOf(n int) [][]byte { return make([][]byte, n) }

// BenchmarkHostileRequest compares what a request at the limit costs ml_guard
// and what stands behind it, which makes text of each value and encodes all, with a
// plain request of the same size, in turns: "ratio" is the quotient. "decoded" is that
// of pdata's decoder before it, which ml_guard cannot change.
func BenchmarkHostileRequest(b *testing.B) {
	plain := plainRequest(b)
	factory := NewFactory()
	behind := consumertest.NewNop()
	p, err := factory.CreateLogs(b.Context(), processortest.NewNopSettings(metadata.Type), factory.CreateDefaultConfig(), textOf{behind})
	require.NoError(b, err)
	cost := func(request []byte) (decoded, passed time.Duration) {
		done := make(chan struct{})
		// Each request of a client has a goroutine of its own, and its stack.
		go func() {
			defer close(done)
			begun := time.Now()
			logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(request)
			decoded = time.Since(begun)
			if err == nil {
				begun = time.Now()
				err = p.ConsumeLogs(context.Background(), logs)
				passed = time.Since(begun)
			}
			if err != nil {
				b.Error(err)
			}
		}()
		<-done
		return decoded, passed
	}
	for name, request := range attacks() {
		b.Run(name, func(b *testing.B) {
			require.LessOrEqual(b, len(request), requestBytes)
			var decoded, passed, plainDecoded, plainPassed time.Duration
			for b.Loop() {
				d, p := cost(request)
				decoded, passed = decoded+d, passed+p
				d, p = cost(plain)
				plainDecoded, plainPassed = plainDecoded+d, plainPassed+p
			}
			b.ReportMetric(float64(passed)/float64(plainPassed), "ratio")
			b.ReportMetric(float64(decoded)/float64(plainDecoded), "decoded")
		})
	}
}

// textOf does what prometheus, redaction, load_balancing and span_metrics do
// with values, and encodes the request as an exporter does.
type textOf struct{ consumertest.Consumer }

func (t textOf) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	for _, rl := range logs.ResourceLogs().All() {
		for _, v := range rl.Resource().Attributes().All() {
			_ = v.AsString()
		}
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				_ = record.Body().AsString()
				for _, v := range record.Attributes().All() {
					_ = v.AsString()
				}
			}
		}
	}
	if _, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs); err != nil {
		return err
	}
	return t.Consumer.ConsumeLogs(ctx, logs)
}

// BenchmarkNothingToCut is what the section bounds costs usual records. It
// allocates nothing.
func BenchmarkNothingToCut(b *testing.B) {
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(plainRequest(b))
	require.NoError(b, err)
	config := bounds.Default()
	filter := bounds.New(&config)
	b.ReportAllocs()
	for b.Loop() {
		filter.Logs(logs)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(logs.LogRecordCount()), "ns/record")
}

// What is within the limits costs no allocation.
func TestNothingToCutAllocatesNothing(t *testing.T) {
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(plainRequest(t))
	require.NoError(t, err)
	config := bounds.Default()
	filter := bounds.New(&config)
	if n := testing.AllocsPerRun(5, func() { filter.Logs(logs) }); n > 0 {
		t.Errorf("%v allocations for a request within the limits", n)
	}
}
