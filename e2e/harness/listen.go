package harness

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// ListenAddresses returns every TCP address that the process listens on, as
// the kernel knows them. Where there is no /proc the test is skipped.
func (p *Process) ListenAddresses(tb testing.TB) []string {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skip("listening sockets are read from /proc, which only Linux has")
	}
	sockets := map[string]bool{}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	for _, descriptor := range descriptors {
		// A descriptor may have been closed since it was listed.
		target, err := os.Readlink(descriptor)
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var addresses []string
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.PID(), table))
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if address, inode, ok := listeningSocket(line); ok && sockets[inode] {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// listeningSocket reads one line of /proc/<pid>/net/tcp or tcp6: the address
// is the second column, the state the fourth, where 0A means that it listens,
// and the inode the tenth.
func listeningSocket(line string) (address, inode string, ok bool) {
	columns := strings.Fields(line)
	if len(columns) < 10 || columns[3] != "0A" {
		return "", "", false
	}
	host, port, found := strings.Cut(columns[1], ":")
	raw, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if !found || err != nil || portErr != nil || len(raw)%4 != 0 {
		return "", "", false
	}
	// The kernel writes the address as 32-bit words of the machine's byte
	// order, which is little-endian everywhere that the tests run.
	for word := 0; word < len(raw); word += 4 {
		raw[word], raw[word+1], raw[word+2], raw[word+3] = raw[word+3], raw[word+2], raw[word+1], raw[word]
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(number, 10)), columns[9], true
}
