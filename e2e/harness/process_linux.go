package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent lets the kernel kill a child whose test process died, for
// example by a test's timeout, before it could clean up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// listensTo reports whether a Go program has asked for a signal. Its runtime
// catches all signals from the start, and ends the program by those that are
// not asked for; but one thread of it blocks all others once it waits for some.
func listensTo(pid int, signal syscall.Signal) bool {
	// A thread that has ended meanwhile has no file.
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	if err != nil {
		return false
	}
	for _, path := range threads {
		status, err := os.ReadFile(path) //nolint:gosec // a path of the kernel's
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(status), "\nSigBlk:")
		mask, _, _ := strings.Cut(rest, "\n")
		blocked, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err == nil && blocks(blocked, syscall.SIGUSR2) && !blocks(blocked, signal) {
			return true
		}
	}
	return false
}

func blocks(mask uint64, signal syscall.Signal) bool { return mask>>(uint(signal)-1)&1 == 1 }
