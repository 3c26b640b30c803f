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

// FuzzNothingIsLost writes anything that decodes and reads it back: it is the
// same but for order and descriptions, so that no two that differ in more have
// one text.
func FuzzNothingIsLost(f *testing.F) {
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
		for kind := range byte(3) {
			f.Add(raw, kind)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind byte) {
		switch kind % 3 {
		case 0:
			td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(raw)
			nothingIsLost(t, traces, td, err, (&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces)
		case 1:
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(raw)
			nothingIsLost(t, metrics, md, err, (&pmetric.JSONMarshaler{}).MarshalMetrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics)
		default:
			ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(raw)
			nothingIsLost(t, logs, ld, err, (&plog.JSONMarshaler{}).MarshalLogs, (&plog.JSONUnmarshaler{}).UnmarshalLogs)
		}
	})
}

func nothingIsLost[T any](t *testing.T, s signal, data T, err error, marshal func(T) ([]byte, error), unmarshal func([]byte) (T, error)) {
	if err != nil {
		return
	}
	before, err := marshal(data)
	require.NoError(t, err)
	if !utf8.Valid(before) {
		return
	}
	content := text(t, s, before, true)
	raw, err := read(s, content)
	require.NoError(t, err, content)
	again, err := unmarshal(raw)
	require.NoError(t, err, content)
	after, err := marshal(again)
	require.NoError(t, err)
	require.Equal(t, canonical(t, before), canonical(t, after), content)
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
