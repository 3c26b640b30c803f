package page

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// SetSecurityHeaders lets the page load and send nothing but its own files and
// data, and lets no other page embed or read it.
func SetSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// allowedHost reports whether a request with the Host header may be answered. A
// page of somebody else can let its own name point to this machine (DNS
// rebinding), and would then read the answers. It cannot do so with an address,
// nor with localhost.
func (h *Handler) allowedHost(header string) bool {
	host := canonicalHost(header)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || h.hosts[host]
}

// fromElsewhere reports whether a page of another site asks, other than by a link
// to the page. The browser would not show it the answer, which costs time all the
// same.
func fromElsewhere(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// canonicalHost returns the name or address of a Host header without its port and
// brackets, in lower case and without the root's dot. It is empty if there is
// none.
func canonicalHost(header string) string {
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
