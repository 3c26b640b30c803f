package reprogenprocessor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// hostile lists strings that naive templating executes, breaks on or shows
// wrongly. CANARY is replaced by the path of a file that code would create.
var hostile = map[string]string{
	"line feed in a comment":     "x\nopen(CANARY, 'w')\n",
	"carriage return":            "x\ropen(CANARY, 'w')\r",
	"carriage return, line feed": "x\r\nopen(CANARY, 'w')\r\n",
	"form feed":                  "x\fopen(CANARY, 'w')\f",
	"coding line":                "# coding: utf-7\n+AAo-open(CANARY, 'w')",
	"double quotes":              `""";open(CANARY, 'w');"""`,
	"single quotes":              `''';open(CANARY, 'w');'''`,
	"single quotes in pieces":    `''`,
	"single quote at the end":    `x'`,
	"raw string and more":        `'''` + "\n" + `open(CANARY, "w")` + "\n" + `r'''`,
	"the hole":                   "@SPEC@",
	"back-slash at the end":      `x\`,
	"two back-slashes":           `x\\`,
	"Windows path":               `C:\Users\N{DASH}\x`,
	"named escape":               `\N{LATIN SMALL LETTER A}\u0027\x27`,
	"NUL":                        "a\x00b",
	"byte 0xFF":                  "a\xffb",
	"half a surrogate":           "a\xed\xa0\x80b",
	"byte order mark":            "\ufeffx",
	"end of file":                "a\x1ab",
	"line separators":            "a\u2028b\u2029c\u0085d",
	"right to left":              "a\u202ecod.exe",
	"above U+FFFF":               "a😀b",
	"DEL":                        "a\x7fb",
	"format string":              "{__import__('os').system('touch CANARY')}",
	"percent":                    "%s %n %(x)s",
	"shell":                      "$(touch CANARY) `touch CANARY`; touch CANARY",
	"HTML":                       "</script><script>alert(1)</script>",
	"Markdown":                   "```\n# heading\n````\n[x](javascript:alert(1))",
	"path upwards":               "../../etc/cron.d/x",
	"Windows path upwards":       `..\..\x`,
	"device name":                "CON",
	"terminal escape":            "\x1b]0;owned\x07\x1b[2J",
	"dunder":                     "__class__.__mro__",
	"very long":                  strings.Repeat("A", 5000),
}

// TestHostileStrings puts each string wherever telemetry can put one, runs
// the script on a real interpreter, and looks for what it must not have done.
func TestHostileStrings(t *testing.T) {
	interpreters := pythons(t)
	code := newSyntax(t, "python_call", `["payload", "args", 0]`)
	for n, name := range slices.Sorted(maps.Keys(hostile)) {
		raw := hostile[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			s := strings.ReplaceAll(strings.ReplaceAll(raw, "CANARY,", `"`+canary+`",`), "CANARY", canary)
			argument := string(jsontree.Encode(jsontree.Array{s, jsontree.Of(s, s)}))
			f := failedCall{
				service: s, name: s, errorType: s, message: s, stack: s,
				payload: call("json", "dumps", "["+argument+"]", `{"sort_keys":true}`),
				attrs:   map[string]any{"ml.run.id": s, "repro.env.X": s, "exception.type": s, "process.command_args": s},
			}
			td := f.traces()
			span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			span.Attributes().PutStr(s, s)
			span.Status().SetMessage(s)
			cfg := testConfig(t, "json")
			produce(t, cfg, td)
			artifact := onlyArtifact(t, cfg)

			for _, file := range []string{"repro.py", "trace.json", "report.md", "../group.json"} {
				for i, b := range []byte(text(t, artifact, file)) {
					require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "%s has byte 0x%02x at %d", file, b, i)
				}
			}
			assert.Equal(t, 2, strings.Count(text(t, artifact, "repro.py"), "'''"))

			// Every version reads every script, in syntax.check.
			for _, py := range inTurn(interpreters, n) {
				assert.Equal(t, 0, py.run(t, artifact, nil).Exit, "the call works, whatever the text")
				info := py.run(t, artifact, nil, "--info")
				assert.Equal(t, 0, info.Exit)
				for _, b := range []byte(info.Stdout + info.Stderr) {
					require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
				}
			}
			code.add(checkOf(t, artifact, argument))
			assert.NoFileExists(t, canary, "something was executed")
		})
	}
}

