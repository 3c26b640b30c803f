package reprogenprocessor

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestCallInParts runs what is made of spans that have each part of a call in
// an attribute of its own, as an Elixir application that uses Snakepit would
// send them.
func TestCallInParts(t *testing.T) {
	statistics := map[string]any{"library": "statistics", "python_module": "statistics", "function": "mean",
		"args": "[[]]", "kwargs": "{}", "call_type": "function"}
	but := func(change map[string]any) map[string]any {
		m := maps.Clone(statistics)
		maps.Copy(m, change)
		return m
	}
	snakepit := map[string]any{}
	for k, v := range statistics {
		snakepit["snakepit."+k] = v
	}
	for name, tc := range map[string]struct {
		attrs  map[string]any
		exit   int
		kind   string
		reason string
		shown  string
	}{
		"JSON":                             {attrs: statistics, exit: 1, shown: "call: statistics.mean([])"},
		"Snakepit's names":                 {attrs: snakepit, exit: 1, shown: "call: statistics.mean([])"},
		"structured":                       {attrs: but(map[string]any{"args": []any{[]any{}}, "kwargs": map[string]any{}}), exit: 1, shown: "call: statistics.mean([])"},
		"structured, of every type":        {attrs: but(map[string]any{"args": []any{[]any{int64(1), 2.5, true, "x", []byte{0, 255}, nil}}, "kwargs": map[string]any{"k": int64(1)}}), exit: 3, shown: `call: statistics.mean([1, 2.5, True, 'x', b'\x00\xff', None], k=1)`},
		"the library is the module":        {attrs: but(map[string]any{"python_module": ""}), exit: 1},
		"no keywords":                      {attrs: but(map[string]any{"kwargs": ""}), exit: 1},
		"tagged values":                    {attrs: but(map[string]any{"args": `[{"__type__":"tuple","__schema__":1,"elements":[]}]`}), exit: 1, shown: "call: statistics.mean(())"},
		"the code's name":                  {attrs: map[string]any{"code.function.name": "statistics.mean", "args": "[[]]"}, exit: 1},
		"the code's name, as it was":       {attrs: map[string]any{"code.namespace": "statistics", "code.function": "mean", "args": "[[]]"}, exit: 1},
		"a payload without a target":       {attrs: map[string]any{"code.function.name": "statistics.mean", "repro.payload": `{"args":[[]]}`}, exit: 1},
		"a payload of Snakepit's":          {attrs: map[string]any{"snakepit.payload": call("statistics", "mean", "[[]]", "{}")}, exit: 1},
		"a payload is more than parts":     {attrs: but(map[string]any{"repro.payload": call("statistics", "median", "[[]]", "{}")}), exit: 1, shown: "call: statistics.median([])"},
		"a payload's hash is Snakepit's":   {attrs: map[string]any{"snakepit.payload": call("statistics", "mean", "[[]]", "{}"), "snakepit.payload.sha256": "00"}, exit: 5, kind: "context", reason: "payload_truncated"},
		"cut arguments":                    {attrs: but(map[string]any{"args": "[["}), exit: 5, kind: "context", reason: "payload_invalid"},
		"arguments that are no list":       {attrs: but(map[string]any{"args": "{}"}), exit: 5, kind: "context", reason: "payload_invalid"},
		"a key twice":                      {attrs: but(map[string]any{"kwargs": `{"a":1,"a":2}`}), exit: 5, kind: "context", reason: "ambiguous"},
		"too many arguments":               {attrs: but(map[string]any{"args": "[" + strings.Repeat(" ", 300<<10) + "]"}), exit: 5, kind: "context", reason: "payload_too_large"},
		"too many arguments, structured":   {attrs: but(map[string]any{"args": []any{strings.Repeat("x", 300<<10)}}), exit: 5, kind: "context", reason: "payload_too_large"},
		"a function without its arguments": {attrs: map[string]any{"library": "statistics", "function": "mean"}, exit: 5, kind: "context", reason: "no_arguments"},
		"a function's name alone":          {attrs: map[string]any{"code.function.name": "statistics.mean"}, exit: 5, kind: "context", reason: "no_payload"},
		"arguments of nothing":             {attrs: map[string]any{"args": "[[]]"}, exit: 5, kind: "context", reason: "no_payload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "statistics")
			produce(t, cfg, failedCall{name: "snakepit.grpc.execute", errorType: "statistics.StatisticsError", attrs: tc.attrs}.traces())
			artifact := onlyArtifact(t, cfg)
			r := pythons(t)[0].run(t, artifact, nil)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.reason)
			assert.Contains(t, r.Stderr, tc.shown)
			if tc.kind == "" {
				tc.kind = "python_call"
			}
			assert.Regexp(t, `(?m)^kind +`+tc.kind+`\b`, pythons(t)[0].run(t, artifact, nil, "--info").Stderr)
		})
	}
}

