package reprogenprocessor

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBoundary goes around the audit hook, through C, which an import may
// prepare. The kernel's Landlock stops what the hook cannot see.
func TestBoundary(t *testing.T) {
	t.Parallel()
	packages := t.TempDir()
	write(t, filepath.Join(packages, "app.py"), `
import ctypes, os, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
creat, system, unlink, connect, socket_of, mkdir, kill = libc.creat, libc.system, libc.unlink, libc.connect, libc.socket, libc.mkdir, libc.kill
parent = os.getppid()
def makes(path): return creat(path.encode(), 0o600)
def threaded(path):
    t = threading.Thread(target=makes, args=(path,)); t.start(); t.join()
def runs(path): return system(("touch " + path).encode())
def folder(path): return mkdir(path.encode(), 0o700)
def removes(path): return unlink(__file__.encode())
def reaches(port):
    fd = socket_of(2, 1, 0)
    address = (2).to_bytes(2, "little") + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
    if connect(fd, address, 16) != 0: raise ValueError("refused")
def inside(path):
    if creat(b"note", 0o600) < 0 or mkdir(b"sub", 0o700) < 0 or unlink(b"note") < 0: raise ValueError("not even inside")
    with open("x", "w") as f: f.write("x")
    os.mkdir("a"); os.rename("x", "a/x")
`)
	pythonPath := "PYTHONPATH=" + packages
	info := pythons(t)[0].run(t, script(t, failedCall{payload: call("app", "makes", "[]", "{}")}, "app"), nil, "--info").Stderr
	if !strings.Contains(info, "Landlock") || strings.Contains(info, "none: the kernel") {
		assert.Contains(t, info, "none: the kernel has no Landlock")
		t.Skip("LEFT OUT: this kernel has no Landlock, so nothing shows what it refuses")
	}
	for _, function := range []string{"makes", "threaded", "runs", "folder", "removes"} {
		t.Run(function, func(t *testing.T) {
			for _, py := range pythons(t) {
				canary := filepath.Join(t.TempDir(), "canary")
				artifact := script(t, failedCall{payload: call("app", function, `["`+canary+`"]`, "{}"), errorType: "ValueError"}, "app")
				r := py.run(t, artifact, []string{pythonPath})
				assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.NoFileExists(t, canary)
				assert.NoDirExists(t, canary)
				assert.FileExists(t, filepath.Join(packages, "app.py"))
				if function == "removes" {
					continue
				}
				py.run(t, artifact, []string{pythonPath}, "--allow-side-effects")
				_, err := os.Stat(canary)
				require.NoError(t, err, "the test itself goes around the hook")
			}
		})
	}
	t.Run("inside the scratch folder", func(t *testing.T) {
		for _, py := range pythons(t) {
			r := py.run(t, script(t, failedCall{payload: call("app", "inside", `[""]`, "{}"), errorType: "KeyError"}, "app"), []string{pythonPath})
			assert.Equal(t, 0, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		}
	})
	t.Run("TCP", func(t *testing.T) {
		if !strings.Contains(info, "TCP") {
			t.Skip("LEFT OUT: this kernel's Landlock knows nothing of TCP")
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { assert.NoError(t, listener.Close()) }()
		port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		artifact := script(t, failedCall{payload: call("app", "reaches", "["+port+"]", "{}"), errorType: "ValueError"}, "app")
		r := pythons(t)[0].run(t, artifact, []string{pythonPath})
		assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		assert.Equal(t, "refused", r.Message)
		assert.Equal(t, 0, pythons(t)[0].run(t, artifact, []string{pythonPath}, "--allow-side-effects").Exit)
	})
}

// answeringLandlock is a sitecustomize.py in which an expression answers the
// system calls that ctypes makes.
func answeringLandlock(answers string) string {
	return `
import ctypes, os
library = ctypes.CDLL
class CDLL:
    def __init__(self, *args, **kwargs): self.library = library(*args, **kwargs)
    def __getattr__(self, name): return getattr(self.library, name)
    def syscall(self, number, *args):
        real = self.library.syscall
        return ` + answers + `
ctypes.CDLL = CDLL
`
}

// TestWithoutTheBoundary: where the kernel has no Landlock, or refuses to arm
// it, a script says so. A recorded call still has the audit hook; a program has
// nothing else, and is not started.
func TestWithoutTheBoundary(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	program := programOf(t, "open("+strconv.Quote(canary)+", 'w').close()\n")
	writes := failedCall{payload: call("shutil", "copyfile", `["`+program+`","`+canary+`"]`, "{}"), errorType: "ValueError"}
	for name, tc := range map[string]struct {
		answers string // what the kernel says to the calls of Landlock
		told    string
		info    string
		refused string
	}{
		"no Landlock":       {"-1 if number == 444 else real(number, *args)", "", "none: the kernel has no Landlock", "no Landlock"},
		"an early one":      {"1 if number == 444 and args[0] is None else -1", "Landlock could not be armed", "Landlock 1", "an early one"},
		"no rule set":       {"6 if number == 444 and args[0] is None else -1", "Landlock could not be armed", "Landlock 6", "could not be armed"},
		"no rule":           {"6 if number == 444 and args[0] is None else -1 if number == 445 else real(number, *args)", "Landlock could not be armed", "Landlock 6", "could not be armed"},
		"not to be entered": {"6 if number == 444 and args[0] is None else -1 if number == 446 else 0 if number == 445 else os.open('/dev/null', os.O_RDONLY)", "Landlock could not be armed", "Landlock 6", "could not be armed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packages := t.TempDir()
			write(t, filepath.Join(packages, "sitecustomize.py"), answeringLandlock(tc.answers))
			env := []string{"PYTHONPATH=" + packages}
			py := pythons(t)[0]
			artifact := script(t, writes, "shutil:copyfile")
			assert.Contains(t, py.run(t, artifact, env, "--info").Stderr, tc.info)
			r := py.run(t, artifact, env)
			assert.Equal(t, 4, r.Exit, "the hook is there: %s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, "the call tried open")
			assert.Contains(t, r.Stderr, tc.told)
			r = py.run(t, script(t, trained([]any{"train.py"}, nil)), env, "--script", program)
			assert.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.Contains(t, r.Reason, tc.refused)
			assert.NoFileExists(t, canary)
		})
	}
}
