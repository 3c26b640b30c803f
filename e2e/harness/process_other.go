//go:build !linux

package harness

import "syscall"

// dieWithParent has no counterpart here: a child outlives a test process that
// dies before it could clean up.
func dieWithParent() *syscall.SysProcAttr { return nil }

// listensTo cannot be asked here.
func listensTo(int, syscall.Signal) bool { return true }
