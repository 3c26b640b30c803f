package withhold_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// position is a place of a text in pdata: the methods that lead to it, and the last one,
// which sets it.
type position struct {
	path []string
	set  func(reflect.Value, string)
}

// positions finds the positions below a type of pdata by its methods, so that one that
// pdata gets later is found too.
func positions(of reflect.Type, path []string) (found []position) {
	at := func(name string) []string { return append(append([]string(nil), path...), name) }
	switch of {
	case reflect.TypeFor[pcommon.Map]():
		return append(mapPositions(path), position{at("a map in a map"), func(v reflect.Value, text string) {
			v.Interface().(pcommon.Map).PutEmptyMap("acme.config").PutStr(text, "x")
		}})
	case reflect.TypeFor[pcommon.Value]():
		return []position{
			{path, func(v reflect.Value, text string) { v.Interface().(pcommon.Value).SetStr(text) }},
			{path, func(v reflect.Value, text string) { v.Interface().(pcommon.Value).SetEmptyMap().PutStr(text, text) }},
		}
	}
	for method := range of.Methods() {
		name, in, out := method.Name, method.Type.NumIn()-1, method.Type.NumOut()
		_, chosen := of.MethodByName("SetEmpty" + name)
		switch {
		case (strings.HasPrefix(name, "Set") || name == "FromRaw") && in == 1 && method.Type.In(1).Kind() == reflect.String:
			found = append(found, position{path, func(v reflect.Value, text string) {
				v.MethodByName(name).Call([]reflect.Value{reflect.ValueOf(text)})
			}})
		case in != 0 || out != 1 || chosen || !strings.Contains(method.Type.Out(0).PkgPath(), "/pdata/") || method.Type.Out(0).Kind() != reflect.Struct:
		default:
			found = append(found, positions(method.Type.Out(0), at(name))...)
		}
	}
	return found
}

// mapPositions are the positions in attributes: keys, and values under keys of each form.
func mapPositions(path []string) (found []position) {
	put := func(key func(string) string, value func(pcommon.Value, string)) {
		found = append(found, position{path, func(v reflect.Value, text string) {
			value(v.Interface().(pcommon.Map).PutEmpty(key(text)), text)
		}})
	}
	for _, prefix := range []string{"", "acme.", "app.", "app/"} {
		put(func(text string) string { return prefix + text }, func(v pcommon.Value, _ string) { v.SetInt(1) })
	}
	for _, key := range []string{"service.name", "ml.run.id", "service.instance.id", "code.file.path", "acme.note", "app.other"} {
		put(func(string) string { return key }, func(v pcommon.Value, text string) { v.SetStr(text) })
		put(func(string) string { return key }, func(v pcommon.Value, text string) { v.SetEmptySlice().AppendEmpty().SetStr(text) })
		put(func(string) string { return key }, func(v pcommon.Value, text string) { v.SetEmptyMap().PutStr(text, text) })
	}
	return found
}

// plant sets a position below a root.
func (p position) plant(root any, text string) {
	v := reflect.ValueOf(root)
	for _, name := range p.path {
		if method := v.MethodByName(name); method.IsValid() {
			v = method.Call(nil)[0]
		}
	}
	p.set(v, text)
}

// tokens are secrets of each kind of form, as identifiers can have them.
var tokens = []string{
	"ghp_" + strings.Repeat("x1y2", 9),
	"hf_" + strings.Repeat("aBcD", 5),
	"hf_" + strings.Repeat("aBcD", 4),
	"eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
	"sk-" + strings.Repeat("proj4", 6),
	"AKIA" + strings.Repeat("Q", 16),
	"glpat-" + strings.Repeat("aB3d", 5),
	"1//0" + strings.Repeat("aB3d", 11),
	"api_key:hunter2sesame",
	"hvs." + strings.Repeat("aB3d", 6),
}

// shapes are what identifiers have around them.
var shapes = []string{"%s", "%s.forward", "Acme.%s", "acme/%s", "acme.%s", "acme:%s", "Acme/%s", "nightly report %s", "chat %s"}