// newSyntax asks Python itself what is in the scripts of a kind: nothing but the
// code of the kind's template, and data that reads back as it was sent. path says
// where in SPEC the data are, as Python writes it.
func newSyntax(t *testing.T, kind, path string) *examination {
	return newExamination(t, syntaxProgram, kind, path)
}

// syntaxCheck is an artifact's script, and the JSON that was sent for it.
type syntaxCheck struct {
	Name   string `json:"name"`
	Script string `json:"script"`
	Sent   string `json:"sent"`
}

func checkOf(t *testing.T, artifact, sent string) syntaxCheck {
	t.Helper()
	return syntaxCheck{t.Name(), text(t, artifact, "repro.py"), sent}
}

const syntaxProgram = `
import ast, json, sys
first = None
for check in json.load(sys.stdin):
    name = check["name"]
    tree = ast.parse(check["script"].encode("ascii"))
    spec = [n for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "SPEC_TEXT"]
    assert len(spec) == 1 and isinstance(spec[0].value, ast.Constant), name + ": SPEC_TEXT is no constant"
    got = spec[0].value.value
    got = json.loads(got[got.index("\n{"):])
    kind = got["kind"]
    assert kind == sys.argv[1], (name, kind)
    for step in json.loads(sys.argv[2]):
        got = got[step]
    assert got == json.loads(check["sent"]), (name, got, check["sent"])
    spec[0].value = ast.Constant("")
    code = ast.dump(tree)
    first = first or code
    assert code == first, name + ": the data changed the code"
    print(name)
`

// examination asks Python itself about all that a test and its subtests add. Each
// interpreter is started once, reads a list, and prints a line for each that passes.
type examination struct {
	command []string

	mu     sync.Mutex
	checks []any
}

// newExamination has a program look at what was added when the test and its
// subtests have ended.
func newExamination(t *testing.T, program string, args ...string) *examination {
	e := &examination{command: append([]string{"-c", program}, args...)}
	t.Cleanup(func() { e.check(t) })
	return e
}

func (e *examination) add(check any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checks = append(e.checks, check)
}

// check must not end the test at once: it runs as a cleanup, and nothing would
// be reported.
func (e *examination) check(t *testing.T) {
	if t.Failed() {
		return // what is missing was not added
	}
	assert.NotEmpty(t, e.checks)
	in, err := json.Marshal(e.checks)
	assert.NoError(t, err) //nolint:testifylint // see above
	for _, py := range interpreters() {
		cmd := exec.Command(py.path, e.command...)
		cmd.Stdin = bytes.NewReader(in)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		assert.NoError(t, err, "%s: %s", py.path, attr.Cut(stderr.String(), 8192)) //nolint:testifylint // see above
		assert.Equal(t, len(e.checks), bytes.Count(out, []byte("\n")), "each is looked at")
	}
}

