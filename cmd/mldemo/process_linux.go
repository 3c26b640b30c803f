package main

import "syscall"

// childAttributes put a child into its own process group, and have the kernel
// end it if the demo is killed.
var childAttributes = syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
