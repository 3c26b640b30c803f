package request

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// lists are requests with n empty messages in each list that OTLP has.
func lists(n int) map[string][]byte {
	in := func(content []byte, numbers ...int) []byte {
		for _, number := range slices.Backward(numbers) {
			content = otlpnest.Field(number, content)
		}
		return content
	}
	empty := func(number byte) []byte { return bytes.Repeat([]byte{number<<3 | 2, 0}, n) }
	return map[string][]byte{
		"traces resources": empty(1), "traces scopes": in(empty(2), 1), "traces attributes of resources": in(empty(1), 1, 1),
		"traces entities": in(empty(3), 1, 1), "traces keys of an entity": in(empty(3), 1, 1, 3), "traces descriptions of an entity": in(empty(4), 1, 1, 3),
		"traces attributes of scopes": in(empty(3), 1, 2, 1), "traces spans": in(empty(2), 1, 2), "traces attributes": in(empty(9), 1, 2, 2),
		"traces events": in(empty(11), 1, 2, 2), "traces links": in(empty(13), 1, 2, 2),
		"traces attributes of events": in(empty(3), 1, 2, 2, 11), "traces attributes of links": in(empty(4), 1, 2, 2, 13),
		"logs resources": empty(1), "logs scopes": in(empty(2), 1), "logs records": in(empty(2), 1, 2), "logs attributes": in(empty(6), 1, 2, 2),
		"logs elements": in(empty(1), 1, 2, 2, 5, 5), "logs entries": in(empty(1), 1, 2, 2, 5, 6),
		"logs texts":        in(bytes.Repeat([]byte{1<<3 | 2, 2, 1<<3 | 2, 0}, n), 1, 2, 2, 5, 5),
		"logs lists":        in(bytes.Repeat([]byte{1<<3 | 2, 2, 5<<3 | 2, 0}, n), 1, 2, 2, 5, 5),
		"logs maps":         in(bytes.Repeat([]byte{1<<3 | 2, 2, 6<<3 | 2, 0}, n), 1, 2, 2, 5, 5),
		"metrics resources": empty(1), "metrics scopes": in(empty(2), 1), "metrics metrics": in(empty(2), 1, 2), "metrics metadata": in(empty(12), 1, 2, 2),
		"metrics gauges":       in(bytes.Repeat([]byte{2<<3 | 2, 2, 5<<3 | 2, 0}, n), 1, 2),
		"metrics gauge points": in(empty(1), 1, 2, 2, 5), "metrics sum points": in(empty(1), 1, 2, 2, 7), "metrics histogram points": in(empty(1), 1, 2, 2, 9),
		"metrics exponential points": in(empty(1), 1, 2, 2, 10), "metrics summary points": in(empty(1), 1, 2, 2, 11),
		"metrics exemplars": in(empty(5), 1, 2, 2, 5, 1), "metrics quantiles": in(empty(6), 1, 2, 2, 11, 1),
		"metrics counts": in(make([]byte, n), 1, 2, 2, 10, 1, 8, 2), "metrics negative counts": in(make([]byte, n), 1, 2, 2, 10, 1, 9, 2),
	}
}

// kept is the memory that a value keeps, and the value.
func kept(decode func() any) (int64, any) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	value := decode()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), value
}

// Whatever a request has many of, and whatever its encoding, the decoder keeps no
// more memory than is estimated.
func TestMemory(t *testing.T) {
	// rounding is what lists and the test itself need besides.
	const n, rounding = 8_000, 16 << 10
	limits := Limits{Depth: 1_000, Messages: 1 << 20}
	for name, protobuf := range lists(n) {
		for _, s := range ofSignals {
			if !strings.HasPrefix(name, s.name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				check := newProtobuf(s.root, limits)
				require.Empty(t, exceeded(check, protobuf, 1_000))
				memory, value := kept(func() any { return s.hold(protobuf) })
				runtime.KeepAlive(value)
				assert.GreaterOrEqual(t, check.Memory()+rounding, memory)
				assert.Less(t, check.Memory(), 4*memory, "a request is refused for more than it needs")
				assert.LessOrEqual(t, NewProtobuf("/", limits).Memory(), check.Memory())

				json, err := s.json(protobuf)
				require.NoError(t, err)
				for _, body := range [][]byte{json, bytes.ReplaceAll(json, []byte("{}"), []byte("null")), bytes.ReplaceAll(json, []byte("{}"), []byte("{ }"))} {
					check := NewJSON(limits)
					require.Empty(t, exceeded(check, body, 1_000))
					memory, value := kept(func() any { return s.holdJSON(body) })
					runtime.KeepAlive(value)
					assert.GreaterOrEqual(t, check.Memory()+rounding, memory, "%.200s", body)
				}
			})
		}
	}
}

// Of null the decoder makes an empty message.
func TestNullIsAMessage(t *testing.T) {
	limits := Limits{Depth: 64, Messages: 1_000}
	for _, list := range []string{
		`{"resourceSpans":[`, `{"resourceSpans":[{"scopeSpans":[{"spans":[`, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[`,
		`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[`,
	} {
		for _, element := range []string{"null,", " null ,", "null\n,", "{},null,"} {
			assert.Equal(t, LimitMessages, exceeded(NewJSON(limits), []byte(list+strings.Repeat(element, 1_001)), 7))
		}
		assert.Empty(t, exceeded(NewJSON(limits), []byte(list+strings.Repeat("null,", 900)), 7))
	}
	assert.Empty(t, exceeded(NewJSON(limits), []byte(`{"key":"`+strings.Repeat("null,", 1_001)+`"}`), 7))
}
