//go:build unix && !linux

package main

import "syscall"

// childAttributes puts a child into its own process group. Only Linux can end
// it if the demo is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
