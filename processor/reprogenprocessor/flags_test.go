package reprogenprocessor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script writes the artifact of a failure and returns its folder.
func script(t *testing.T, f failedCall, allowed ...string) string {
	cfg := testConfig(t, allowed...)
	produce(t, cfg, f.traces())
	return onlyArtifact(t, cfg)
}

// TestTimes runs a call that fails every second time.
func TestTimes(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import os
def alternates(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        open(path, "w").close()
        raise ValueError("the real one")
def fails(path): raise ValueError("the real one")
def works(path): pass
def other(path): raise KeyError(path)
`)
	for function, tc := range map[string]struct {
		exit   int
		reason string
	}{
		"alternates": {7, "of 4 runs: did not reproduce 2, reproduced 2"},
		"fails":      {1, "ValueError"}, "works": {0, ""}, "other": {3, "KeyError"},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			for _, py := range pythons(t) {
				f := failedCall{payload: call("app", function, `["`+filepath.Join(t.TempDir(), "file")+`"]`, "{}"), errorType: "ValueError", message: "the real one"}
				artifact := script(t, f, "app")
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages}, "--times", "4", "--allow-side-effects")
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, tc.reason)
				assert.Equal(t, 4, strings.Count(r.Stderr, "run "), r.Stderr)
			}
		})
	}
	t.Run("once is enough to know that it cannot run", func(t *testing.T) {
		artifact := script(t, failedCall{payload: call("no_such_module", "f", "[]", "{}"), errorType: "ValueError"}, "no_such_module")
		r := pythons(t)[0].run(t, artifact, nil, "--times", "100")
		assert.Equal(t, 5, r.Exit)
		assert.NotContains(t, r.Stderr, "run 1 of")
	})
	t.Run("not in one process", func(t *testing.T) {
		artifact := script(t, failedCall{payload: call("json", "dumps", "[]", "{}")}, "json")
		assert.Equal(t, 2, pythons(t)[0].run(t, artifact, nil, "--times", "2", "--no-isolate").Exit)
		assert.Equal(t, 2, pythons(t)[0].run(t, artifact, nil, "--times", "0").Exit)
	})
}

// TestBisect lets git itself find the commit that brought the defect.
func TestBisect(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = repository
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	git("init", "-q")
	const good, bad = "def mean(v): return sum(v) / max(len(v), 1)\n", "def mean(v): return sum(v) / len(v)\n"
	for message, content := range [...]string{good, "import no_such_module\n", good + "# 2\n", good + "# 3\n", bad, bad + "# 5\n", bad + "# 6\n"} {
		write(t, filepath.Join(repository, "app.py"), content)
		git("add", "app.py")
		git("commit", "-q", "-m", "commit "+string(rune('0'+message)))
	}
	first := strings.TrimSpace(git("rev-parse", "HEAD~2"))
	artifact := script(t, failedCall{payload: call("app", "mean", "[[]]", "{}"), errorType: "ZeroDivisionError", message: "division by zero"}, "app")
	git("bisect", "start", "HEAD", "HEAD~6")
	out := git("bisect", "run", "env", "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", pythons(t)[0].path, filepath.Join(artifact, "repro.py"), "--bisect")
	assert.Contains(t, out, first+" is the first bad commit")

	py := pythons(t)[0]
	for name, tc := range map[string]struct {
		f     failedCall
		allow []string
		flags []string
		exit  int
	}{
		"good":    {f: failedCall{payload: call("json", "dumps", "[1]", "{}")}, allow: []string{"json"}, exit: 0},
		"bad":     {f: failedCall{payload: call("json", "loads", `["{"]`, "{}")}, allow: []string{"json"}, exit: 1},
		"usage":   {f: failedCall{payload: call("json", "dumps", "[1]", "{}")}, flags: []string{"--no-such-flag"}, exit: 129},
		"refused": {f: failedCall{payload: call("json", "dumps", "[1]", "{}")}, exit: 125},
		"another": {f: failedCall{payload: call("json", "loads", "[1]", "{}"), errorType: "ValueError"}, allow: []string{"json"}, exit: 125},
		"context": {f: failedCall{errorType: "ValueError"}, exit: 125},
		"one process": {f: failedCall{payload: call("json", "loads", "[1]", "{}"), errorType: "ValueError"}, allow: []string{"json"},
			flags: []string{"--no-isolate"}, exit: 125},
	} {
		r := py.run(t, script(t, tc.f, tc.allow...), nil, append(tc.flags, "--bisect")...)
		assert.Equal(t, tc.exit, r.Exit, "%s: %s\n%s", name, r.Stdout, r.Stderr)
	}
}

// TestMatch says what must be the same.
func TestMatch(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def fail(m): raise ValueError(m)\n")
	stack := "Traceback (most recent call last):\n  File \"" + packages + "/app.py\", line 1, in fail\n    raise\nValueError: x\n"
	const same, other = "the loader found no rows", "nothing of the kind was ever said"
	for name, tc := range map[string]struct {
		said, stack, match string
		exit               int
	}{
		"another message":                {other, "", "", 3},
		"another message, but the frame": {other, stack, "", 1},
		"the type is enough":             {other, "", "type", 1},
		"the message, and not the frame": {other, stack, "message", 3},
		"the message":                    {same, "", "message", 1},
		"the frame":                      {other, stack, "frame", 1},
		"another frame":                  {same, strings.ReplaceAll(stack, "in fail", "in work"), "frame", 3},
		"no frame":                       {same, "", "frame", 5},
		"no message":                     {"", stack, "message", 5},
		"nothing like that":              {same, "", "luck", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			artifact := script(t, failedCall{payload: call("app", "fail", `["`+same+`"]`, "{}"), errorType: "ValueError", message: tc.said, stack: tc.stack}, "app")
			var flags []string
			if tc.match != "" {
				flags = []string{"--match", tc.match}
			}
			r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, flags...)
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		})
	}
}

// TestSet gives back what was withheld.
func TestSet(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def show(*a, **k): raise ValueError(repr((a, k)))\n")
	const args = `[{"password":"hunter2hunter2"},"see https://u:hunter2@db/x now"]`
	const kwargs = `{"pin_secret":1234}`
	all := []string{"--set", "args[0].password=a=b", "--set", "payload.args[1]=pw", "--set", "kwargs.pin_secret:=7"}
	for name, tc := range map[string]struct {
		flags  []string
		exit   int
		reason string
	}{
		"all":                {all, 1, `({'password': 'a=b'}, 'see https://u:pw@db/x now'), {'pin_secret': 7}`},
		"one is missing":     {all[2:], 5, "payload.args[0].password; --set PATH=VALUE gives it"},
		"not withheld":       {[]string{"--set", "args[7]=x"}, 2, "withheld are: payload.args[0].password"},
		"no assignment":      {[]string{"--set", "args"}, 2, ""},
		"no JSON":            {[]string{"--set", "kwargs.pin_secret:=x"}, 2, ""},
		"no text in a text":  {[]string{"--set", "args[1]:=7"}, 2, "must be text"},
		"nothing is a value": {[]string{"--set", "args[0].password=", "--set", "args[1]=", "--set", "kwargs.pin_secret:=null"}, 1, "{'password': ''}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			artifact := script(t, failedCall{payload: call("app", "show", args, kwargs)}, "app")
			for _, py := range pythons(t) {
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages}, tc.flags...)
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, tc.reason)
			}
		})
	}
}

// TestInOneProcess: what a debugger needs, with the gates and the guard as
// they are otherwise.
func TestInOneProcess(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import os, sys
def fail(): raise ValueError("the real one")
def leaves(): sys.exit(0)
def spawns(): os.system("true")
def pid(): raise ValueError(str(os.getppid()))
def writes(): open("file", "w").write("x"); raise ValueError("the real one")
`)
	for function, tc := range map[string]struct {
		flags []string
		exit  int
	}{
		"fail":   {nil, 1},
		"leaves": {nil, 3},
		"spawns": {nil, 4},
		"writes": {nil, 1},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			artifact := script(t, failedCall{payload: call("app", function, "[]", "{}"), errorType: "ValueError", message: "the real one"}, "app")
			for _, py := range pythons(t) {
				scratch := t.TempDir()
				r := py.run(t, artifact, []string{"PYTHONPATH=" + packages, "TMPDIR=" + scratch}, "--no-isolate")
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				entries, err := os.ReadDir(scratch)
				require.NoError(t, err)
				assert.Empty(t, entries, "the scratch folder is removed")
			}
		})
	}
	t.Run("gates hold", func(t *testing.T) {
		artifact := script(t, failedCall{payload: call("app", "fail", "[]", "{}")})
		assert.Equal(t, 4, pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages}, "--no-isolate").Exit)
	})
	t.Run("the debugger", func(t *testing.T) {
		artifact := script(t, failedCall{payload: call("app", "fail", "[]", "{}"), errorType: "ValueError", message: "the real one"}, "app")
		for _, py := range pythons(t) {
			cmd := exec.Command(py.path, filepath.Join(artifact, "repro.py"), "--pdb")
			cmd.Stdin = strings.NewReader("p 'typed ' + 'by hand'\nw\nq\n")
			cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			assert.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", out)
			assert.Contains(t, string(out), "typed by hand")
			assert.Contains(t, string(out), "def fail")
		}
	})
}

