package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

const (
	// tailLines and tailBytes limit the part of a log that is shown.
	tailLines = 15
	tailBytes = 16 << 10
	// killWait is how long a killed process may take to exit. Only one that
	// hangs inside the kernel takes longer.
	killWait = 5 * time.Second
)

// child is a program that the demo runs. It leads its own process group, so
// that a terminal's Ctrl-C reaches only the demo, which then stops its children
// in order.
type child struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	// done is closed when the program has ended. err, set before that, says
	// how.
	done chan struct{}
	err  error
}

// startChild starts a program and writes its output to a file, which is
// truncated first.
func startChild(name, path string, args, env []string, logPath string) (_ *child, err error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // The folder is the user's choice.
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	// The child has its own descriptor.
	defer func() { err = errors.Join(err, log.Close()) }()
	//nolint:gosec // Running the programs that the user names is the purpose.
	c := &child{name: name, logPath: logPath, cmd: exec.Command(path, args...), done: make(chan struct{})}
	c.cmd.Env = env
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = childAttributes()

	started := make(chan error)
	go func() {
		// Linux ends a child of a dead parent when the thread that started it
		// ends, so the thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = c.cmd.Wait()
		// Kills what the program left in its group.
		killGroup(c.cmd.Process.Pid)
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// ended reports whether the program has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop asks the program to end, and kills it after grace or when hurry is done.
// It returns when the program has ended. It returns an error if the program did
// not end cleanly, but not if it had ended before.
func (c *child) stop(hurry context.Context, grace time.Duration) error {
	if c.ended() {
		return nil
	}
	if err := askToEnd(c.cmd.Process.Pid); err != nil && !c.ended() {
		return errors.Join(fmt.Errorf("ask %s to end: %w", c.name, err), c.kill())
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("%s ended with %w", c.name, c.err)
		}
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed", c.name, grace), c.kill())
	case <-hurry.Done():
		return errors.Join(fmt.Errorf("%s was killed", c.name), c.kill())
	}
}

func (c *child) kill() error {
	killGroup(c.cmd.Process.Pid)
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s (process %d) does not end even when killed", c.name, c.cmd.Process.Pid)
	}
}

// died returns an error that describes the unexpected end of a program.
func (c *child) died() error {
	how := "ended"
	if c.err != nil {
		how = "ended with " + c.err.Error()
	}
	return fmt.Errorf("%s %s; its log is %s", c.name, how, c.logPath)
}

// logTail returns the last lines of the program's log, in printable form.
func (c *child) logTail() ([]string, error) {
	return tailOf(c.logPath)
}

func tailOf(path string) (_ []string, err error) {
	file, err := os.Open(path) //nolint:gosec // The log that the demo wrote itself.
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	start := max(0, end-tailBytes)
	data := make([]byte, end-start)
	n, err := file.ReadAt(data, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	data = data[:n]
	if start > 0 {
		// The first line may be incomplete.
		if _, rest, found := bytes.Cut(data, []byte("\n")); found {
			data = rest
		}
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(line, "\t", "  "))
	}
	return lines, nil
}
