package reprogenprocessor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// machineryBegins is how the line below a script's data begins.
const machineryBegins = "# ======== The machinery begins here."

// emptyMean is a call of plain values whose client recorded what clients do.
func emptyMean() failedCall {
	return failedCall{
		name: "mean", payload: call("statistics", "mean", "[[]]", "{}"), errorType: "statistics.StatisticsError",
		message: "mean requires at least one data point", attrs: map[string]any{
			"process.runtime.name": "cpython", "process.runtime.version": "3.12.1", "ml.run.id": "run-7", "host.name": "node-1",
		},
	}
}

// TestPartsFollowThePayload: a script has what its call needs, and nothing of
// what other calls need.
func TestPartsFollowThePayload(t *testing.T) {
	array := tensor("ndarray", "float32", "[2]", "null", "")
	for name, tc := range map[string]struct {
		failedCall
		lines   int
		without []string
		with    []string
	}{
		"plain values": {emptyMean(), 1160, []string{"class Tensor", "frombuffer", "base64", "__needs_ref__", "import http.client", "--device", "--base-url", `"--set", type`, "def fits", "def holds", "APPLICABLE"},
			[]string{"--env-diff", "class Landlock", "addaudithook"}},
		"a class's method": {failedCall{payload: call("datetime", "date.fromisoformat", `["x"]`, "{}"), attrs: map[string]any{"process.runtime.version": "3.12.1"}}, 1160,
			[]string{"class Tensor"}, []string{"__mro__"}},
		"a tuple":  {failedCall{payload: call("math", "dist", `[{"__type__":"tuple","elements":[1]}]`, "{}")}, 1210, []string{"class Tensor", "frombuffer"}, []string{"base64"}},
		"an array": {failedCall{payload: call("math", "dist", "["+array+"]", "{}")}, 1490, []string{"import torch", "torch.frombuffer"}, []string{"numpy.frombuffer", "--device"}},
		"a tensor": {failedCall{payload: call("math", "dist", "["+tensor("tensor", "float32", "[2]", "null", "")+"]", "{}")}, 1490, []string{"numpy.frombuffer"}, []string{"torch.frombuffer"}},
		"a secret": {failedCall{payload: call("math", "dist", "[]", `{"password":"hunter2hunter2"}`)}, 1210, nil, []string{"--set"}},
		"a variable": {failedCall{payload: call("math", "dist", "[]", "{}"), attrs: map[string]any{"repro.env.OMP_NUM_THREADS": "1"}}, 1160, nil,
			[]string{"APPLICABLE"}},
		"a NaN":          {failedCall{payload: call("math", "dist", "[]", "{}"), attrs: map[string]any{"repro.trigger": "nan"}}, 1160, nil, []string{"def holds"}},
		"nothing at all": {failedCall{errorType: "ValueError", message: "x"}, 270, []string{"subprocess.Popen", "sys.addaudithook(", "class Landlock", "hmac"}, []string{"--info"}},
		"code":           {generated("1 / 0", "ZeroDivisionError: x"), 920, []string{"class ModuleGates", "import http.client"}, []string{"--setup"}},
		"a conversation": {asked(nil), 1120, []string{"class ModuleGates", "--header"}, []string{"--base-url", "--model"}},
		"a training":     {trained([]any{"python", "train.py"}, nil), 1210, []string{"class ModuleGates", "import http.client"}, []string{"--script-arg"}},
	} {
		t.Run(name, func(t *testing.T) {
			written := text(t, script(t, tc.failedCall, "statistics"), "repro.py")
			lines := strings.Count(written, "\n")
			t.Logf("%d lines", lines)
			assert.Less(t, lines, tc.lines)
			for _, absent := range tc.without {
				assert.NotContains(t, written, absent)
			}
			for _, present := range tc.with {
				assert.Contains(t, written, present)
			}
		})
	}
}

// requireHead checks what a person sees of a script.
func requireHead(t *testing.T, artifact string, shown ...string) {
	t.Helper()
	written := text(t, artifact, "repro.py")
	lines := strings.SplitN(written, "\n", 41)
	head := strings.Join(lines[:40], "\n")
	for _, label := range append(shown, "\nerror ", "\nwhere ", "\nrun ", "python3 repro.py") {
		assert.Contains(t, head, label)
	}
	assert.Equal(t, 1, strings.Count(written, "\n"+machineryBegins))
	beforeMachinery, _, _ := strings.Cut(written, "\n"+machineryBegins)
	assert.NotContains(t, beforeMachinery, "import ")
	readable, _ := scriptText(t, artifact)
	for line := range strings.Lines(readable) {
		assert.LessOrEqual(t, len(line), 119)
	}
}