// TestSeed makes random numbers the same in each run.
func TestSeed(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "import random\ndef draw(): raise ValueError(str(random.random()))\n")
	artifact := script(t, failedCall{payload: call("app", "draw", "[]", "{}"), errorType: "ValueError"}, "app")
	env := []string{"PYTHONPATH=" + packages}
	py := pythons(t)[0]
	first := py.run(t, artifact, env, "--seed", "3").Message
	assert.Equal(t, first, py.run(t, artifact, env, "--seed", "3").Message)
	assert.NotEqual(t, first, py.run(t, artifact, env, "--seed", "4").Message)
}

// TestMemoryLimit: the call gets what was asked for, and no more.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "def take(n): return len(bytearray(n))\n")
	f := failedCall{payload: call("app", "take", "[300000000]", "{}"), errorType: "MemoryError"}
	env := []string{"PYTHONPATH=" + packages}
	py := pythons(t)[0]
	artifact := script(t, f, "app")
	for limit, exit := range map[string]int{"": 0, "100MiB": 1, "1G": 0, "100000000": 1, "original": 5, "much": 2} {
		var flags []string
		if limit != "" {
			flags = []string{"--memory-limit", limit}
		}
		r := py.run(t, artifact, env, flags...)
		assert.Equal(t, exit, r.Exit, "%s: %s\n%s", limit, r.Stdout, r.Stderr)
	}
	f.attrs = map[string]any{"repro.gpu.memory.total": int64(100 << 20)}
	assert.Equal(t, 1, py.run(t, script(t, f, "app"), env, "--memory-limit", "original").Exit)
}