// TestHostilePayloads are payloads that readers understand differently, or
// not at all.
func TestHostilePayloads(t *testing.T) {
	long := strings.Repeat("9", 5000)
	for name, tc := range map[string]struct {
		payload string
		attrs   map[string]any
		reason  string // why it is a context; "" for a call
		exit    int
	}{
		"a key in two cases":        {payload: `{"python_module":"json","Python_Module":"os","function":"dumps"}`, reason: "ambiguous", exit: 5},
		"a key in another case":     {payload: `{"PYTHON_MODULE":"json","library":"x","function":"dumps"}`, reason: "ambiguous", exit: 5},
		"a key twice":               {payload: `{"python_module":"json","python_module":"os","function":"dumps"}`, reason: "ambiguous", exit: 5},
		"a nested key twice":        {payload: call("json", "dumps", `[{"a":1,"a":2}]`, "{}"), reason: "ambiguous", exit: 5},
		"nested keys in two cases":  {payload: call("json", "dumps", `[{"N":1,"n":2}]`, "{}"), exit: 0},
		"cut off":                   {payload: `{"python_module":"json","function":"du`, reason: "payload_invalid", exit: 5},
		"another size":              {payload: call("json", "dumps", "[1]", "{}"), attrs: map[string]any{"repro.payload.size": int64(3)}, reason: "payload_truncated", exit: 5},
		"another hash":              {payload: call("json", "dumps", "[1]", "{}"), attrs: map[string]any{"repro.payload.sha256": "00"}, reason: "payload_truncated", exit: 5},
		"too deep":                  {payload: call("json", "dumps", strings.Repeat("[", 250)+strings.Repeat("]", 250), "{}"), reason: "payload_too_deep", exit: 5},
		"far too deep":              {payload: strings.Repeat("[", 200_000), reason: "payload_too_deep", exit: 5},
		"too large":                 {payload: call("json", "dumps", `["`+strings.Repeat("x", 300<<10)+`"]`, "{}"), reason: "payload_too_large", exit: 5},
		"just small enough":         {payload: call("json", "dumps", `["`+strings.Repeat("x", 250<<10)+`"]`, "{}"), exit: 0},
		"escapes grow":              {payload: call("json", "dumps", `["`+strings.Repeat("ä", 120<<10)+`"]`, "{}"), reason: "too_large", exit: 5},
		"no list of arguments":      {payload: call("json", "dumps", `"x"`, "{}"), reason: "payload_invalid", exit: 5},
		"no object":                 {payload: `[1]`, reason: "payload_invalid", exit: 5},
		"no target":                 {payload: `{"args":[]}`, reason: "no_target", exit: 5},
		"no text":                   {attrs: map[string]any{"repro.payload": int64(1)}, reason: "payload_invalid", exit: 5},
		"NaN and infinities":        {payload: call("json", "dumps", `[[NaN,Infinity,-Infinity]]`, "{}"), exit: 0},
		"an integer of 5000 digits": {payload: call("math", "isqrt", `[`+long+`]`, "{}"), exit: 0},
		"an unknown tag":            {payload: call("json", "dumps", `[{"__type__":"pickle","data":"x"}]`, "{}"), exit: 5},
		"a tag that is no text":     {payload: call("json", "dumps", `[{"__type__":["tuple"]}]`, "{}"), exit: 5},
		"a tag without value":       {payload: call("json", "dumps", `[{"__type__":"tuple"}]`, "{}"), exit: 5},
		"a module that is a path":   {payload: call("../json", "dumps", `[1]`, "{}"), exit: 5},
		"a function with a call":    {payload: call("json", "dumps(1)", `[1]`, "{}"), exit: 5},
		"a module in another script": {payload: call("јson", "dumps", `[1]`, "{}"), // Cyrillic
			exit: 5},
		"os.system":               {payload: call("os", "system", `["touch CANARY"]`, "{}"), exit: 4},
		"eval":                    {payload: call("builtins", "eval", `["open('CANARY','w')"]`, "{}"), exit: 4},
		"through a dunder":        {payload: call("json", "__builtins__.eval", `["1"]`, "{}"), exit: 4},
		"through another import":  {payload: call("json", "codecs.open", `["CANARY","w"]`, "{}"), exit: 4},
		"through a class":         {payload: call("json", "JSONDecoder.__init__.__globals__", `[]`, "{}"), exit: 4},
		"private":                 {payload: call("json", "_default_encoder.encode", `[1]`, "{}"), exit: 4},
		"an unknown type of call": {payload: `{"python_module":"json","function":"dumps","args":[1],"call_type":"method"}`, exit: 5},
		"no text as a keyword":    {payload: call("json", "dumps", `[1]`, `{"__type__":"dict","pairs":[[1,2]]}`), exit: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			cfg := testConfig(t, "json", "math", "os")
			f := failedCall{payload: strings.ReplaceAll(tc.payload, "CANARY", canary), attrs: tc.attrs, errorType: "ValueError"}
			produce(t, cfg, f.traces())
			artifact := onlyArtifact(t, cfg)
			var group struct{ Kind string }
			require.NoError(t, json.Unmarshal([]byte(text(t, artifact, "..", "group.json")), &group))
			r := pythons(t)[0].run(t, artifact, nil)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			if tc.reason != "" {
				assert.Equal(t, "context", group.Kind)
				assert.Contains(t, r.Reason, tc.reason)
			} else {
				assert.Equal(t, "python_call", group.Kind)
			}
			assert.NoFileExists(t, canary)
		})
	}
}