// TestHeadOfEveryGoldenCase: what failed stands in the first 40 lines.
func TestHeadOfEveryGoldenCase(t *testing.T) {
	eachCase(t, func(t *testing.T, folder string, cfg *Config) {
		produce(t, cfg, golden.ReadTraces(t, filepath.Join(folder, "case.txt")))
		for _, artifact := range artifacts(t, cfg) {
			requireHead(t, artifact)
		}
	})
}

// TestHeadOfLongFailures: what is long is abbreviated where people read, and
// whole where the script reads.
func TestHeadOfLongFailures(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	many := strings.TrimSuffix(strings.Repeat(`"one more argument of many",`, 1000), ",")
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf(`"name_%d":%d`, i, i)
	}
	for name, tc := range map[string]struct {
		failedCall
		shown []string
	}{
		"a short call": {emptyMean(), []string{"\nerror      statistics.StatisticsError: mean requires at least one data point\n", "\ncall       statistics.mean([])\n", "--plain"}},
		"values as one writes them": {failedCall{payload: call("app", "f", `[null,true,{"a":"it's \"1\""},{"__type__":"tuple","elements":[1,2.50]}]`, `{"k":[1]}`)},
			[]string{`app.f(None, True, {"a": "it's \"1\""}, (1, 2.50), k=[1])`}},
		"a tensor":                  {failedCall{payload: call("app", "f", "["+tensor("tensor", "float32", "[2, 3]", "null", `,"device":"cuda:0"`)+"]", "{}")}, []string{"app.f(<tensor float32 [2, 3] on cuda:0>)"}},
		"a long message":            {failedCall{errorType: "ValueError", message: long}, []string{"\nerror      ValueError: long"}},
		"many lines in a message":   {failedCall{errorType: "ValueError", message: strings.Repeat("line\n", 500)}, []string{`line\nline`}},
		"long arguments":            {failedCall{payload: call("app", "f", "["+many+"]", "{}")}, []string{"\ncall       app.f(\n", `    "one more argument of many",`, "more)"}},
		"one argument of much text": {failedCall{payload: call("app", "f", `["`+long+`"]`, "{}")}, []string{"long long"}},
		"many keywords":             {failedCall{payload: call("app", "f", "[]", "{"+strings.Join(names, ",")+"}")}, []string{"name_0=0", "more)"}},
		"long code":                 {generated(strings.Repeat("x = 1\n", 500)+"1 / 0", "ZeroDivisionError: x"), []string{"\ncode       x = 1\n", "more)"}},
		"a long command":            {trained([]any{"python", "train.py", strings.Repeat("long ", 700)}, nil), []string{"\ncommand    python train.py long", "--script FILE"}},
		"padded":                    {failedCall{payload: emptyMean().payload, errorType: "E", message: "a" + strings.Repeat(" ", 60) + "run  python3 x"}, []string{"\nerror      E: a run python3 x\n"}},
		"a long service":            {failedCall{service: long, name: long, errorType: "E", message: "m"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			requireHead(t, script(t, tc.failedCall, "statistics"), tc.shown...)
		})
	}
}

// plainOf runs a script with --plain, and returns what it printed.
func plainOf(t *testing.T, artifact string, exit int, args ...string) (printed, said string) {
	t.Helper()
	return plainIn(t, "", artifact, exit, args...)
}

// plainIn does the same where Python finds the packages of a folder.
func plainIn(t *testing.T, packages, artifact string, exit int, args ...string) (printed, said string) {
	t.Helper()
	r := forkerOf(t, pythons(t)[0]).output(t, artifact, []string{"PYTHONPATH=" + packages}, append([]string{"--plain"}, args...)...)
	require.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	return r.Stdout, r.Stderr
}

