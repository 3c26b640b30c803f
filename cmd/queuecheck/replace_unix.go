//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// replace replaces this process by a command. It returns only if the command
// cannot be run.
func replace(command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, command, os.Environ()) //nolint:gosec // the command of its command line
}