// TestEnvironmentDiff compares without importing.
func TestEnvironmentDiff(t *testing.T) {
	artifact := script(t, failedCall{payload: call("json", "dumps", "[]", "{}"), attrs: map[string]any{
		"process.runtime.version": "3.7.0", "process.runtime.name": "cpython", "repro.env.OMP_NUM_THREADS": "4",
		"repro.packages": []any{"pip==0.0.1", "no-such-package==1.0"}, "repro.env.HF_TOKEN": "x", "repro.env.HOME": "/root",
		"repro.env.OMP_DYNAMIC": "x", "repro.env.MKL_NUM_THREADS": "2",
	}})
	// Telemetry chooses the names: a secret of this machine must not get into the comparison that a bug report shows.
	secrets := []string{"HF_TOKEN=mine-alone", "HOME=/home/mine-alone", "OMP_DYNAMIC=mine alone@", "OMP_NUM_THREADS=8"}
	for _, py := range pythons(t) {
		py.site = true // pip is one of its packages
		r := py.run(t, artifact, secrets, "--env-diff")
		assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		assert.Regexp(t, `process.runtime.version +recorded 3.7.0 +here 3\.`, r.Stderr)
		assert.Regexp(t, `\$OMP_NUM_THREADS +recorded 4 +here 8`, r.Stderr)
		assert.Regexp(t, `no-such-package +recorded 1.0 +here not installed`, r.Stderr)
		assert.Regexp(t, `pip +recorded 0.0.1 +here \d`, r.Stderr)
		assert.NotContains(t, r.Stderr, "process.runtime.name")
		assert.NotRegexp(t, "mine.alone", r.Stdout+r.Stderr)
		assert.Contains(t, r.Stderr, "not compared: HF_TOKEN\n")
		assert.Contains(t, r.Stderr, "not compared: HOME\n")
		assert.Regexp(t, `\$OMP_DYNAMIC +recorded x +here \(of another form\)`, r.Stderr)
		assert.Regexp(t, `\$MKL_NUM_THREADS +recorded 2 +here \(not set\)`, r.Stderr)
	}
	// A failure without a call has the comparison too.
	context := script(t, failedCall{attrs: map[string]any{"repro.env.HF_TOKEN": "x", "repro.env.OMP_NUM_THREADS": "4"}})
	r := pythons(t)[0].run(t, context, secrets, "--env-diff")
	assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	assert.Regexp(t, `\$OMP_NUM_THREADS +recorded 4 +here 8`, r.Stderr)
	assert.NotRegexp(t, "mine.alone", r.Stdout+r.Stderr)
	empty := script(t, failedCall{payload: call("json", "dumps", "[]", "{}")})
	assert.Contains(t, pythons(t)[0].run(t, empty, nil, "--env-diff").Stderr, "nothing was recorded")
}

