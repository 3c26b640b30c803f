package golden

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// FuzzNothingIsLost writes anything that decodes and reads it back, and the same
// with what becomes of it marked. Both are the same but for order and
// descriptions, so that no two that differ in more have one text.
func FuzzNothingIsLost(f *testing.F) {
	seeds := map[string][]byte{}
	for signal, content := range texts {
		path := filepath.Join(f.TempDir(), signal)
		require.NoError(f, os.WriteFile(path, []byte(content), 0o600))
		var raw []byte
		var err error
		switch signal {
		case "traces":
			raw, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(ReadTraces(f, path))
		case "metrics":
			raw, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(ReadMetrics(f, path))
		case "logs":
			raw, err = (&plog.ProtoMarshaler{}).MarshalLogs(ReadLogs(f, path))
		}
		require.NoError(f, err)
		seeds[signal] = raw
	}
	for _, before := range seeds {
		for _, after := range seeds {
			for kind := range byte(3) {
				f.Add(before, after, kind)
			}
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte, kind byte) {
		switch kind % 3 {
		case 0:
			nothingIsLost(t, traces, before, after, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces,
				(&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces)
		case 1:
			nothingIsLost(t, metrics, before, after, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics,
				(&pmetric.JSONMarshaler{}).MarshalMetrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics)
		default:
			nothingIsLost(t, logs, before, after, (&plog.ProtoUnmarshaler{}).UnmarshalLogs,
				(&plog.JSONMarshaler{}).MarshalLogs, (&plog.JSONUnmarshaler{}).UnmarshalLogs)
		}
	})
}

func nothingIsLost[T any](t *testing.T, s signal, before, after []byte, decode func([]byte) (T, error),
	marshal func(T) ([]byte, error), unmarshal func([]byte) (T, error),
) {
	jsonOf := func(data T, err error) []byte {
		require.NoError(t, err)
		raw, err := marshal(data)
		require.NoError(t, err)
		return raw
	}
	var sides [][]byte
	for _, raw := range [][]byte{before, after} {
		data, err := decode(raw)
		if err != nil {
			return
		}
		side := jsonOf(data, nil)
		if !utf8.Valid(side) {
			return
		}
		sides = append(sides, side)
		content := text(t, s, side, true)
		again, err := read(s, content, "+")
		require.NoError(t, err, content)
		require.Equal(t, canonical(t, side), canonical(t, jsonOf(unmarshal(again))), content)
	}
	marked, err := changed(parse(t, sides[0]), parse(t, sides[1]))
	if err != nil {
		return
	}
	content := write(s, marked, true)
	for i, mark := range []string{"+", "-"} {
		again, err := read(s, content, mark)
		require.NoError(t, err, content)
		require.Equal(t, canonical(t, sides[i]), canonical(t, jsonOf(unmarshal(again))), content)
	}
}

// canonical returns OTLP's JSON without descriptions of metrics, and sorted
// where order says nothing.
func canonical(t *testing.T, raw []byte) string {
	request, err := decode(raw)
	require.NoError(t, err)
	byKey := func(v any) {
		values, _ := v.([]any)
		slices.SortStableFunc(values, func(x, y any) int {
			a, _ := x.(object)["key"].(string)
			b, _ := y.(object)["key"].(string)
			return cmp.Compare(a, b)
		})
	}
	var sort func(any)
	sort = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				sort(one)
			}
		case object:
			delete(v, "keyStrindex") // profiles have it
			for field, inner := range v {
				sort(inner)
				switch field {
				case "attributes", "filteredAttributes":
					byKey(inner)
				case "kvlistValue":
					byKey(inner.(object)["values"])
				case "metrics":
					for _, metric := range inner.([]any) {
						delete(metric.(object), "description")
					}
					fallthrough
				case "resourceMetrics", "scopeMetrics", "dataPoints", "exemplars":
					slices.SortFunc(inner.([]any), func(x, y any) int { return cmp.Compare(compact(x), compact(y)) })
				}
			}
		}
	}
	sort(request)
	return compact(request)
}