// TestPlain prints each kind's script and runs it with Python alone.
func TestPlain(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def show(*args, **kwargs): raise ValueError(repr((args, kwargs)))\n")
	program := programOf(t, trainer)
	url, seen, sent := modelServer(t)
	deep := strings.Repeat("[", 90) + strings.Repeat("]", 90)
	many := "[" + strings.TrimSuffix(strings.Repeat(`"word",`, 5000), ",") + "]"
	effects := "--allow-side-effects"
	for name, tc := range map[string]struct {
		failedCall
		args []string
		says string // on stderr, the printed script
		has  string // in the printed script
	}{
		"a call":           {emptyMean(), nil, "statistics.StatisticsError: mean requires at least one data point", "statistics.mean([])"},
		"with keywords":    {failedCall{payload: call("app", "show", `[1]`, `{"a":"b","class":null}`)}, nil, "ValueError: ((1,), {'a': 'b', 'class': None})", "**_kwargs"},
		"tagged values":    {failedCall{payload: call("app", "show", `[{"__type__":"tuple","elements":[1]},NaN,{"__type__":"datetime","value":"2026-02-03T04:05:06Z"},{"__type__":"set","elements":[]},{"__type__":"bytes","data":"AP8="}]`, "{}")}, nil, `((1,), nan, datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc), set(), b'\x00\xff')`, "import datetime"},
		"infinite floats":  {failedCall{payload: call("app", "show", `[1e999,-1e999]`, "{}")}, nil, "((inf, -inf), {})", `float("inf")`},
		"a huge integer":   {failedCall{payload: call("math", "sqrt", `[-`+strings.Repeat("9", 5000)+`]`, "{}")}, nil, "Error", "math.sqrt"},
		"much of it":       {failedCall{payload: call("app", "show", many, "{}")}, nil, "'word', 'word'", "app.show(*_args"},
		"nested":           {failedCall{payload: call("app", "show", "["+deep+"]", "{}")}, nil, "ValueError: (([", "app.show"},
		"a recorded seed":  {failedCall{payload: call("app", "show", "[]", "{}"), attrs: map[string]any{"repro.seed": int64(7)}}, nil, "ValueError", "random.seed(7)"},
		"a secret given":   {failedCall{payload: call("app", "show", "[]", `{"password":"hunter2hunter2"}`)}, []string{"--set", "kwargs.password=it's"}, `{'password': "it's"}`, "kwargs"},
		"code":             {generated("x = 1\nprint('before')\nx / 0", "ZeroDivisionError: division by zero"), []string{effects}, "ZeroDivisionError: division by zero", "\nx / 0\n"},
		"code with tabs":   {generated("if 1:\n\tx = 'é'\n\tx / 0", "TypeError: x"), []string{effects}, "TypeError: unsupported operand", `\tx / 0`},
		"no code at all":   {generated("1 +", "SyntaxError: invalid syntax"), []string{effects}, "SyntaxError: invalid syntax", "\n1 +\n"},
		"a training":       {trained([]any{"python", "train.py", "fail"}, nil), []string{"--script", program, effects}, "ValueError: the loss was lost at step 2", "subprocess.run"},
		"a conversation":   {asked(nil), []string{effects, "--base-url", url + "/broken"}, "HTTP Error 500", "os.environ"},
		"an attribute":     {failedCall{payload: `{"python_module":"math","function":"pie","call_type":"module_attr","args":[],"kwargs":{}}`, errorType: "AttributeError"}, nil, "AttributeError: module 'math' has no attribute 'pie'", "\nmath.pie\n"},
		"withheld content": {failedCall{payload: call("app", "show", `["a"]`, "{}"), attrs: map[string]any{"repro.env.API_KEY": "sk-proj-0123456789abcdef0123456789"}}, nil, "ValueError: (('a',), {})", "1 withheld values"},
	} {
		t.Run(name, func(t *testing.T) {
			artifact := script(t, tc.failedCall, "statistics", "app", "math")
			printed, said := plainIn(t, packages, artifact, 0, tc.args...)
			assert.LessOrEqual(t, strings.Count(printed, "\n"), 40)
			assert.Contains(t, printed, tc.has)
			assert.Contains(t, printed, "\n# Expected: ")
			assert.Contains(t, printed, "\n# It leaves out: isolation")
			assert.NotContains(t, printed, "hunter2")
			assert.NotContains(t, said, "Traceback")

			file := filepath.Join(t.TempDir(), "plain.py")
			write(t, file, printed)
			for _, py := range pythons(t) {
				cmd := exec.Command(py.path, file)
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "KEY=key-of-mine", "OPENAI_API_KEY=key-of-mine", "NO_PROXY=*")
				var stderr strings.Builder
				cmd.Stderr = &stderr
				require.Error(t, cmd.Run(), "it fails as the call did")
				assert.Contains(t, stderr.String(), tc.says, printed)
			}
		})
	}
	require.NotNil(t, seen.Load())
	assert.Equal(t, "Bearer key-of-mine", seen.Load().Header.Get("Authorization"))
	assert.Contains(t, *sent.Load(), `"model": "tiny"`)
}

