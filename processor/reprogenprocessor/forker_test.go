package reprogenprocessor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forkProgram starts Python and imports what takes long once, and then runs
// scripts in processes of their own, several at a time: one for each line that it
// reads. The machinery of a script is compiled once: scripts differ in their data.
const forkProgram = `
import argparse, ast, functools, hmac, importlib, json, os, re, selectors, shutil, signal, subprocess, sys, tempfile, threading, types
for name in sys.argv[1:]:
    importlib.import_module(name)
PATH, ENVIRONMENT, FILES, RUNNING, COMPILED = list(sys.path), dict(os.environ), {}, {}, {}

def machinery(script, args):
    """The code of a script behind its data, and the data."""
    with open(script, encoding="ascii") as file:
        text = file.read()
    before, _, rest = text.partition("SPEC_TEXT = r'''")
    data, _, rest = rest.partition("'''\n")
    key = (text.count("\n", 0, len(text) - len(rest)), rest)
    if "--no-isolate" in args:  # it tells its own frames by its name
        return compile("\n" * key[0] + rest, script, "exec"), data
    if key not in COMPILED:
        COMPILED[key] = compile("\n" * key[0] + rest, "repro.py", "exec")
    return COMPILED[key], data

def start(job):
    code, data = machinery(job["script"], job["args"])
    pid = os.fork()
    if pid:
        RUNNING[pid] = job["id"]
        return
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, job["folder"] + "/stdout", os.O_WRONLY | os.O_CREAT), (2, job["folder"] + "/stderr", os.O_WRONLY | os.O_CREAT)):
            opened = os.open(name, flags, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        os.closerange(3, 256)
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        os.environ.update(v.split("=", 1) for v in job["env"] or [])
        sys.argv = [job["script"]] + job["args"]
        # As Python does for a script, and for PYTHONPATH.
        packages = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        sys.path[:] = [os.path.dirname(job["script"])] + [os.path.abspath(p) for p in packages] + PATH[1:]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__dict__.update(__file__=job["script"], SPEC_TEXT=data)
        exec(code, main.__dict__)
    except SystemExit as left:
        os._exit(left.code)
    finally:
        os._exit(70)  # scripts end their process themselves

ended, ends = os.pipe()
os.set_blocking(ends, False)
signal.set_wakeup_fd(ends)
signal.signal(signal.SIGCHLD, lambda number, frame: None)
waits = selectors.DefaultSelector()
waits.register(0, selectors.EVENT_READ)
waits.register(ended, selectors.EVENT_READ)
left, lines = True, b""
while left:
    for key, _ in waits.select():
        data = os.read(key.fd, 1 << 16)
        if key.fd == 0:
            left, lines = bool(data), lines + data
            *whole, lines = lines.split(b"\n")
            for line in whole:
                start(json.loads(line))
    while RUNNING:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        print(RUNNING.pop(pid), os.waitstatus_to_exitcode(status), flush=True)
`

// forker runs scripts in processes that have their libraries already, and their
// machinery compiled. What it leaves out is the start of Python. The calls
// themselves start Python, as users' scripts do.
type forker struct {
	in  io.WriteCloser
	out *bufio.Scanner
	cmd *exec.Cmd

	writing sync.Mutex
	last    int
	// reading guards what follows. Who waits for a result reads those of others too.
	reading sync.Mutex
	ended   map[int]int
}

// startForker starts Python with libraries until the test ends.
func startForker(t *testing.T, py python, libraries ...string) *forker {
	f, err := newForker(py, libraries...)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.in.Close())
		assert.NoError(t, f.cmd.Wait())
	})
	return f
}

// forkers are those of the interpreters, which serve all tests. They end with
// their standard input, which is this process.
var forkers sync.Map

// forkerOf returns the forker of an interpreter.
func forkerOf(t testing.TB, py python) *forker {
	start, _ := forkers.LoadOrStore(py, sync.OnceValues(func() (*forker, error) { return newForker(py) }))
	f, err := start.(func() (*forker, error))()
	require.NoError(t, err)
	return f
}

func newForker(py python, libraries ...string) (*forker, error) {
	args := append([]string{"-c", forkProgram}, libraries...)
	if !py.site {
		args = append([]string{"-S"}, args...)
	}
	f := &forker{cmd: exec.Command(py.path, args...), ended: make(map[int]int)}
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out, f.cmd.Stderr = bufio.NewScanner(out), os.Stderr
	return f, f.cmd.Start()
}

// wait returns the status of the script with an id.
func (f *forker) wait(id int) (int, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	for {
		if status, ok := f.ended[id]; ok {
			delete(f.ended, id)
			return status, nil
		}
		if !f.out.Scan() {
			return 0, fmt.Errorf("the forker ended: %w", f.out.Err())
		}
		var ended, status int
		if _, err := fmt.Sscan(f.out.Text(), &ended, &status); err != nil {
			return 0, err
		}
		f.ended[ended] = status
	}
}

// run runs an artifact's script with --json from a folder that is not its own.
func (f *forker) run(t testing.TB, artifact string, env []string, args ...string) result {
	t.Helper()
	r := f.output(t, artifact, env, append([]string{"--json"}, args...)...)
	status := r.Exit
	if r.Stdout != "" {
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &r), "%d: %s\n%s", status, r.Stdout, r.Stderr)
	}
	r.Exit = status
	return r
}

// output is run without --json: the result has the status and what was written.
func (f *forker) output(t testing.TB, artifact string, env []string, args ...string) result {
	t.Helper()
	folder := t.TempDir()
	f.writing.Lock()
	f.last++
	id := f.last
	job, err := json.Marshal(map[string]any{"id": id, "script": filepath.Join(artifact, "repro.py"), "folder": folder, "cwd": t.TempDir(), "env": env,
		"args": args})
	if err == nil {
		_, err = f.in.Write(append(job, '\n'))
	}
	f.writing.Unlock()
	require.NoError(t, err)
	status, err := f.wait(id)
	require.NoError(t, err)
	return result{Exit: status, Stdout: text(t, folder, "stdout"), Stderr: text(t, folder, "stderr")}
}

// forks reports whether an environment and flags mean the same to a script that
// was not started by itself: what configures Python is read at its start, and
// without isolation the call is made in the script's own process.
func forks(env, args []string) bool {
	for _, variable := range env {
		path, isPath := strings.CutPrefix(variable, "PYTHONPATH=")
		if !isPath && strings.HasPrefix(variable, "PYTHON") {
			return false
		}
		for _, folder := range filepath.SplitList(path) {
			if _, err := os.Stat(filepath.Join(folder, "sitecustomize.py")); isPath && err == nil {
				return false
			}
		}
	}
	for _, flag := range args {
		if flag == "--no-isolate" || flag == "--pdb" {
			return false
		}
	}
	return true
}