// TestRegressionTest writes a test, and pytest's own stand-in runs it.
func TestRegressionTest(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// What the test needs of pytest; pytest itself is no dependency.
	write(t, filepath.Join(folder, "pytest.py"), "class Skipped(Exception): pass\ndef skip(reason): raise Skipped(reason)\n")
	const run = "import sys, pytest, test_repro\n" +
		"try:\n    test_repro.test_does_not_reproduce(); print('passed')\n" +
		"except pytest.Skipped: print('skipped')\nexcept AssertionError: print('failed')\n"
	for want, f := range map[string]struct {
		args  string
		allow []string
	}{"passed": {"[1]", []string{"json"}}, "failed": {`[{"__type__":"complex","real":1,"imag":1}]`, []string{"json"}}, "skipped": {"[1]", nil}} {
		artifact := script(t, failedCall{payload: call("json", "dumps", f.args, "{}"), errorType: "TypeError"}, f.allow...)
		for _, py := range pythons(t) {
			cmd := exec.Command(py.path, filepath.Join(artifact, "repro.py"), "--pytest", "--timeout", "60")
			written, err := cmd.Output()
			require.NoError(t, err)
			write(t, filepath.Join(folder, "test_repro.py"), string(written))
			assert.Contains(t, string(written), `['--timeout', '60']`)
			cmd = exec.Command(py.path, "-B", "-c", run)
			cmd.Dir = folder
			out, err := cmd.Output()
			require.NoError(t, err, "%s", out)
			assert.Equal(t, want, strings.TrimSpace(string(out)))
		}
	}
}

// TestJSONIsOneObject: nothing but the verdict is on standard output.
func TestJSONIsOneObject(t *testing.T) {
	artifact := script(t, failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"}, "statistics")
	r := pythons(t)[0].run(t, artifact, nil)
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &fields))
	assert.Len(t, fields, 6)
	for _, k := range []string{"exit", "verdict", "reason", "type", "message", "data"} {
		assert.Contains(t, fields, k)
	}
}

// TestApplyEnvironment: only variables of the script's own list are set, with
// values that lead nowhere.
func TestApplyEnvironment(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), "import os\ndef show(names): raise ValueError(repr([os.environ.get(n) for n in names]))\n")
	artifact := script(t, failedCall{
		payload:   call("app", "show", `[["OMP_NUM_THREADS","CUBLAS_WORKSPACE_CONFIG","MKL_CBWR","LD_PRELOAD","PYTHONSTARTUP","app_env"]]`, "{}"),
		errorType: "ValueError", attrs: map[string]any{
			"repro.env.OMP_NUM_THREADS": int64(3), "repro.env.CUBLAS_WORKSPACE_CONFIG": ":4096:8", "repro.env.MKL_CBWR": "../../x y", "repro.env.LD_PRELOAD": "/tmp/x.so",
			"repro.env.PYTHONSTARTUP": "x.py", "repro.env.app_env": "1", "OMP_DYNAMIC": "TRUE",
		}}, "app")
	env := []string{"PYTHONPATH=" + packages, "OMP_NUM_THREADS=8"}
	for _, py := range pythons(t) {
		assert.Equal(t, "['8', None, None, None, None, None]", py.run(t, artifact, env).Message)
		r := py.run(t, artifact, env, "--apply-env")
		assert.Equal(t, "['3', ':4096:8', None, None, None, None]", r.Message, r.Stderr)
		assert.Contains(t, r.Stderr, "applied: OMP_NUM_THREADS=3\n")
		for _, name := range []string{"MKL_CBWR", "LD_PRELOAD", "PYTHONSTARTUP", "app_env"} {
			assert.Contains(t, r.Stderr, "not applied: "+name+"\n")
		}
	}
	assert.Equal(t, "['3', ':4096:8', None, None, None, None]", pythons(t)[0].run(t, artifact, env, "--apply-env", "--no-isolate").Message)
}
