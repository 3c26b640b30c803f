package main

import "syscall"

// childAttributes puts a child into a process group of its own and has the
// kernel end it should the demo be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