// TestFileBesideTheScript plants libraries where Python looks first. Not
// sitecustomize, nor what .pth files import: where the user's own PYTHONPATH
// leads to the folder, Python imports those before any line of the script.
func TestFileBesideTheScript(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "statistics")
	produce(t, cfg, failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"}.traces())
	artifact := onlyArtifact(t, cfg)
	canary := filepath.Join(t.TempDir(), "canary")
	for _, name := range []string{"json", "argparse", "base64", "statistics", "subprocess"} {
		write(t, filepath.Join(artifact, name+".py"), "open("+string(jsontree.Encode(canary))+", 'w')\n")
	}
	for _, py := range pythons(t) {
		r := py.start(t, artifact, nil)
		assert.Equal(t, 1, r.Exit, "%s %s", r.Stdout, r.Stderr)
		cmd := exec.Command(py.path, "repro.py")
		cmd.Dir = artifact
		cmd.Env = append(os.Environ(), "PYTHONPATH=:.")
		require.Error(t, cmd.Run())
		assert.Equal(t, 1, cmd.ProcessState.ExitCode(), "from its own folder")
	}
	assert.NoFileExists(t, canary)
}

// TestForgedLines: no line of a script's output begins with what telemetry
// brought, in keys or values, whatever is shown.
func TestForgedLines(t *testing.T) {
	const forged = "x\nFORGED: reproduced\n FORGED\n\nFORGED"
	attrs := map[string]any{
		"repro.env." + forged: forged, "repro.env.OMP_NUM_THREADS": forged, "repro.env.A": forged, "ml." + forged: forged, "ml.run.id": forged,
		"process.runtime.name": forged, "os.type": forged, "repro.packages": []any{"numpy==" + forged, forged + "==1"}, "db.query.parameter." + forged: forged,
	}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(attrs)
		maps.Copy(out, more)
		return out
	}
	argument := string(jsontree.Encode(jsontree.Array{forged, jsontree.Of(forged, forged)}))
	for name, f := range map[string]failedCall{
		"python_call": {payload: call("json", "dumps", argument, `{"indent":`+string(jsontree.Encode(forged))+`}`), attrs: attrs},
		"raised":      {payload: call("app", "fails", argument, "{}"), attrs: attrs},
		"python_code": {name: "CodeInterpreter.reply", attrs: with(map[string]any{"code": forged, "out.message": printed("ValueError: " + forged)})},
		"genai_chat": {attrs: with(map[string]any{"gen_ai.request.model": forged, "gen_ai.request.stop_sequences": []any{forged}, "server.address": forged,
			"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":` + string(jsontree.Encode(forged)) + `}]}]`})},
		"train_step": {attrs: with(map[string]any{"ml.step": 1, "process.command_args": []any{"python", forged + ".py", forged}, "process.working_directory": forged, "repro.checkpoint.uri": forged})},
		"statement":  {attrs: with(map[string]any{"db.query.text": forged, "db.namespace": forged})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := t.TempDir()
			write(t, filepath.Join(packages, "app.py"), "def fails(*args):\n    print(args[0])\n    raise ValueError(args[0])\n")
			f.service, f.name, f.errorType, f.message, f.stack = forged, cmp.Or(f.name, forged), "ValueError", forged, forged
			artifact := script(t, f, "json", "app")
			for _, flags := range []string{"--info", "--dry-run", "--env-diff", "--apply-env", "--times 2", "--base-url http://127.0.0.1:1 --allow-side-effects", "--no-isolate"} {
				if name == "raised" && flags == "--no-isolate" {
					continue // its output is its own
				}
				fields := strings.Fields(flags)
				if name != "genai_chat" && len(fields) > 2 {
					fields = []string{"--allow-side-effects"}
				}
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, fields...)
				assert.NotEqual(t, 2, r.Exit, r.Stderr)
				for line := range strings.Lines(r.Stderr) {
					assert.False(t, strings.HasPrefix(strings.TrimPrefix(line, " "), "FORGED"), "%s: %q", flags, line)
				}
			}
		})
	}
}
