package harness

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// firstPort and endOfPorts bound the ports that tests listen on. They lie below
// those from which Linux takes the ports of clients, 32768 on: a client that
// connects somewhere cannot have one of them.
const firstPort, endOfPorts = 20_000, 32_768

var handedOut struct {
	sync.Mutex
	ports map[int]bool
}

// FreePort returns a TCP port that nothing listens on at the loopback address
// and that no earlier call of this process returned. Another process of tests
// may still choose it before its user listens; that the choice is random makes
// this rare.
func FreePort(tb testing.TB) int {
	tb.Helper()
	handedOut.Lock()
	defer handedOut.Unlock()
	if handedOut.ports == nil {
		handedOut.ports = map[int]bool{}
	}
	for range 1000 {
		port := firstPort + rand.IntN(endOfPorts-firstPort) //nolint:gosec // a port is no secret
		if handedOut.ports[port] {
			continue
		}
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			// Somebody listens on it.
			continue
		}
		if err := listener.Close(); err != nil {
			tb.Fatalf("closing the probe of port %d: %v", port, err)
		}
		handedOut.ports[port] = true
		return port
	}
	tb.Fatal("no free loopback port that was not handed out before")
	return 0
}
