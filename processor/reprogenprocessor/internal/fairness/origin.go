// Package fairness divides what is limited among the senders of telemetry. It
// relies on what a sender cannot invent for free: the connection or its
// authentication, and how long a service has been sending spans that succeed.
package fairness

import (
	"hash/maphash"
	"net"
	"net/netip"

	"go.opentelemetry.io/collector/client"
)

// seed keeps a sender from choosing names whose hashes are those of others.
var seed = maphash.MakeSeed()

// Sender identifies who sent a request. It is valid for the life of the
// process.
type Sender uint64

// Origin identifies a service of a sender. Two senders that use the same
// service.name are two origins.
type Origin struct {
	Sender  Sender
	Service uint64
}

// SenderOf returns the sender of a request: the authenticated subject or user
// if there is one, else the address without its port. All of an IPv6 network
// of 64 bits is one sender, because its hosts choose their addresses freely.
// Requests that carry neither are of one sender.
func SenderOf(info client.Info) Sender {
	if info.Auth != nil {
		for _, name := range [...]string{"subject", "username"} {
			if subject, ok := info.Auth.GetAttribute(name).(string); ok && subject != "" {
				return Sender(maphash.Comparable(seed, [2]string{"subject", subject}))
			}
		}
	}
	address, text := addressOf(info.Addr)
	return Sender(maphash.Comparable(seed, struct {
		address netip.Addr
		text    string
	}{address, text}))
}

// OriginOf returns the origin of a service of a sender.
func OriginOf(sender Sender, service string) Origin {
	return Origin{Sender: sender, Service: maphash.String(seed, service)}
}

// addressOf returns an IP address, or the text of an address that has none.
func addressOf(address net.Addr) (ip netip.Addr, text string) {
	switch a := address.(type) {
	case nil:
		return ip, ""
	case *net.TCPAddr:
		ip, _ = netip.AddrFromSlice(a.IP)
	case *net.IPAddr:
		ip, _ = netip.AddrFromSlice(a.IP)
	default:
		port, err := netip.ParseAddrPort(a.String())
		if err != nil {
			return ip, a.String()
		}
		ip = port.Addr()
	}
	ip = ip.Unmap().WithZone("")
	if network, err := ip.Prefix(64); err == nil && ip.Is6() {
		ip = network.Addr()
	}
	return ip, ""
}