// TestPlainCodeIsWhole: the limit is for what surrounds recorded code.
func TestPlainCodeIsWhole(t *testing.T) {
	t.Parallel()
	printed, _ := plainOf(t, script(t, generated(strings.Repeat("x = 1\n", 500)+"1 / 0", "ZeroDivisionError: x")), 0, "--allow-side-effects")
	assert.Equal(t, 500, strings.Count(printed, "x = 1\n"))
	assert.Contains(t, printed, "# The code has 501 lines, and all of them follow.\n")
	assert.Less(t, strings.Count(printed, "\n"), 541)
}

// TestPlainOfHostileCode: what is printed is the recorded code and nothing
// else, and a terminal can show it.
func TestPlainOfHostileCode(t *testing.T) {
	t.Parallel()
	const program = `
import ast, json, sys
for name, code, printed in json.load(sys.stdin):
    assert all(c == "\n" or " " <= c <= "~" for c in printed), name
    lines = printed.split("\n")
    assert lines[4].startswith("# The code has ") and all(line.startswith("#") for line in lines[:5]), (name, lines)
    if all(c == "\n" or " " <= c <= "~" for c in code):
        assert "\n".join(lines[5:]) == code + "\n", name
    else:
        statement, = ast.parse(printed).body
        assert ast.unparse(statement.value.func) == "exec" and ast.literal_eval(statement.value.args[0].args[0]) == code, name
    print(name)
`
	code := newExamination(t, program)
	for name, raw := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := strings.ToValidUTF8(strings.ReplaceAll(raw, "CANARY", "'/nowhere/at/all'"), "?")
			printed, _ := plainOf(t, script(t, generated(s, "ValueError: "+s)), 0, "--allow-side-effects")
			code.add([3]string{name, s, printed})
		})
	}
}

// TestPlainTensors builds tensors like those of the call.
func TestPlainTensors(t *testing.T) {
	t.Parallel()
	py := torchPython(t)
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), tensorModule)
	stats := `,"stats":{"min":-1.0,"max":2.0,"mean":0.5,"std":0.5}`
	for name, tc := range map[string]struct{ function, args, says string }{
		"by shape":    {"product", tensor("tensor", "float32", "[2, 3]", "null", stats) + "," + tensor("tensor", "float32", "[4, 5]", "null", ""), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"},
		"statistics":  {"within", tensor("tensor", "float32", "[100]", "null", stats) + ",-1.0,2.0", "ValueError: within"},
		"integers":    {"within", tensor("tensor", "int64", "[100]", "null", `,"stats":{"min":3,"max":9}`) + ",3,9", "ValueError: within"},
		"arrays":      {"within", tensor("ndarray", "float64", "[100]", "null", stats) + ",-1.0,2.0", "ValueError: within"},
		"int arrays":  {"within", tensor("ndarray", "uint8", "[100]", "null", `,"stats":{"min":3,"max":9}`) + ",3,9", "ValueError: within"},
		"elements":    {"show", tensor("tensor", "float32", "[2]", plainData(packed(float32(1.5), float32(2))), "") + "," + tensor("ndarray", "int16", "[1, 2]", packedData(packed(int16(7), int16(8))), ""), "float32 [2] [1.5, 2.0]; int16 [1, 2] [[7, 8]]"},
		"truth":       {"show", tensor("tensor", "bool", "[2]", "null", `,"stats":{"mean":1}`) + "," + tensor("ndarray", "bool", "[1]", "null", `,"stats":{"mean":0}`), "bool [2] [True, True]; bool [1] [False]"},
		"complex":     {"show", tensor("tensor", "complex64", "[1]", "null", stats), "complex64 [1] [0j]"},
		"a gradient":  {"gradient", tensor("tensor", "float32", "[2]", "null", stats+`,"requires_grad":true`), "ValueError: True True"},
		"none at all": {"show", tensor("tensor", "float16", "[0, 3]", "null", ""), "float16 [0, 3] []"},
	} {
		t.Run(name, func(t *testing.T) {
			artifact := script(t, failedCall{payload: call("app", tc.function, "["+tc.args+"]", "{}"), errorType: "ValueError"}, "app")
			printed, _ := plainIn(t, packages, artifact, 0)
			assert.LessOrEqual(t, strings.Count(printed, "\n"), 40)
			file := filepath.Join(t.TempDir(), "plain.py")
			write(t, file, printed)
			cmd := exec.Command(py.path, file)
			cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, string(out), tc.says, printed)
		})
	}
}

