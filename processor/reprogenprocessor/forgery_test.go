package reprogenprocessor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forger is an allowed module that wants a verdict of its own: exit 0 for a
// call that raises ValueError.
const forger = `
import atexit, builtins, ctypes, gc, hmac, json, os, shutil, signal, socket, sys, threading
FORGED = json.dumps({"exit": 0, "verdict": "did not reproduce", "reason": "forged", "type": "", "message": "", "data": ""}).encode()
LINE = b"\n" + hmac.new(b"\0" * 32, FORGED, "sha256").hexdigest().encode() + b" " + FORGED + b"\n"
c_write = ctypes.CDLL(None).write

def everywhere(how):
    for fd in range(3, 64):
        try: how(fd)
        except OSError: pass
def real(): raise ValueError("the real one")
def put(text): everywhere(lambda fd: os.write(fd, text))
def in_file():
    with open("forged", "wb") as f: f.write(FORGED)

def writes(): put(FORGED); os._exit(0)
def writes_a_line(): put(LINE); os._exit(0)
def exits(): put(FORGED); sys.exit(0)
def raises(): put(FORGED); real()
def duplicates(): everywhere(lambda fd: os.write(os.dup(fd), FORGED)); os._exit(0)
def sends():
    in_file()
    with open("forged", "rb") as f: everywhere(lambda fd: os.sendfile(fd, f.fileno(), 0, len(FORGED)))
    os._exit(0)
def sockets():
    def how(fd):
        s = socket.fromfd(fd, socket.AF_UNIX, socket.SOCK_STREAM); s.send(FORGED)
    everywhere(how); os._exit(0)
def through_c(): everywhere(lambda fd: c_write(fd, FORGED, len(FORGED))); os._exit(0)
def at_exit(): atexit.register(lambda: (put(FORGED), os._exit(0))); sys.exit(0)
def threaded():
    t = threading.Thread(target=writes); t.start(); t.join()
def competes():
    def forever():
        while True: put(LINE)
    threading.Thread(target=forever, daemon=True).start(); real()
def fills(): put(b"x" * 100 + b"\n") or [put(LINE * 200) for _ in range(50)]; real()
def closes(): os.closerange(3, 64)
def redirects(): everywhere(lambda fd: os.dup2(1, fd))
def prints(): print(FORGED.decode()); print(LINE.decode()); print("did not reproduce: forged"); os._exit(0)

def opens(): everywhere(lambda fd: open(fd, "wb", closefd=False).write(FORGED)); os._exit(0)
def fdopens(): everywhere(lambda fd: os.fdopen(fd, "wb", closefd=False).write(FORGED)); os._exit(0)
def names(form):
    for fd in range(3, 64):
        if os.path.exists(form % fd):
            with open(form % fd, "wb") as f: f.write(FORGED)
    os._exit(0)
def by_dev(): names("/dev/fd/%d")
def by_proc(): names("/proc/self/fd/%d")
def by_pid(): names("/proc/" + str(os.getpid()) + "/fd/%d")
def by_thread(): names("/proc/thread-self/fd/%d")
def by_link():
    os.symlink("/proc/self/fd", "fds"); names("fds/%d")
def copies():
    in_file(); everywhere(lambda fd: shutil.copyfile("forged", "/proc/self/fd/%d" % fd)); os._exit(0)
def low_level(): everywhere(lambda fd: os.write(os.open("/dev/fd/%d" % fd, os.O_WRONLY), FORGED)); os._exit(0)

def objects(): report(gc.get_objects()); real()
def referrers(): gc.get_referrers(sys.modules["__main__"].Verdict); real()
def referents(): gc.get_referents(sys._getframe(3)); real()
def other_frames(): sys._current_frames(); real()
def traces(): sys.settrace(lambda *args: None); real()
def profiles(): sys.setprofile(lambda *args: None); real()
def hooks(): sys.addaudithook(lambda *args: None); real()
def memory(): ctypes.string_at(id(sys), 8); real()

def report(found):
    "Report by whatever reports, or leads there."
    main, seen = sys.modules["__main__"], set()
    def look(value, depth):
        if id(value) in seen or depth > 6: return
        seen.add(id(value))
        if type(value) is type(report) and value.__name__ == "report" and value is not report:
            value(main.Verdict(0, "forged"))
        if type(value).__name__ == "HMAC":
            value.update(FORGED); put(b"\n" + value.hexdigest().encode() + b" " + FORGED + b"\n"); os._exit(0)
        for name in ("__dict__", "__closure__", "__self__", "__func__", "cell_contents", "__defaults__"):
            try: inner = object.__getattribute__(value, name)
            except Exception: continue
            look(inner, depth + 1)
        if isinstance(value, dict) or type(value).__name__ == "mappingproxy": [look(v, depth + 1) for v in list(value.values())]
        if isinstance(value, (list, tuple)): [look(v, depth + 1) for v in list(value)]
    for value in found: look(value, 0)
def frames():
    frame, found = sys._getframe(), []
    while frame:
        found += list(frame.f_locals.values()); frame = frame.f_back
    report(found); real()
def main_module(): report([sys.modules["__main__"].__dict__]); real()
class Text(str):
    def __eq__(self, other): return frames()
    __hash__ = __contains__ = startswith = __eq__
class Path:
    def __fspath__(self): frames()
    __eq__ = __index__ = __fspath__
def verdict(*args): raise sys.modules["__main__"].Verdict(0, "mine")
class Pretends:
    __class__ = property(verdict)
def pretends(): return Pretends()
class Meta(type):
    __module__ = property(verdict)
class Odd(ValueError, metaclass=Meta): pass
def odd(): raise Odd()
class Worse(ValueError):
    __cause__ = __traceback__ = property(verdict)
    def __str__(self): verdict()
def worse(): raise Worse()
def in_the_hook():
    try: open(Text("x"), Text("w")).close()
    except ValueError: pass
    real()
def odd_event(): sys.audit("open", Path(), "w", 0); real()
def empty_event():
    try: sys.audit("open")
    except Exception as e:
        at = e.__traceback__
        while at: report(list(at.tb_frame.f_locals.values())); at = at.tb_next
    real()
def disarms():
    sys.audit("otelcol_ml.disarm"); objects()

def replaces():
    write = os.write
    os.write = lambda fd, data: write(fd, LINE)
    json.dumps = lambda *args, **kwargs: FORGED.decode()
    hmac.new = hmac.HMAC.update = hmac.HMAC.hexdigest = hmac.HMAC.copy = lambda *args, **kwargs: writes()
    os._exit = sys.exit = builtins.open = lambda *args, **kwargs: None
    class Stream:
        def write(self, text): pass
        def flush(self): write(1, b""); raise SystemExit(0)
    sys.stdout = sys.stderr = Stream()
    real()
`

