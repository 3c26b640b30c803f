package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Deadlines of the harness. They are far above what the programs need, so that
// a busy machine fails no test; a test that passes never waits for them.
const (
	// StartTimeout is how long a program may take until it is ready.
	StartTimeout = 60 * time.Second
	// stopTimeout is how long a program may take to end after SIGTERM.
	stopTimeout = 60 * time.Second
	// pollInterval is the pause between two looks at a condition.
	pollInterval = 50 * time.Millisecond
	// collectorReady and collectorStops are what the Collector logs when its components
	// have started and when it takes a signal.
	collectorReady = "Everything is ready. Begin running and processing data."
	collectorStops = "Received signal from OS"
	// shownOnFailure is how much of a program's output a failed test shows.
	shownOnFailure = 16 << 10
)

// Command describes a program to run.
type Command struct {
	// Name is what messages call the program.
	Name string
	// Path is the executable.
	Path string
	// Args are its arguments, the program's name left out.
	Args []string
	// Env has additional environment variables as "KEY=value". Of the test's
	// own environment the program sees only what it needs to run, so that
	// nobody's OTEL_ variables change a test.
	Env []string
	// Dir is the working directory; a temporary one if empty.
	Dir string
	// FileLimit is the size in bytes beyond which the kernel refuses each write to
	// a file, as a disk does that is full. It takes no privilege and no disk, and
	// counts in blocks of 512 bytes. 0 is without limit.
	FileLimit int64
	// HostsFile is what the program sees as /etc/hosts, so that a test decides which
	// addresses a name has. It takes a user namespace; empty leaves the machine's.
	HostsFile string
	// NetworkOf is the id of a process whose network namespace the program joins;
	// 0 leaves the test's. The test needs the rights of an administrator there.
	NetworkOf int
}

// Process is a running program and the output that it has written so far.
type Process struct {
	name   string
	output *output
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start runs a program. It is killed when the test ends, if it still runs then.
func Start(tb testing.TB, command Command) *Process {
	tb.Helper()
	if command.Dir == "" {
		command.Dir = tb.TempDir()
	}
	process := &Process{
		name:   command.Name,
		output: &output{},
		exited: make(chan struct{}),
	}
	path, arguments := command.Path, command.Args
	if command.FileLimit > 0 {
		blocks := strconv.FormatInt(command.FileLimit/512, 10)
		path, arguments = "/bin/sh", append([]string{"-c", `ulimit -f "$0" && exec "$@"`, blocks, path}, arguments...)
	}
	if command.HostsFile != "" {
		path, arguments = "unshare", append([]string{"--map-root-user", "--mount",
			"/bin/sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, command.HostsFile, path}, arguments...)
	}
	if command.NetworkOf > 0 {
		path, arguments = "nsenter", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", command.NetworkOf), "--", path}, arguments...)
	}
	cmd := exec.Command(path, arguments...) //nolint:gosec // the tests name the programs
	cmd.Dir = command.Dir
	cmd.Env = append(inheritedEnv(), command.Env...)
	cmd.Stdout = process.output
	cmd.Stderr = process.output
	cmd.SysProcAttr = dieWithParent()
	process.cmd = cmd

	started := make(chan error, 1)
	go func() {
		// The signal at the parent's death is bound to the thread that
		// started the child, so the thread has to live as long as it does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// The exit status is read from ProcessState by those who want it.
		_ = cmd.Wait()
		close(process.exited)
	}()
	if err := <-started; err != nil {
		tb.Fatalf("starting %s: %v", command.Name, err)
	}
	tb.Cleanup(func() { process.cleanUp(tb) })
	return process
}

// inheritedEnv returns what every program needs of the test's environment.
func inheritedEnv() []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+value)
		}
	}
	return env
}

func (p *Process) cleanUp(tb testing.TB) {
	if p.Running() {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			tb.Errorf("killing %s: %v", p.name, err)
		}
		<-p.exited
	}
	if shown := p.output.tail(shownOnFailure); tb.Failed() && shown != "" {
		tb.Logf("the end of the output of %s:\n%s", p.name, shown)
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// PeakMemory returns the most resident memory that the program has had, in bytes.
// It needs Linux.
func (p *Process) PeakMemory(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := append(strings.Fields(rest), "")
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kilobytes << 10
}

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Output returns what the program has written to stdout and stderr so far.
func (p *Process) Output() string { return p.output.String() }

// wait waits until the program ends by itself and returns its exit code, or -1
// if a signal ended it. The test fails if the program runs longer than timeout.
func (p *Process) wait(tb testing.TB, timeout time.Duration) int {
	tb.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		tb.Fatalf("%s still runs after %s", p.name, timeout)
		return -1
	}
}

// Stop asks the program to end by SIGTERM and returns its exit code, or -1 if
// a signal ended it. The test fails if it has ended before, or does not end.
func (p *Process) Stop(tb testing.TB) int {
	tb.Helper()
	if !p.Running() {
		tb.Fatalf("%s ended before it was stopped: %s", p.name, p.cmd.ProcessState)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatalf("SIGTERM to %s: %v", p.name, err)
	}
	code := p.wait(tb, stopTimeout)
	// The Collector listens for signals a moment after its components have started and
	// nothing outside shows when. A signal before that ends it at once, which says
	// nothing of how it stops.
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() == syscall.SIGTERM && strings.Contains(p.Output(), collectorReady) && !strings.Contains(p.Output(), collectorStops) {
		tb.Logf("%s was stopped before it listened for signals", p.name)
		return 0
	}
	return code
}

// Kill ends the program by SIGKILL, as a machine without memory does.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		tb.Fatalf("killing %s: %v", p.name, err)
	}
	<-p.exited
}

// AwaitOutput waits until the program has written a text.
func (p *Process) AwaitOutput(tb testing.TB, text string) {
	tb.Helper()
	p.await(tb, func() error {
		if !strings.Contains(p.Output(), text) {
			return fmt.Errorf("its output does not have %q yet", text)
		}
		return nil
	})
}

// await polls until ready returns nil. The test fails if the program ends
// before that or the deadline passes.
func (p *Process) await(tb testing.TB, ready func() error) {
	tb.Helper()
	deadline := time.Now().Add(StartTimeout)
	for {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s is not ready after %s: %v", p.name, StartTimeout, err)
		}
		select {
		case <-p.exited:
			tb.Fatalf("%s ended while it started: %s", p.name, p.cmd.ProcessState)
		case <-time.After(pollInterval):
		}
	}
}

// Run runs a program to its end and returns its exit code and output. The test
// fails only if the program cannot be started or runs longer than timeout.
func Run(tb testing.TB, command Command, timeout time.Duration) (int, string) {
	tb.Helper()
	process := Start(tb, command)
	code := process.wait(tb, timeout)
	return code, process.Output()
}

// Python returns the path of the interpreter that reproduction files run with.
func Python(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		tb.Fatal("python3 is missing; the tests run reproduction files with it")
	}
	if path, err = filepath.Abs(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// output collects what a program writes, while others read it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail returns the last limit bytes, from the beginning of a line.
func (o *output) tail(limit int) string {
	text := o.String()
	if len(text) <= limit {
		return text
	}
	cut := text[len(text)-limit:]
	if _, rest, found := strings.Cut(cut, "\n"); found {
		cut = rest
	}
	return fmt.Sprintf("(%d bytes before this)\n%s", len(text)-len(cut), cut)
}