// TestPlainIsGated: what may not be called is not printed either.
func TestPlainIsGated(t *testing.T) {
	effects := "--allow-side-effects"
	for name, tc := range map[string]struct {
		failedCall
		args []string
		exit int
		says string
	}{
		"no such entry":          {failedCall{payload: call("json", "dumps", "[1]", "{}")}, nil, 4, "module json is not allowed"},
		"a wide package":         {failedCall{payload: call("os", "system", `["true"]`, "{}")}, []string{"--allow-module", "os"}, 4, "os:system permits"},
		"builtins":               {failedCall{payload: call("builtins", "eval", `["1"]`, "{}")}, []string{"--allow-unsafe"}, 4, "never called"},
		"no name":                {failedCall{payload: call("json", "dumps(1)", "[1]", "{}")}, nil, 5, "no name of a module or function"},
		"a withheld value":       {failedCall{payload: call("statistics", "mean", "[[]]", `{"password":"hunter2hunter2"}`)}, nil, 5, "payload.kwargs.password"},
		"what a module imported": {failedCall{payload: call("statistics", "sys.exit", "[]", "{}")}, nil, 4, "sys is defined in sys, which is not allowed"},
		"by way of a codec":      {failedCall{payload: call("json", "codecs.builtins.exec", `["1"]`, "{}")}, []string{"--allow-module", "json"}, 4, "codecs is defined in codecs"},
		"a keyword as a name":    {failedCall{payload: call("statistics", "class", "[]", "{}")}, nil, 5, "no plain script"},
		"code":                   {generated("1 / 0", "ZeroDivisionError: x"), nil, 4, effects},
		"a conversation":         {asked(nil), []string{"--base-url", "http://127.0.0.1:1"}, 4, effects},
		"an address":             {asked(nil), []string{effects}, 4, "because telemetry names it"},
		"a program":              {trained([]any{"python", "train.py"}, nil), []string{effects}, 4, "--script FILE"},
		"a context":              {failedCall{errorType: "ValueError", message: "x"}, nil, 5, "no plain script: this failure has no call"},
		"as JSON, all the same":  {failedCall{payload: call("json", "dumps", "[1]", "{}")}, []string{"--json"}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed, said := plainOf(t, script(t, tc.failedCall, "statistics"), tc.exit, tc.args...)
			if slices.Contains(tc.args, "--json") {
				assert.Contains(t, printed, `"exit": 4`)
				return
			}
			assert.Empty(t, printed)
			assert.Contains(t, said, tc.says)
		})
	}
}

// TestPackagesThatTheCollectorDoesNotKnow: an entry of the command line for
// another package than the call's opens nothing that the package defines; the
// name of one callable does.
func TestPackagesThatTheCollectorDoesNotKnow(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "inner.py"), "def fail(): raise ValueError('the real one')\n")
	write(t, filepath.Join(packages, "outer.py"), "from inner import fail\n")
	for entries, exit := range map[string]int{"outer": 4, "outer inner": 4, "outer inner.*": 4, "outer:fail": 1} {
		artifact := script(t, failedCall{payload: call("outer", "fail", "[]", "{}"), errorType: "ValueError", message: "the real one"})
		var flags []string
		for entry := range strings.FieldsSeq(entries) {
			flags = append(flags, "--allow-module", entry)
		}
		r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, flags...)
		assert.Equal(t, exit, r.Exit, "%s: %s\n%s", entries, r.Stdout, r.Stderr)
	}
	allowed := script(t, failedCall{payload: call("outer", "fail", "[]", "{}"), errorType: "ValueError", message: "the real one"}, "outer", "inner")
	assert.Equal(t, 1, pythons(t)[0].run(t, allowed, []string{"PYTHONPATH=" + packages}).Exit, "the operator's entries are known")
}