// withoutLandlock returns a folder for PYTHONPATH by which the kernel has no
// Landlock for Python: there is the audit hook alone.
func withoutLandlock(t *testing.T) string {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "sitecustomize.py"), answeringLandlock("-1 if number == 444 else real(number, *args)"))
	return folder
}

// TestForgedVerdicts: a verdict is the script's own, or the call's process
// ended without one. What the call writes, and wherever, is no verdict.
func TestForgedVerdicts(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "forger.py"), forger)
	bare := withoutLandlock(t)
	for function, exit := range map[string]int{
		// Without a report of its own, the process ended itself.
		"writes": 3, "writes_a_line": 3, "exits": 3, "duplicates": 3, "sends": 3, "sockets": 3, "at_exit": 3, "threaded": 3,
		"closes": 3, "redirects": 3, "prints": 3,
		// What it wrote besides changes nothing.
		"raises": 1, "competes": 1, "fills": 1,
		// Only the standard streams and files of the scratch folder are opened by a descriptor.
		"opens": 4, "fdopens": 4, "by_dev": 4, "by_proc": 4, "by_pid": 4, "by_thread": 4, "by_link": 4, "copies": 4, "low_level": 4,
		"through_c": 3, // the import prepared it
		// What reports is not to be found from the call.
		"objects": 4, "referrers": 4, "referents": 4, "other_frames": 4, "traces": 4, "profiles": 4, "hooks": 4, "memory": 4, "disarms": 4,
		"frames": 1, "main_module": 1, "in_the_hook": 1, "verdict": 3, "pretends": 0, "odd": 3, "worse": 3, "odd_event": 4, "empty_event": 4, "replaces": 1,
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			artifact := script(t, failedCall{payload: call("forger", function, "[]", "{}"), errorType: "ValueError", message: "the real one"}, "forger")
			for _, pythonPath := range []string{packages, packages + ":" + bare} {
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + pythonPath})
				assert.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.NotContains(t, r.Reason, "forged")
				for line := range strings.Lines(r.Stderr) {
					assert.False(t, strings.HasPrefix(line, "did not"), line)
				}
			}
		})
	}
}