// TestArgumentsAreRedactedAsATree: arguments that came as JSON are in the files
// only as what was decoded and redacted.
func TestArgumentsAreRedactedAsATree(t *testing.T) {
	cfg := testConfig(t, "statistics")
	// Only a reader of JSON sees what the number belongs to.
	produce(t, cfg, failedCall{attrs: map[string]any{"library": "statistics", "function": "mean", "args": "[]", "kwargs": `{"pwd"  :  4711471147}`}}.traces(),
		failedCall{trace: 2, attrs: map[string]any{"kwargs": `{"pwd"  :  4711471147}`}}.traces())
	for _, a := range artifacts(t, cfg) {
		for _, file := range []string{"repro.py", "trace.json", "report.md"} {
			assert.NotContains(t, text(t, a, file), "4711471147", file)
		}
	}
}

// TestPartsOfAnotherProcess: Snakepit's process server answers a call that
// raised, and its span has the parts.
func TestPartsOfAnotherProcess(t *testing.T) {
	for _, order := range []string{"call first", "failure first"} {
		t.Run(order, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t, "statistics"))
			failed := failedCall{service: "elixir", name: "snakepit.grpc.execute", errorType: "StatisticsError", trace: 1, attrs: map[string]any{"snakepit.correlation_id": "c1"}}
			called := failedCall{service: "bridge", name: "BridgeService/ExecuteTool", trace: 2, attrs: map[string]any{
				"snakepit.correlation_id": "c1", "library": "statistics", "function": "mean", "args": "[[]]"}}
			if order == "call first" {
				w.unfailed(called)
			}
			w.span(failed)
			if order != "call first" {
				w.unfailed(called)
			}
			w.pass(waitingConfig(t).SiblingWait)
			artifact := onlyArtifact(t, w.cfg)
			assert.Equal(t, 1, pythons(t)[0].run(t, artifact, nil).Exit)
			assert.Equal(t, "bridge", readTrace(t, artifact).PayloadFrom.Service)
		})
	}
}

// TestPartsThatDoNotFit: where the arguments of another process do not fit
// together, the call is not made of the part that does.
func TestPartsThatDoNotFit(t *testing.T) {
	w := newWorld(t, waitingConfig(t, "statistics"))
	w.span(failedCall{errorType: "StatisticsError", attrs: map[string]any{"correlation_id": "c-1"}})
	w.unfailed(failedCall{trace: 9, attrs: map[string]any{
		"correlation_id": "c-1", "python_module": "statistics", "function": "mean",
		"args":   `["` + strings.Repeat("x", 200<<10) + `"]`,
		"kwargs": `{"weights":"` + strings.Repeat("x", 100<<10) + `"}`,
	}})
	w.pass(10 * time.Second)
	assert.Contains(t, specText(t, onlyArtifact(t, w.cfg)), `"reason": "payload_too_large"`)
}

// TestAnAttributeTwice: pdata can hold a key of a map twice.
func TestAnAttributeTwice(t *testing.T) {
	twice := map[string]any{"aa": 1, "ab": 2}
	for name, arguments := range map[string]any{"kwargs": twice, "args": []any{twice}} {
		td := failedCall{attrs: map[string]any{"library": "statistics", "function": "mean", name: arguments}}.traces()
		var m ptrace.ProtoMarshaler
		b, err := m.MarshalTraces(td)
		require.NoError(t, err)
		td, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces([]byte(strings.ReplaceAll(string(b), "\x02ab", "\x02aa")))
		require.NoError(t, err)
		cfg := testConfig(t)
		produce(t, cfg, td)
		assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"reason": "ambiguous"`, name)
	}
}
