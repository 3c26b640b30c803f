//go:build unix && !linux

package main

import "syscall"

// childAttributes puts a child into a process group of its own. Only Linux can
// be told to end it should the demo be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
