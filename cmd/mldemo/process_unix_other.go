//go:build unix && !linux

package main

import "syscall"

// childAttributes put a child into its own process group.
var childAttributes = syscall.SysProcAttr{Setpgid: true}