// TestNoSecretLeavesAtAnyPosition plants each token, in some of the shapes by turns, at
// each position of traces, metrics and logs, one by one.
func TestNoSecretLeavesAtAnyPosition(t *testing.T) {
	filter := withhold.New(&withhold.Config{Keep: []string{"acme.*", "body", "status.message"}, Names: []string{"acme*", "nightly report*"}})
	marshal := func(root any) string {
		var data []byte
		var err error
		switch of := root.(type) {
		case ptrace.Traces:
			data, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(of)
		case pmetric.Metrics:
			data, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(of)
		case plog.Logs:
			data, err = (&plog.ProtoMarshaler{}).MarshalLogs(of)
		}
		require.NoError(t, err)
		return string(data)
	}
	apply := func(root any) {
		switch of := root.(type) {
		case ptrace.Traces:
			filter.Traces(of)
		case pmetric.Metrics:
			filter.Metrics(of)
		case plog.Logs:
			filter.Logs(mlattr.WithConcluded(context.Background()), of)
		}
	}
	for signal, fresh := range map[string]func() any{
		"traces":  func() any { return ptrace.NewTraces() },
		"metrics": func() any { return pmetric.NewMetrics() },
		"logs":    func() any { return plog.NewLogs() },
	} {
		found := positions(reflect.TypeOf(fresh()), nil)
		require.Greater(t, len(found), 70, signal)
		for n, p := range found {
			for i, token := range tokens {
				for at := (n + i) % 4; at < len(shapes); at += 4 {
					shape := shapes[at]
					root := fresh()
					p.plant(root, fmt.Sprintf(shape, token))
					require.Contains(t, marshal(root), token, "%s: it was planted at %v", signal, p.path)
					apply(root)
					require.NotContains(t, marshal(root), token, "%s: %s at %v", signal, shape, p.path)
				}
			}
		}
	}
}

// TestWhatIsSaidOfProblems: what ml_metrics says is kept, with the names of ranks and hosts, and
// withheld with what people wrote, or if somebody else wrote it.
func TestWhatIsSaidOfProblems(t *testing.T) {
	filter := withhold.New(&withhold.Config{})
	said := []string{
		"last step 40 at 03:03:56 UTC", "rank 2 (gpu-02, GPU 0) last finished data_load at 03:03:53 UTC",
		"confirmed by 15 GPUs that are busy at 100 % and 210 W, up to 560 W before: they wait for another GPU",
		"data_load 1 → 6.2 s, 2 of 4 ranks, all on gpu-02", "4 × 61.0 GiB held", "12 of the last 100 calls of lookup_order failed, usually 0.4 %",
		"See what rank 2 (gpu-02, GPU 0) does: the others may wait for it. Run py-spy dump with its process id 4242 on gpu-02.",
	}
	withheld := []string{
		"12 of the last 100 calls of alice@example.com failed", "see what rank 2 does +1 202 5550123456",
		"12 of the last 100 calls of please tell my doctor that I have taken all those pills failed", "rank sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF last finished forward",
	}
	for _, concluded := range []bool{true, false} {
		for n, text := range append(slices.Clone(said), withheld...) {
			ld, ctx := plog.NewLogs(), t.Context()
			if concluded {
				ctx = mlattr.WithConcluded(ctx)
			}
			attrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes()
			attrs.PutStr(mlattr.ProblemNext, text)
			attrs.PutEmptySlice(mlattr.ProblemEvidence).AppendEmpty().SetStr(text)
			attrs.PutStr("ml.note", text)
			filter.Logs(ctx, ld)
			next, _ := attrs.Get(mlattr.ProblemNext)
			evidence, _ := attrs.Get(mlattr.ProblemEvidence)
			note, _ := attrs.Get("ml.note")
			assert.NotEqual(t, text, note.Str(), "no attribute of what is said")
			if concluded && n < len(said) {
				assert.Equal(t, []string{text, text}, []string{next.Str(), evidence.Slice().At(0).Str()})
			} else {
				assert.NotEqual(t, text, next.Str())
				if n >= len(said) {
					assert.NotEqual(t, text, evidence.Slice().At(0).Str())
				}
			}
		}
	}
}

// TestOnlyConclusionsKeepTheirBodies: a record is a conclusion because ml_metrics wrote
// it, and not because it says so.
func TestOnlyConclusionsKeepTheirBodies(t *testing.T) {
	filter := withhold.New(&withhold.Config{})
	for _, event := range []string{mlattr.EventChange, mlattr.Problem} {
		for want, ctx := range map[string]context.Context{
			"trainer was slow": mlattr.WithConcluded(t.Context()),
			"[text: 16 bytes]": t.Context(),
		} {
			ld := plog.NewLogs()
			record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			record.SetEventName(event)
			record.Body().SetStr("trainer was slow")
			filter.Logs(ctx, ld)
			assert.Equal(t, want, record.Body().Str())
		}
	}
}