// plainSyntax asks Python what a printed script is made of: imports of fixed
// names, and literals, and calls of a list.
const plainSyntax = `
import ast, json, sys
for check in json.load(sys.stdin):
    name, text = check["name"], check["script"]
    assert all(c == "\n" or " " <= c <= "~" for c in text), name
    lines = text.split("\n")
    assert len(lines) <= 41 and lines[1].startswith("# A failure") and lines[2].startswith("# It leaves out: "), name
    assert [line for line in lines if line.startswith("# Expected: ")] == lines[3:4], name
    tree = ast.parse(text.encode("ascii"))
    calls = []
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.With, ast.For, ast.While, ast.Try)), (name, node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            assert {alias.name for alias in node.names} <= set(check["imports"]), (name, ast.dump(node))
        if isinstance(node, ast.Call):
            of_a_result = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
            calls.append("." + node.func.attr if of_a_result else ast.unparse(node.func))
    assert set(calls) <= set(check["calls"]), (name, calls)
    got, = [s.value for s in tree.body if isinstance(s, ast.Assign) and s.targets[0].id == check["variable"]]
    while isinstance(got, ast.Call):
        got = got.args[0] if got.args else got.func.value
    if isinstance(got, ast.List) and isinstance(got.elts[0], ast.Attribute):
        got.elts.pop(0)  # the interpreter
    got = ast.literal_eval(got)
    got = got.decode() if isinstance(got, bytes) else got
    for step in check["path"] or []:
        got = got[step]
    assert got == json.loads(check["sent"]), (name, got, check["sent"])
    print(name)
`

type plainCheck struct {
	Name     string   `json:"name"`
	Script   string   `json:"script"`
	Imports  []string `json:"imports"`
	Calls    []string `json:"calls"`
	Variable string   `json:"variable"`
	Path     []any    `json:"path"`
	Sent     string   `json:"sent"`
}

// TestPlainOfHostileStrings: wherever telemetry has a string, the printed
// script has it in a comment or in a literal, and as it was sent.
func TestPlainOfHostileStrings(t *testing.T) {
	effects := "--allow-side-effects"
	program := programOf(t, trainer)
	code := newExamination(t, plainSyntax)
	canary := filepath.Join(t.TempDir(), "canary")
	for name, raw := range hostile {
		s := strings.ReplaceAll(strings.ReplaceAll(raw, "CANARY,", `"`+canary+`",`), "CANARY", canary)
		if strings.ContainsRune(s, 0) || name == "byte 0xFF" || name == "half a surrogate" {
			s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\x01"), "?") // a command has no such words
		}
		encoded := string(jsontree.Encode(s))
		attrs := map[string]any{"ml.run.id": s, "repro.env.X": s, s: s}
		add := func(kind string, f failedCall, check plainCheck, flags ...string) {
			t.Run(kind+": "+name, func(t *testing.T) {
				t.Parallel()
				f.service, f.name, f.errorType, f.message, f.stack = s, s, s, s, s
				check.Script, _ = plainOf(t, script(t, f, "json"), 0, flags...)
				check.Name = kind + ": " + name
				code.add(check)
				assert.NoFileExists(t, canary)
			})
		}
		argument := string(jsontree.Encode(jsontree.Array{s, jsontree.Of(s, s)}))
		add("call", failedCall{payload: call("json", "dumps", "["+argument+"]", `{"indent":`+encoded+`}`), attrs: attrs},
			plainCheck{Imports: []string{"json"}, Calls: []string{"json.dumps"}, Variable: "_args", Path: []any{0}, Sent: argument})
		add("tagged", failedCall{payload: call("json", "dumps", `[{"__type__":"tuple","elements":[`+encoded+`]}]`, `{"indent":`+encoded+`}`), attrs: attrs},
			plainCheck{Imports: []string{"json", "datetime"}, Calls: []string{"json.dumps"}, Variable: "_args", Path: []any{0, 0}, Sent: encoded})
		chat := asked(map[string]any{"gen_ai.request.model": "m", "gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":` + encoded + `}]}]`})
		chat.attrs[s] = s
		delete(chat.attrs, "gen_ai.system_instructions")
		add("chat", chat, plainCheck{
			Imports: []string{"json", "os", "urllib.request"}, Variable: "body", Path: []any{"messages", 0, "content"}, Sent: encoded,
			Calls: []string{"json.dumps", ".encode", "urllib.request.Request", "urllib.request.OpenerDirector", "opener.add_handler", "urllib.request.HTTPHandler", "urllib.request.HTTPSHandler",
				"urllib.request.HTTPErrorProcessor", "urllib.request.HTTPDefaultErrorHandler", "opener.open", "print", "ascii", ".read", ".decode"},
		}, effects, "--base-url", "http://127.0.0.1:1")
		if len(s) > 4096 {
			continue // an attribute is cut there, and the rest is no call
		}
		add("train", trained([]any{"python", "train.py", s}, map[string]any{"repro.batch.ids": s, "process.working_directory": s}), plainCheck{
			Imports: []string{"os", "subprocess", "sys"}, Variable: "command", Path: []any{1}, Sent: encoded,
			Calls: []string{"sys.exit", "subprocess.run", "dict"},
		}, effects, "--script", program)
	}
}
