//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// askToEnd sends SIGTERM to a child, not to its group.
func askToEnd(pid int) error {
	return syscall.Kill(pid, syscall.SIGTERM)
}

// killGroup kills the rest of a child's process group.
func killGroup(pid int) {
	// The group has usually gone already.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// endSignals are the signals that end the demo: Ctrl-C, a supervisor's, and
// that of a closed terminal.
func endSignals() []os.Signal {
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// brokenPipe is the signal of writing to a closed pipe. By default it would end
// the demo but not its children.
func brokenPipe() []os.Signal {
	return []os.Signal{syscall.SIGPIPE}
}

// lockFolder ensures that only one demo writes to a folder. The lock ends with
// the process.
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
