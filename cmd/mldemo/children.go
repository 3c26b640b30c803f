package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// child is a program that the demo runs. It leads its own process group, so
// that a terminal's Ctrl-C reaches only the demo, which then stops its children
// in order.
type child struct {
	name, log string
	cmd       *exec.Cmd
	askToEnd  context.CancelFunc
	// done is closed when the program has ended. err, set before that, says
	// how.
	done chan struct{}
	err  error
}

// startChild starts a program and writes its output to a file, which is
// truncated first. Asked to end, it is killed after grace.
func startChild(name, path string, args, env []string, log string, grace time.Duration) (_ *child, err error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // The folder is the user's choice.
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	// The child has its own descriptor.
	defer func() { err = errors.Join(err, file.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	c := &child{name: name, log: log, cmd: exec.CommandContext(ctx, path, args...), askToEnd: cancel, done: make(chan struct{})} //nolint:gosec // The programs are the user's choice.
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = env, file, file, &childAttributes
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = grace
	started := make(chan error)
	go func() {
		// Linux ends a child of a dead parent when the thread that started it
		// ends, so the thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			c.killGroup() // what the program left behind
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// killGroup kills the program and what it started. The group may have gone.
func (c *child) killGroup() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

// ended reports whether the program has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop asks a program that has not ended to end, and kills it after its grace or
// when hurry is done. It says how the program ended, and returns then.
func (c *child) stop(hurry context.Context, say func(string, ...any)) {
	if c.ended() {
		return
	}
	say("Stopping %s … ", c.name)
	c.askToEnd()
	select {
	case <-c.done:
	case <-hurry.Done():
		c.killGroup()
		<-c.done
	}
	if c.err == nil || errors.Is(c.err, context.Canceled) { // it was asked, and ended well
		say("done\n")
	} else {
		say("%s\n", visible(c.err.Error()))
	}
}

// because returns an error that says what the program did, and the last lines of
// its log.
func (c *child) because(what string) error {
	log, err := os.ReadFile(c.log) //nolint:gosec // The log that the demo wrote itself.
	if err != nil {
		return fmt.Errorf("%s %s; its log: %w", c.name, what, err)
	}
	lines := strings.Split(strings.TrimRight(string(log), "\n"), "\n")
	lines = lines[max(0, len(lines)-15):]
	for i, line := range lines {
		lines[i] = visible(strings.ReplaceAll(line, "\t", "  "))
	}
	return fmt.Errorf("%s %s; the end of its log %s:\n  %s", c.name, what, c.log, strings.Join(lines, "\n  "))
}

// visible replaces what a terminal would not show as it is.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
