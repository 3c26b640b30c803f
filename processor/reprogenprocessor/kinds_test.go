package reprogenprocessor

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// printed is what a code interpreter returns of code that raised.
func printed(raised string) string {
	return "The execution of the generated python code above has failed\nTraceback (most recent call last):\n" +
		"  File \"/app/kernel.py\", line 20, in main\n    exec(code, variables)\n  File \"<string>\", line 1, in <module>\n" + raised + "\n"
}

// generated is the span of an agent whose code raised.
func generated(code, raised string) failedCall {
	return failedCall{name: "CodeInterpreter.reply", attrs: map[string]any{"code": code, "out.message": printed(raised)}}
}

// TestGeneratedCode runs code that a model wrote.
func TestGeneratedCode(t *testing.T) {
	setup := filepath.Join(t.TempDir(), "setup.py")
	write(t, setup, "import statistics\nnumbers = []\n")
	broken := filepath.Join(t.TempDir(), "broken.py")
	write(t, broken, "1 / 0\n")
	mean := generated("print(statistics.mean(numbers))", "statistics.StatisticsError: mean requires at least one data point")
	division := generated("x = 1\nprint('before')\nx / 0", "ZeroDivisionError: division by zero")
	for name, tc := range map[string]struct {
		failedCall
		args   []string
		exit   int
		reason string
		shown  string
	}{
		"not without a flag":         {failedCall: division, exit: 4, reason: "--allow-side-effects", shown: "    x / 0"},
		"a dry run shows it":         {failedCall: division, args: []string{"--dry-run"}, exit: 4, shown: "    print('before')"},
		"reproduced":                 {failedCall: division, args: []string{"--allow-side-effects"}, exit: 1, reason: "ZeroDivisionError", shown: "| before"},
		"its lines are shown":        {failedCall: division, args: []string{"--allow-side-effects"}, exit: 1, shown: `File "<code>", line 3`},
		"repaired":                   {failedCall: generated("1 / 1", "ZeroDivisionError: division by zero"), args: []string{"--allow-side-effects"}, exit: 0},
		"another error":              {failedCall: generated("[][1]", "ZeroDivisionError: division by zero"), args: []string{"--allow-side-effects"}, exit: 3, reason: "IndexError"},
		"no longer Python":           {failedCall: generated("1 +", "ZeroDivisionError: division by zero"), args: []string{"--allow-side-effects"}, exit: 3, reason: "SyntaxError"},
		"never Python":               {failedCall: generated("1 +", "SyntaxError: invalid syntax"), args: []string{"--allow-side-effects"}, exit: 1},
		"an earlier step's variable": {failedCall: mean, args: []string{"--allow-side-effects"}, exit: 5, reason: "--setup"},
		"with the earlier step":      {failedCall: mean, args: []string{"--allow-side-effects", "--setup", setup}, exit: 1},
		"an earlier step that fails": {failedCall: mean, args: []string{"--allow-side-effects", "--setup", broken}, exit: 5, reason: "ZeroDivisionError"},
		"a setup that is not there":  {failedCall: mean, args: []string{"--allow-side-effects", "--setup", broken + "x"}, exit: 2},
		"a name that was never made": {failedCall: generated("nothing", "NameError: name 'nothing' is not defined"), args: []string{"--allow-side-effects"}, exit: 1},
		"a package that is missing": {failedCall: generated("import no_such_package", "ValueError: x"), args: []string{"--allow-side-effects"},
			exit: 5, reason: "install"},
		"it ends the process": {failedCall: generated("import os; os._exit(1)", "ValueError: x"), args: []string{"--allow-side-effects"}, exit: 3, reason: "ended itself"},
		"all of it is shown, and every line as one": {failedCall: generated(strings.Repeat("x = 1\n", 2000)+"# harmless\rlast_words()", "ValueError: x"),
			exit: 4, shown: "    # harmless\n    last_words()\n"},
		"a secret in it": {failedCall: generated("api_key = 'hunter2hunter2'\n1 / 0", "ZeroDivisionError: division by zero"),
			args: []string{"--allow-side-effects"}, exit: 5, reason: "--set"},
		"a secret given again": {failedCall: generated("api_key = 'hunter2hunter2'\n1 / (api_key == 'mine') - 1", "ZeroDivisionError: division by zero"),
			args: []string{"--allow-side-effects", "--set", "code=mine"}, exit: 0},
		"pickle has a flag of its own": {failedCall: generated("import pickle; pickle.loads(b'cos\\nsystem\\n.')", "ValueError: x"),
			args: []string{"--allow-side-effects"}, exit: 4, reason: "--allow-unsafe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			produce(t, cfg, tc.traces())
			artifact := onlyArtifact(t, cfg)
			for _, py := range pythons(t) {
				r := py.run(t, artifact, nil, tc.args...)
				assert.Equal(t, tc.exit, r.Exit, "%s: %s\n%s", py.path, r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, tc.reason)
				assert.Contains(t, r.Stderr, tc.shown)
			}
		})
	}
}

