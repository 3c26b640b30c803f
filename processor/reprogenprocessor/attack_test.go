package reprogenprocessor

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trickyModule is an allowed module whose objects are not what they seem. What
// must not happen touches the path in CANARY.
const trickyModule = `
import abc, collections, dataclasses, enum, functools, os, subprocess, sys, types, typing, weakref

def touch(*args): open(os.environ["CANARY"], "w").close()
def fail(*args, **kwargs): raise ValueError("the real one")

class CalledElsewhere:
    __call__ = staticmethod(os.system)
called_elsewhere = CalledElsewhere()

class BuiltElsewhere:
    __init__ = os.system

class MadeElsewhere:
    __new__ = staticmethod(subprocess.run)

class Meta(type):
    __call__ = staticmethod(os.system)
class CalledByMeta(metaclass=Meta): pass

class Liar:
    __module__ = "tricky"
    @property
    def __class__(self):
        touch()
        return types.FunctionType
    __globals__ = globals()
    __call__ = staticmethod(os.system)
liar = Liar()
proxied = weakref.proxy(called_elsewhere)

class Chained:
    @classmethod
    @property
    def lazy(cls):
        touch()
        return fail

class Lazy(types.ModuleType):
    fail = property(touch)
    def __getattr__(self, name): touch()
lazy = Lazy("tricky")
alias = subprocess.Popen[bytes]
space = types.SimpleNamespace(system=os.system)
method = types.MethodType(os.system, called_elsewhere)
cached = functools.lru_cache(maxsize=None)(os.system)

# What applications really have.
class Color(enum.Enum):
    RED = 1
Point = collections.namedtuple("Point", "x y")
class Pair(typing.NamedTuple):
    x: int
@dataclasses.dataclass
class Data:
    x: int
    def __post_init__(self): fail()
class Base(abc.ABC):
    def __init__(self, *args): fail()
class Derived(Base, typing.Generic[typing.TypeVar("T")]):
    def __call__(self, *args): fail()
    @classmethod
    @functools.lru_cache(maxsize=None)
    def remembered(cls): fail()
`

// TestObjectsThatPretend: what Python would run is asked for where Python
// looks for it, and nothing runs on the way.
func TestObjectsThatPretend(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "tricky", "__init__.py"), trickyModule)
	write(t, filepath.Join(packages, "tricky", "__main__.py"), "import tricky; tricky.touch()\ndef fail(): tricky.fail()\n")
	for target, exit := range map[string]int{
		"called_elsewhere": 4, "BuiltElsewhere": 4, "MadeElsewhere": 4, "CalledByMeta": 4, "liar": 4, "proxied": 4,
		"Chained.lazy": 4, "lazy.fail": 4, "lazy.other": 4, "alias": 4, "space.system": 4, "method": 4, "cached": 4,
		"Color": 1, "Point": 3, "Pair": 3, "Data": 1, "Base": 1, "Derived": 1, "Derived.remembered": 1,
		"__main__:fail": 4,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			module, function := "tricky", target
			if inner, name, ok := strings.Cut(target, ":"); ok {
				module, function = module+"."+inner, name
			}
			args := "[1]"
			switch {
			case strings.Contains(target, "."):
				args = "[]"
			case exit == 4:
				args = `["touch ` + canary + `"]`
			}
			cfg := testConfig(t, "tricky.*")
			produce(t, cfg, failedCall{payload: call(module, function, args, "{}"), errorType: "ValueError"}.traces())
			if target == "Color" {
				args = "[7]"
				cfg = testConfig(t, "tricky.*")
				produce(t, cfg, failedCall{payload: call(module, function, args, "{}"), errorType: "ValueError",
					message: "7 is not a valid Color"}.traces())
			}
			r := pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages, "CANARY=" + canary})
			want := []int{exit}
			if exit == 3 { // a tuple with one field is made; one of two fields is a TypeError
				want = []int{0, 3}
			}
			assert.Contains(t, want, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.NotContains(t, r.Reason, "the call tried", "the guard is the second line, not the first")
			assert.NoFileExists(t, canary)
		})
	}
}

