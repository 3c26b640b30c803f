//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// askToEnd sends SIGTERM to a child. Only the child itself gets it: what else
// is in its group is its own to stop.
func askToEnd(pid int) error {
	return syscall.Kill(pid, syscall.SIGTERM)
}

// killGroup kills what is left of a child's process group.
func killGroup(pid int) {
	// There is nothing to do about a group that is gone already, which is
	// the usual case.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// endSignals are what asks the demo to end: Ctrl-C, a supervisor, a terminal
// that was closed.
func endSignals() []os.Signal {
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// brokenPipe is the signal of writing to a reader that has gone. Left alone it
// would end the demo at once, and not its children.
func brokenPipe() []os.Signal {
	return []os.Signal{syscall.SIGPIPE}
}

// lockFolder makes sure that one demo at a time writes to a folder. The lock
// ends with the process, however that ends.
func lockFolder(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The folder is the user's choice.
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another demo is running with this folder (%s is locked): choose another one with --dir", path)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
