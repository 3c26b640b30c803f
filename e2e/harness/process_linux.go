package harness

import "syscall"

// dieWithParent lets the kernel kill a child whose test process died, for
// example by a test's timeout, before it could clean up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