// TestGuardOfDescriptors: a name relative to a descriptor is one outside, and
// removing a tree goes that way.
func TestGuardOfDescriptors(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import os, shutil, sqlite3
def tree(path): shutil.rmtree(path)
def entry(path):
    fd = os.open(path, os.O_RDONLY); os.unlink("file", dir_fd=fd)
def renames(path):
    fd = os.open(path, os.O_RDONLY); os.rename("file", "other", src_dir_fd=fd, dst_dir_fd=fd)
def makes(path):
    fd = os.open(path, os.O_RDONLY); os.mkdir("folder", dir_fd=fd)
def mode(path):
    fd = os.open(path + "/file", os.O_RDONLY); os.chmod(fd, 0o777)
def database(path): sqlite3.connect("file:" + path + "/folder?mode=rwc", uri=True)
def link(path):
    os.remove(path + "/link")
def moves(path):
    os.chdir(path); open("folder", "w")
def inside(path):
    os.makedirs("a/b"); open("a/b/c", "w").close(); shutil.rmtree("a")
    with open("d", "w") as f: os.chmod(f.fileno(), 0o600)
`)
	for function, exit := range map[string]int{
		"tree": 4, "entry": 4, "renames": 4, "makes": 4, "mode": 4, "database": 4, "link": 4, "moves": 4, "inside": 0,
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			victim := t.TempDir()
			write(t, filepath.Join(victim, "file"), "x")
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(victim, "link")))
			cfg := testConfig(t, "app")
			produce(t, cfg, failedCall{payload: call("app", function, `["`+victim+`"]`, "{}"), errorType: "ValueError"}.traces())
			for _, py := range pythons(t) {
				r := py.run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages})
				assert.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			}
			entries, err := os.ReadDir(victim)
			require.NoError(t, err)
			assert.Len(t, entries, 2, "nothing is gone, and nothing is new")
			info, err := os.Stat(filepath.Join(victim, "file"))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		})
	}
}

// TestUnusualCalls end in ways that a script could get wrong.
func TestUnusualCalls(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import json, sys
def generates(*args):
    yield 1
    raise ValueError("the real one")
async def awaits(*args):
    raise ValueError("the real one")
async def streams(*args):
    yield 1
    raise ValueError("the real one")
def quiet(*args): yield 1
async def silent(*args): yield 1
async def done(*args): return 1
async def hangs(*args):
    import asyncio, threading
    await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, threading.Event().wait), 0.1)
def parameters(self, module, function, spec, call): raise ValueError("the real one")
def breaks(*args):
    breakpoint()
    raise ValueError("the real one")
def arguments(*args): raise ValueError("the real one" if len(sys.argv) == 1 else "no")
class Unreadable(ValueError):
    @property
    def __notes__(self): raise RuntimeError
    def __str__(self): raise RuntimeError
def unreadable(*args): raise Unreadable()
def lengthy(*args): raise ValueError("\U0001f600" * 20000)
def nested(value):
    depth = 0
    while value: value, depth = value[0], depth + 1
    raise ValueError("the real one" if depth > 90 else "no")
def digits(*args):
    try: json.loads("9" * 5000)
    except ValueError: raise ValueError("the real one")
`)
	nested := "[]"
	for range 95 {
		nested = `{"__type__":"tuple","elements":[` + nested + `]}`
	}
	for function, tc := range map[string]struct {
		args, kwargs, message string
		exit                  int
	}{
		"generates": {exit: 1}, "awaits": {exit: 1}, "streams": {exit: 1}, "quiet": {exit: 0}, "silent": {exit: 0}, "done": {exit: 0}, "hangs": {message: "timeout", exit: 1}, "breaks": {exit: 1},
		"arguments":  {exit: 1},
		"parameters": {kwargs: `{"self":1,"module":2,"function":3,"spec":4,"call":5}`, exit: 1},
		"unreadable": {message: "-", exit: 1},
		"lengthy":    {message: strings.Repeat("😀", 1000), exit: 1},
		"nested":     {args: "[" + nested + "]", exit: 1},
		"digits":     {exit: 1},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			f := failedCall{errorType: "ValueError", message: "the real one"}
			switch tc.message {
			case "":
			case "-":
				f.message, f.errorType = "", "app.Unreadable"
			case "timeout":
				f.message, f.errorType = "", "TimeoutError"
			default:
				f.message = tc.message
			}
			args, kwargs := tc.args, tc.kwargs
			if args == "" {
				args = "[]"
			}
			if kwargs == "" {
				kwargs = "{}"
			}
			f.payload = call("app", function, args, kwargs)
			cfg := testConfig(t, "app")
			produce(t, cfg, f.traces())
			r := pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"PYTHONPATH=" + packages})
			assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		})
	}
}

