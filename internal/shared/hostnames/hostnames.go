// Package hostnames tells by which names a server on this machine may be asked.
package hostnames

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Set is a set of names. localhost, the names below it and addresses are in each.
type Set map[string]bool

// Of returns the set of these names and the machine's own.
func Of(names ...string) Set {
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	s := make(Set, len(names))
	for _, name := range names {
		if name = canonical(name); name != "" {
			s[name] = true
		}
	}
	return s
}

// Has reports whether a request with the Host header may be answered. A page of
// somebody else can let its own name point to this machine (DNS rebinding), and
// would then read the answers. It cannot do so with an address, nor with localhost.
func (s Set) Has(header string) bool {
	host := canonical(header)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || s[host]
}

// canonical returns the name or address of a Host header without its port and
// brackets, in lower case and without the root's dot. It is empty if there is
// none.
func canonical(header string) string {
	host := header
	if name, port, err := net.SplitHostPort(header); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return ""
		}
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
