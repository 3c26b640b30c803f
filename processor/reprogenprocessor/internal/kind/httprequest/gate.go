package httprequest

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
)

const hostName = `[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?`

// hostForm is a name or an IPv4 address, or an IPv6 address in brackets, and a port.
var hostForm = regexp.MustCompile(`^(?:(` + hostName + `(?:\.` + hostName + `)*)|\[([0-9A-Fa-f:.]+)\])(?::([1-9][0-9]*))?$`)

// CheckHost returns an error if entry is not a valid entry of allowed_hosts. The
// error shows the valid forms.
func CheckHost(entry string) error {
	found := hostForm.FindStringSubmatch(entry)
	valid := found != nil
	if valid {
		name, address, port := found[1], found[2], found[3]
		ip, err := netip.ParseAddr(address)
		valid = len(name) <= 253 && (address == "" || err == nil && ip.Is6())
		_, err = strconv.ParseUint(port, 10, 16)
		valid = valid && (port == "" || err == nil)
	}
	if !valid {
		return fmt.Errorf(`%q is not "host" (its ports 80 and 443) or "host:port", with a name, an IPv4 address or an IPv6 address in brackets`, entry)
	}
	return nil
}