// TestWhatIsGeneratedCode: "code" is a common name, and only code that ran and
// raised can be run again.
func TestWhatIsGeneratedCode(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		kind string
	}{
		"an interpreter's":         {generated("1 / 0", "ZeroDivisionError: division by zero"), `"kind": "python_code"`},
		"another span's":           {failedCall{name: "GET /", attrs: map[string]any{"code": "404", "out.message": printed("ValueError: x")}}, `"kind": "context"`},
		"code that was not run":    {failedCall{name: "CodeInterpreter.reply", attrs: map[string]any{"code": "1 / 0", "out.message": "not allowed"}}, `"kind": "context"`},
		"code without text":        {failedCall{name: "CodeInterpreter.reply", attrs: map[string]any{"code": " \n", "out.message": printed("ValueError: x")}}, `"kind": "context"`},
		"too much code":            {failedCall{name: "CodeInterpreter.reply", attrs: map[string]any{"code": strings.Repeat("x", 300<<10), "out.message": printed("ValueError: x")}}, `"reason": "payload_too_large"`},
		"a call is more than code": {failedCall{name: "CodeInterpreter.reply", payload: call("json", "dumps", "[]", "{}"), attrs: map[string]any{"code": "1", "out.message": printed("ValueError: x")}}, `"kind": "python_call"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			produce(t, cfg, tc.traces())
			assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), tc.kind)
		})
	}
}

// TestHostileCode: nothing of the code is a part of the script, and without
// the flag nothing of it runs.
func TestHostileCode(t *testing.T) {
	code := newSyntax(t, "python_code", `["payload"]`)
	for n, name := range slices.Sorted(maps.Keys(hostile)) {
		raw := hostile[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			s := strings.ReplaceAll(strings.ReplaceAll(raw, "CANARY,", `"`+canary+`",`), "CANARY", canary)
			cfg := testConfig(t, "json")
			f := generated(s, "ValueError: "+s)
			produce(t, cfg, f.traces())
			artifact := onlyArtifact(t, cfg)
			for _, file := range []string{"repro.py", "trace.json", "report.md"} {
				for i, b := range []byte(text(t, artifact, file)) {
					require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "%s has byte 0x%02x at %d", file, b, i)
				}
			}
			for _, py := range inTurn(pythons(t), n) {
				r := py.run(t, artifact, nil)
				assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				for _, b := range []byte(r.Stdout + r.Stderr) {
					require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
				}
			}
			code.add(checkOf(t, artifact, string(jsontree.Encode(jsontree.Of("code", s)))))
			_, err := os.Stat(canary)
			assert.ErrorIs(t, err, os.ErrNotExist, "something was executed")
		})
	}
}

// TestUnwantedKind: a client can ask that nothing be replayed, and for nothing
// more than what it sent allows.
func TestUnwantedKind(t *testing.T) {
	lowered := mean()
	lowered.attrs = map[string]any{"repro.kind": "context"}
	cfg := testConfig(t, "statistics")
	produce(t, cfg, lowered.traces())
	artifact := onlyArtifact(t, cfg)
	r := pythons(t)[0].run(t, artifact, nil)
	assert.Equal(t, 5, r.Exit, r.Stdout)
	assert.Contains(t, r.Stdout, "unwanted")
	assert.NotContains(t, text(t, artifact, "repro.py"), "statistics.mean(")
	assert.Contains(t, text(t, artifact, "report.md"), "the client asks that nothing of it be replayed")

	raised := mean()
	raised.attrs = map[string]any{"repro.kind": "genai_chat"}
	cfg = testConfig(t, "statistics")
	produce(t, cfg, raised.traces())
	assert.Equal(t, 1, pythons(t)[0].run(t, onlyArtifact(t, cfg), nil).Exit)
}

// division is a kind of artifacts that divides two recorded numbers. It is all that a
// new kind takes: a package like this one, and a line in kinds.
func division() *kind.Kind {
	const script = `
class Division(Plan):
    """Two numbers, one divided by the other."""
    left_out = "isolation and judging"

    def permit(self, gates):
        return self

    def describe(self):
        return ["divide: %d by %d" % (self.payload["a"], self.payload["b"])]

    def source(self):
        return ["print(%d / %d)" % (self.payload["a"], self.payload["b"])]

    def perform(self, child):
        child.arm()
        try:
            self.payload["a"] / self.payload["b"]
        except ZeroDivisionError as error:
            child.show(error)
            return judge(self.spec, error)
        return Verdict(NOT_REPRODUCED, "it can be divided")

KINDS["division"] = Division
`
	return &kind.Kind{
		Name: "division",
		Recognise: func(span ptrace.Span) bool {
			_, ok := span.Attributes().Get("math.divisor")
			return ok
		},
		Read: func(span ptrace.Span) (*failure.Call, failure.Reason) {
			number := func(key string) jsontree.Number {
				v, _ := span.Attributes().Get(key)
				return jsontree.Int(v.Int())
			}
			return &failure.Call{Tree: jsontree.Of("a", number("math.dividend"), "b", number("math.divisor")), Function: "division", Weight: 64}, ""
		},
		Parts: func(jsontree.Object) []string { return []string{"division"} },
		Files: fstest.MapFS{"script/division.py.tmpl": {Data: []byte(script)}},
		Head: func(h *kind.Head, spec jsontree.Object) {
			h.Add("divide", string(jsontree.Encode(spec.Object("payload"))))
		},
	}
}

// TestANewKind registers a kind as the root registers its own. A failed span of it
// becomes an artifact of that kind, and the artifact reproduces the failure.
func TestANewKind(t *testing.T) {
	factory := newFactory(func() kind.Registry { return append(kinds(), division()) })
	for _, capture := range []bool{true, false} {
		cfg := testConfig(t)
		cfg.CaptureContent = capture
		p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		failed := failedCall{name: "divide", errorType: "ZeroDivisionError", message: "division by zero",
			attrs: map[string]any{"math.dividend": 1, "math.divisor": 0}}
		require.NoError(t, p.ConsumeTraces(t.Context(), failed.traces()))
		require.NoError(t, p.Shutdown(t.Context()))
		artifact := onlyArtifact(t, cfg)
		script := text(t, artifact, "repro.py")
		if !capture {
			assert.Equal(t, "context", groups(t, cfg)[0].Kind, "content is withheld without a line of the kind")
			assert.NotContains(t, script, `"a":`)
			continue
		}
		assert.Equal(t, "division", groups(t, cfg)[0].Kind)
		assert.Contains(t, script, `"kind": "division"`)
		assert.Contains(t, script, `divide     {"a":1,"b":0}`)
		for _, py := range pythons(t) {
			r := py.run(t, artifact, nil)
			assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Stderr, "divide: 1 by 0")
		}
	}
}