// TestStoppedFromOutside: a terminal that is closed must not leave a call
// behind that nobody ends.
func TestStoppedFromOutside(t *testing.T) {
	cfg := testConfig(t, "time")
	produce(t, cfg, failedCall{payload: call("time", "sleep", "[600]", "{}"), errorType: "ValueError"}.traces())
	// Where the tests run under nohup, a child would inherit that a hangup is
	// to be ignored, and the script honours that.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, number := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		scratch := t.TempDir()
		cmd := exec.Command(pythons(t)[0].path, filepath.Join(onlyArtifact(t, cfg), "repro.py"))
		cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			entries, err := os.ReadDir(scratch)
			return err == nil && len(entries) == 1
		}, time.Minute, 10*time.Millisecond, "the handlers are set before the folder is made")
		require.NoError(t, cmd.Process.Signal(number))
		require.Error(t, cmd.Wait())
		assert.Equal(t, 5, cmd.ProcessState.ExitCode(), number.String())
		entries, err := os.ReadDir(scratch)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
}

// TestVerdictIsNotPythons: Python ends with 1 for any error, and with other
// codes for other reasons. None of them may pass for a verdict.
func TestVerdictIsNotPythons(t *testing.T) {
	cfg := testConfig(t, "statistics")
	produce(t, cfg, failedCall{payload: call("statistics", "mean", "[[]]", "{}"), errorType: "StatisticsError"}.traces())
	artifact := onlyArtifact(t, cfg)
	script := filepath.Join(artifact, "repro.py")
	broken := func(name, content string) string {
		folder := t.TempDir()
		write(t, filepath.Join(folder, name), content)
		return "PYTHONPATH=" + folder
	}
	canary := filepath.Join(t.TempDir(), "canary")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(artifact, link))
	write(t, filepath.Join(artifact, "argparse.py"), "open('"+canary+"', 'w')\n")
	for name, tc := range map[string]struct {
		command string
		env     []string
		exit    int
	}{
		"a library that raises":     {`"$PY" "$SCRIPT"`, []string{broken("json.py", "raise ValueError")}, 5},
		"a library that ends":       {`"$PY" "$SCRIPT"`, []string{broken("argparse.py", "import sys; sys.exit(1)")}, 5},
		"an empty base64":           {`"$PY" "$SCRIPT"`, []string{broken("base64.py", "")}, 1}, // the call needs none
		"an empty json":             {`"$PY" "$SCRIPT"`, []string{broken("json.py", "")}, 5},
		"an empty re":               {`"$PY" "$SCRIPT" --json`, []string{broken("re.py", "")}, 5},
		"standard input":            {`"$PY" < "$SCRIPT"`, nil, 5},
		"-c":                        {`"$PY" -c 'exec(open(__import__("os").environ["SCRIPT"]).read())'`, nil, 5},
		"PYTHONINSPECT":             {`echo 'raise SystemExit(0)' | "$PY" "$SCRIPT"`, []string{"PYTHONINSPECT=1"}, 1},
		"-i":                        {`echo 'raise SystemExit(0)' | "$PY" -i "$SCRIPT"`, nil, 1},
		"PYTHONSTARTUP":             {`"$PY" "$SCRIPT" </dev/null`, []string{"PYTHONINSPECT=1", "PYTHONSTARTUP=" + filepath.Join(artifact, "argparse.py")}, 1},
		"PYTHONBREAKPOINT":          {`"$PY" "$SCRIPT"`, []string{"PYTHONBREAKPOINT=os.abort"}, 1},
		"warnings as errors":        {`"$PY" -W error "$SCRIPT"`, []string{"PYTHONWARNINGS=error"}, 1},
		"a full disk":               {`"$PY" "$SCRIPT" > /dev/full`, nil, 1},
		"no output":                 {`"$PY" "$SCRIPT" >&- 2>&-`, nil, 1},
		"no input":                  {`"$PY" "$SCRIPT" <&-`, nil, 1},
		"its folder, spelled so":    {`"$PY" "$SCRIPT"`, []string{"PYTHONPATH=" + link}, 1},
		"its folder, spelled oddly": {`"$PY" "$SCRIPT"`, []string{"PYTHONPATH=" + artifact + "/../" + filepath.Base(artifact)}, 1},
		"an abbreviated permission": {`"$PY" "$SCRIPT" --allow-un`, nil, 2},
		"help":                      {`"$PY" "$SCRIPT" --help`, nil, 0},
		"optimised":                 {`"$PY" -OO "$SCRIPT"`, nil, 1},
		"isolated":                  {`"$PY" -I -S "$SCRIPT"`, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/bin/sh", "-c", tc.command)
			cmd.Dir = artifact
			cmd.Env = append(os.Environ(), append(tc.env, "PY="+pythons(t)[0].path, "SCRIPT="+script)...)
			out, err := cmd.CombinedOutput()
			if tc.exit != 0 {
				require.Error(t, err)
			}
			assert.Equal(t, tc.exit, cmd.ProcessState.ExitCode(), "%s", out)
		})
	}
	t.Cleanup(func() { assert.NoFileExists(t, canary) })
}
