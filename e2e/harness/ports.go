package harness

import (
	"net"
	"sync"
	"testing"
)

var handedOut struct {
	sync.Mutex
	ports map[int]bool
}

// FreePort returns a TCP port that nothing listens on at the loopback address
// and that no earlier call of this process returned. Another process may still
// take it before its user listens; the kernel hands ephemeral ports out in an
// order that makes this rare.
func FreePort(tb testing.TB) int {
	tb.Helper()
	handedOut.Lock()
	defer handedOut.Unlock()
	if handedOut.ports == nil {
		handedOut.ports = map[int]bool{}
	}
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("no free loopback port: %v", err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			tb.Fatalf("closing the probe of port %d: %v", port, err)
		}
		if !handedOut.ports[port] {
			handedOut.ports[port] = true
			return port
		}
	}
	tb.Fatal("no free loopback port that was not handed out before")
	return 0
}
