package reprogenprocessor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// terminalProgram runs scripts at a terminal of their own, types before they
// start, and answers each question that they ask.
const terminalProgram = `
import json, os, pty, sys
results = []
for job in json.load(sys.stdin):
    pid, fd = pty.fork()
    if pid == 0:
        os.write(1, b"> ")
        sys.stdin.readline()
        os.execve(sys.executable, [sys.executable, job["script"]] + (job["args"] or []), dict(os.environ, PYTHONPATH=job["packages"]))
    os.write(fd, b"\n" + job["before"].encode())
    seen, asked = b"", 0
    while True:
        try:
            data = os.read(fd, 1 << 16)
        except OSError:
            break
        seen += data
        while seen.count(b"Type yes") > asked:
            asked += 1
            os.write(fd, job["answer"].encode() + b"\n")
    results.append({"exit": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "asked": asked, "shown": seen.decode()})
json.dump(results, sys.stdout)
`

// TestYes: no report has a flag that permits what telemetry chose. At a
// terminal, the script says what it would do, and only a typed yes permits it.
func TestYes(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def fail(): raise ValueError('the real one')\ndef writes(path): open(path, 'w')\n")
	canary := filepath.Join(t.TempDir(), "canary")
	code := generated("open("+strconv.Quote(canary)+", 'a').write('x')\n1 / 0", "ZeroDivisionError: division by zero")
	called := failedCall{payload: call("app", "fail", "[]", "{}"), errorType: "ValueError"}
	forged := failedCall{payload: call("pip.__main__", "main", "[]", "{}"), errorType: "ValueError"}
	writes := failedCall{payload: call("app", "writes", "["+strconv.Quote(canary)+"]", "{}"), errorType: "ValueError"}
	type job struct {
		Script   string   `json:"script"`
		Args     []string `json:"args"`
		Packages string   `json:"packages"`
		Before   string   `json:"before"`
		Answer   string   `json:"answer"`
	}
	type told struct {
		Exit  int    `json:"exit"`
		Asked int    `json:"asked"`
		Shown string `json:"shown"`
	}
	cases := []struct {
		name, before, answer string
		failedCall
		args        []string
		exit, asked int
		shown       string
		done        bool // whether the code ran
	}{
		{name: "a call", failedCall: called, answer: "yes", exit: 1, asked: 1, shown: "app.fail would be imported and called"},
		{name: "no", failedCall: called, answer: "no", exit: 4, asked: 1, shown: "--allow-module app:fail permits it"},
		{name: "half a yes", failedCall: called, answer: "y", exit: 4, asked: 1},
		{name: "typed before", failedCall: code, before: "yes\nyes\n", answer: "", exit: 4, asked: 1},
		{name: "forged", failedCall: forged, answer: "no", exit: 4, asked: 1, shown: "pip.__main__.main would be imported and called"},
		{name: "code", failedCall: code, answer: "yes", exit: 1, asked: 1, shown: "    open(", done: true},
		{name: "code, no", failedCall: code, answer: "yes!", exit: 4, asked: 1},
		{name: "a yes is for what was asked", failedCall: writes, answer: "yes", exit: 4, asked: 1, shown: "the call tried open; --allow-side-effects permits it"},
		{name: "the address is no question", failedCall: asked(nil), answer: "yes", exit: 4, shown: "--base-url URL"},
		{name: "for a program", failedCall: called, args: []string{"--json"}, answer: "yes", exit: 4},
		{name: "for git", failedCall: called, args: []string{"--bisect"}, answer: "yes", exit: 125},
		{name: "a look", failedCall: code, args: []string{"--dry-run"}, answer: "yes", exit: 4},
		{name: "what builds code", failedCall: failedCall{payload: call("builtins", "exec", `["1"]`, "{}")}, answer: "yes", exit: 4},
	}
	var jobs []job
	command := regexp.MustCompile(`(?m)^(?:run +|           )?python3 repro\.py.*$`)
	for _, tc := range cases {
		artifact := script(t, tc.failedCall)
		head, _ := scriptText(t, artifact)
		commands := append(command.FindAllString(text(t, artifact, "report.md"), -1), command.FindAllString(head, -1)...)
		require.GreaterOrEqual(t, len(commands), 6, tc.name)
		assert.NotContains(t, strings.Join(commands, "\n"), "--allow", tc.name)
		jobs = append(jobs, job{filepath.Join(artifact, "repro.py"), tc.args, packages, tc.before, tc.answer})

		// Without a terminal the flag is named, and nothing is asked.
		r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, tc.args...)
		assert.NotContains(t, r.Stderr, "Type yes", tc.name)
		if tc.exit == 1 {
			assert.Equal(t, 4, r.Exit, "%s: %s\n%s", tc.name, r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, "; --allow-", tc.name)
		}
	}
	sent, err := json.Marshal(jobs)
	require.NoError(t, err)
	cmd := exec.Command(pythons(t)[0].path, "-c", terminalProgram)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(sent)), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var results []told
	require.NoError(t, json.Unmarshal(out, &results))
	require.Len(t, results, len(cases))
	done := 0
	for i, tc := range cases {
		assert.Equal(t, tc.exit, results[i].Exit, "%s: %s", tc.name, results[i].Shown)
		assert.Equal(t, tc.asked, results[i].Asked, "%s: %s", tc.name, results[i].Shown)
		assert.Contains(t, results[i].Shown, tc.shown, tc.name)
		if tc.done {
			done++
		}
	}
	ran, err := os.ReadFile(canary)
	require.NoError(t, err)
	assert.Len(t, string(ran), done, "only what a yes permitted has run")
}

