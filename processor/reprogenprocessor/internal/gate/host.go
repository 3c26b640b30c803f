// Package gate holds the rules about what a script may reach that several kinds
// share, as far as they are decided before a script exists. The script itself
// enforces them.
package gate

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$`)

// CheckHost returns an error if entry is not a valid entry of allowed_hosts. The
// error shows the valid forms.
func CheckHost(entry string) error {
	host, port, hasPort := entry, "", false
	if end := strings.LastIndexByte(entry, ':'); end > strings.LastIndexByte(entry, ']') {
		host, port, hasPort = entry[:end], entry[end+1:], true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	valid := !hasPort || err == nil && number > 0 && port == strconv.FormatUint(number, 10)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		valid = valid && closed && err == nil && address.Is6() && address.Zone() == ""
	} else {
		valid = valid && len(host) <= 253 && hostForm.MatchString(host)
	}
	if !valid {
		return fmt.Errorf(`%q is not "host" (its ports 80 and 443) or "host:port", with a name, an IPv4 address or an IPv6 address in brackets`, entry)
	}
	return nil
}