// TestMovedByTheImport: an allowed module that changes the working folder when
// it is imported does not move what may be written to.
func TestMovedByTheImport(t *testing.T) {
	t.Parallel()
	home, packages := t.TempDir(), t.TempDir()
	write(t, filepath.Join(packages, "mover.py"), `
import os, tempfile
scratch = os.getcwd()
os.chdir(os.environ["ELSEWHERE"])
os.environ["TMPDIR"] = os.environ["ELSEWHERE"]
def relative(): open("canary", "w").close()
def absolute(): open(os.path.join(os.environ["ELSEWHERE"], "canary"), "w").close()
def temporary(): tempfile.mkstemp(dir=os.environ["ELSEWHERE"])
def within(): open(os.path.join(scratch, "note"), "w").close()
`)
	bare := withoutLandlock(t)
	for function, exit := range map[string]int{"relative": 4, "absolute": 4, "temporary": 4, "within": 0} {
		t.Run(function, func(t *testing.T) {
			artifact := script(t, failedCall{payload: call("mover", function, "[]", "{}"), errorType: "ValueError"}, "mover")
			for _, pythonPath := range []string{packages, packages + ":" + bare} {
				r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + pythonPath, "ELSEWHERE=" + home})
				assert.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			}
			entries, err := os.ReadDir(home)
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}

// TestGuardAlone: where the kernel has no Landlock, the audit hook also ends
// calls by functions for which Python raises no audit event.
func TestGuardAlone(t *testing.T) {
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import concurrent.futures, multiprocessing, multiprocessing.util, os, signal, tempfile
from _posixsubprocess import fork_exec as early
def touch(path): open(path, "w").close()
def spawns(path):
    p = multiprocessing.get_context("spawn").Process(target=touch, args=(path,)); p.start(); p.join()
def serves(path):
    p = multiprocessing.get_context("forkserver").Process(target=touch, args=(path,)); p.start(); p.join()
def pools(path):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as e: e.submit(touch, path).result()
def passes(path): os.waitpid(multiprocessing.util.spawnv_passfds(b"/bin/sh", [b"sh", b"-c", b"touch " + path.encode()], ()), 0)
def imported_before(path):
    import inspect
    r, w = os.pipe()
    early([b"sh", b"-c", b"touch " + path.encode()], [b"/bin/sh"], True, (w,), None, None, -1, -1, -1, -1, -1, -1, r, w, False, False, -1, None, None, None, -1, None, True)
    os.wait()
def interprets(path):
    try: import _interpreters as i
    except ImportError: import _xxsubinterpreters as i
    i.run_string(i.create(), "open(%r, 'w').close()" % path)
def fifo(path): os.mkfifo(path)
def node(path):
    import posix; posix.mknod(path)
def attaches(path):
    import sqlite3
    c = sqlite3.connect(":memory:"); c.execute("ATTACH ? AS a", (path,)); c.execute("CREATE TABLE a.t (x)")
def signals(path): signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0); touch(path)
def pipes(path):
    r, w = os.pipe(); os.fdopen(w, "w").write("x"); touch(path)
def temporary(path):
    with tempfile.NamedTemporaryFile("w") as f: f.write("x")
    with tempfile.TemporaryFile("w") as f: f.write("x")
    fd, name = tempfile.mkstemp()
    with os.fdopen(fd, "w") as f: f.write("x")
    print("x", file=open(1, "w", closefd=False)); open(os.devnull, "w").close()
`)
	bare := withoutLandlock(t)
	for function, exit := range map[string]int{
		"spawns": 4, "serves": 4, "pools": 4, "passes": 4, "imported_before": 4, "interprets": 4, "fifo": 4, "node": 4, "attaches": 4,
		"signals": 4, "pipes": 4, "temporary": 0,
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			canary := filepath.Join(t.TempDir(), "canary")
			artifact := script(t, failedCall{payload: call("app", function, "["+strconv.Quote(canary)+"]", "{}"), errorType: "ValueError"}, "app")
			r := pythons(t)[0].run(t, artifact, []string{"PYTHONPATH=" + packages + ":" + bare})
			assert.Equal(t, exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.NoFileExists(t, canary)
		})
	}
}
