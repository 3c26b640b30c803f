package golden

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	seed := func(signal, content string) []byte {
		path := filepath.Join(f.TempDir(), signal)
		require.NoError(f, os.WriteFile(path, []byte(content), 0o600))
		raw, err := []byte(nil), error(nil)
		switch signal {
		case "traces":
			raw, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(ReadTraces(f, path))
		case "metrics":
			raw, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(ReadMetrics(f, path))
		case "logs":
			raw, err = (&plog.ProtoMarshaler{}).MarshalLogs(ReadLogs(f, path))
		}
		require.NoError(f, err)
		return raw
	}
	for kind, signal := range []string{"traces", "metrics", "logs"} {
		raw := seed(signal, texts[signal])
		none := seed(signal, signal)
		other := seed(signal, strings.NewReplacer("a=", "A=", `text="1"`, "text=1", "5a", "6a", "[1, ", "[2, ", `unit="s"`, `unit="ms"`).Replace(texts[signal]))
		for _, sides := range [][2][]byte{{raw, raw}, {raw, none}, {none, raw}, {raw, other}, {other, raw}} {
			f.Add(sides[0], sides[1], byte(kind))
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte, kind byte) {
		switch kind % 3 {
		case 0:
			nothingIsLost(t, traces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces, before, after)
		case 1:
			nothingIsLost(t, metrics, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics, before, after)
		default:
			nothingIsLost(t, logs, (&plog.ProtoUnmarshaler{}).UnmarshalLogs, before, after)
		}
	})
}

func nothingIsLost[T any](t *testing.T, c codec[T], decode func([]byte) (T, error), before, after []byte) {
	same := func(data T, content, mark string) {
		raw, err := read(c.signal, content, mark)
		require.NoError(t, err, content)
		again, err := c.unmarshal(raw)
		require.NoError(t, err, content)
		require.Equal(t, canonical(c.tree(t, data)), canonical(c.tree(t, again)), content)
	}
	var sides []T
	for _, raw := range [][]byte{before, after} {
		data, err := decode(raw)
		if err != nil {
			return
		}
		text, err := c.marshal(data)
		require.NoError(t, err)
		if !utf8.Valid(text) {
			return
		}
		sides = append(sides, data)
		same(data, write(c.signal, c.tree(t, data), false), "+")
	}
	marked, err := changed(c.tree(t, sides[0]), c.tree(t, sides[1]))
	if err != nil {
		return
	}
	content := write(c.signal, marked, true)
	same(sides[0], content, "+")
	same(sides[1], content, "-")
}

// canonical returns OTLP's JSON without descriptions of metrics, and sorted
// where order says nothing.
func canonical(request object) string {
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
