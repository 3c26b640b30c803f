package main

import "syscall"

// childAttributes puts a child into its own process group, and has the kernel
// end it if the demo is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
