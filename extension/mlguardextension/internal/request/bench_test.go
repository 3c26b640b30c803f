package request

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// requestBytes is the size of the requests that the shipped configurations take.
const requestBytes = 4 << 20

// plainRequest is a request of that size with records of usual attributes.
func plainRequest(tb testing.TB) []byte {
	tb.Helper()
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range requestBytes / 300 {
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

// attacks have the most of one thing that 4 MiB hold, and, "within", that the
// default limits let pass.
func attacks() map[string][]byte {
	empty := func(n int) []byte { return bytes.Repeat([]byte{1<<3 | 2, 0}, n) }
	records := func(n int) []byte {
		return otlpnest.Field(1, otlpnest.Field(2, bytes.Repeat([]byte{2<<3 | 2, 0}, n)))
	}
	elements := func(n int) []byte { return otlpnest.Logs(nil, nil, otlpnest.Field(5, empty(n))) }
	const most, within = requestBytes/2 - 32, 249_900
	return map[string][]byte{
		"arrays":                  otlpnest.Logs(nil, nil, otlpnest.Arrays(450_000)),
		"maps":                    otlpnest.Logs(nil, nil, otlpnest.Maps(250_000)),
		"within: levels":          otlpnest.Logs(bytes.Split(bytes.Repeat(append(otlpnest.Attribute("k", otlpnest.Maps(160)), "|||"...), 1_000), []byte("|||"))[:1_000], nil, nil),
		"empty records":           records(most),
		"empty resources":         empty(most),
		"elements":                elements(most),
		"attributes":              otlpnest.Logs(make([][]byte, most), nil, nil),
		"within: empty records":   records(within),
		"within: empty resources": empty(within),
		"within: elements":        elements(within),
		"within: attributes":      otlpnest.Logs(make([][]byte, within), nil, nil),
	}
}

// BenchmarkHostileRequest compares what checking and decoding a request cost
// with a plain request of the same size, in turns: "ratio" is the quotient.
// "before" is that of decoding without a check, and "check" the share that the
// check adds to a plain request, over HTTP.
func BenchmarkHostileRequest(b *testing.B) {
	plain := plainRequest(b)
	cost := func(request []byte, checked bool) (checking, all time.Duration) {
		done := make(chan struct{})
		// Each request of a client has a goroutine of its own, and its stack.
		go func() {
			defer close(done)
			begun := time.Now()
			if checked {
				refused := exceeded(NewProtobuf("/v1/logs", defaults), request, 1<<15) != ""
				checking = time.Since(begun)
				if refused {
					all = checking
					return
				}
			}
			_, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(request)
			all = time.Since(begun)
			if err != nil {
				b.Error(err)
			}
		}()
		<-done
		return checking, all
	}
	for name, request := range attacks() {
		b.Run(name, func(b *testing.B) {
			require.LessOrEqual(b, len(request), requestBytes)
			var before, after, plainBefore, plainAfter, plainCheck time.Duration
			for b.Loop() {
				_, all := cost(request, false)
				before += all
				_, all = cost(plain, false)
				plainBefore += all
				_, all = cost(request, true)
				after += all
				check, all := cost(plain, true)
				plainAfter, plainCheck = plainAfter+all, plainCheck+check
			}
			b.ReportMetric(float64(before)/float64(plainBefore), "before")
			b.ReportMetric(float64(after)/float64(plainAfter), "ratio")
			b.ReportMetric(float64(plainCheck)/float64(plainBefore), "check")
		})
	}
}