// TestUnwatched: where the kernel does not help, a call gets at no module in C
// that no audit hook sees into, however it comes by it.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import os
def imports(path, name):
    __import__(name)
    open(path, "w").close()
def history(path):
    import readline
    readline.add_history("x"); readline.write_history_file(path)
def databases(path):
    import dbm.ndbm
    dbm.ndbm.open(path, "c")
def interprets(path):
    import _tkinter
    _tkinter.create().eval("close [open " + path + " w]")
def computes(path):
    import array, asyncio, datetime, decimal, hashlib, json, random, statistics, zlib
    zlib.compress(hashlib.sha256(json.dumps([random.random()]).encode()).digest())
    asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))
`)
	write(t, filepath.Join(packages, "early.py"), `
import ctypes
creat = ctypes.CDLL(None).creat
def makes(path): creat(path.encode(), 0o600)
`)
	py := pythons(t)[0]
	out, err := exec.Command(py.path, "-c", `
import importlib.util, os, sys
from importlib.machinery import EXTENSION_SUFFIXES
names = set(sys.builtin_module_names)
for folder in sys.path:
    if folder.endswith("lib-dynload"):
        names |= {f.split(".")[0] for f in os.listdir(folder) if f.endswith(tuple(EXTENSION_SUFFIXES))}
print("\n".join(sorted(names)))`).Output()
	require.NoError(t, err)
	watched := regexp.MustCompile(`(?s)WATCHED = frozenset\((.*?)\.split`).FindStringSubmatch(text(t, "internal", "artifact", "script", "guard.py.tmpl"))
	require.NotNil(t, watched)
	known := strings.Fields(strings.ReplaceAll(watched[1], `"`, " "))
	canary := filepath.Join(t.TempDir(), "canary")
	quoted := strconv.Quote(canary)
	refused := func(name, module, function, args string) {
		t.Helper()
		artifact := script(t, failedCall{payload: call(module, function, args, "{}"), errorType: "ValueError"}, "app", "early", module+":"+function)
		// Landlock would stay in a process that goes on, so --no-isolate has none, on any kernel.
		r := py.run(t, artifact, []string{"PYTHONPATH=" + packages}, "--no-isolate")
		assert.Equal(t, 4, r.Exit, "%s: %s\n%s", name, r.Stdout, r.Stderr)
		assert.Contains(t, r.Reason, name)
		assert.Contains(t, r.Reason, "--allow-side-effects")
		assert.NoFileExists(t, canary, name)
	}
	built := strings.Fields(string(out)) // a build of Python may lack some
	for function, module := range map[string]string{"history": "readline", "databases": "_dbm", "interprets": "_tkinter"} {
		if slices.Contains(built, module) {
			refused("import "+module, "app", function, "["+quoted+"]")
		}
	}
	if slices.Contains(built, "_ctypes") {
		refused("_ctypes", "early", "makes", "["+quoted+"]")
	}
	if slices.Contains(built, "readline") {
		refused("readline", "readline", "write_history_file", "["+quoted+"]")
	}
	n := 0
	for _, name := range built {
		// xxsubtype and the like are Python's own examples.
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "_test") && !strings.HasPrefix(name, "xx") {
			refused("import "+name, "app", "imports", "["+quoted+","+strconv.Quote(name)+"]")
			n++
		}
	}
	assert.Positive(t, n)
	r := py.run(t, script(t, failedCall{payload: call("app", "computes", `[""]`, "{}"), errorType: "ValueError"}, "app"), []string{"PYTHONPATH=" + packages}, "--no-isolate")
	assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
}
