// Package sender tells from the context of a request who has sent it.
//
// # Where the sender is known
//
// The receivers put the client's address into the context, and an authenticator of
// a receiver what it knows of the client. What the authenticators tell:
//
//   - basicauth: the attribute username. OIDC: the attribute subject.
//   - bearertokenauth and client certificates (mTLS): nothing. Whoever may send is
//     known by its address only.
//
// The first processors of a pipeline have this context. These keep it:
// ml_guard, memory_limiter, ml_enrich, repro_gen, delta_to_cumulative, transform and
// forward. These lose it, and what they send is the collector's own:
//
//   - the processors batch, tail_sampling and groupbytrace;
//   - a sending_queue that batches or is on disk, so an exporter with one;
//   - ml_metrics, which sends what it has computed.
//
// Receivers without a client have none either: gpu, nccl, prometheus, host_metrics,
// file_log, otlp_json_file, and kafka, whose messages anybody may have written who can
// write to the topic. Behind an agent, a load balancer or a proxy, the sender is that.
package sender

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"

	"go.opentelemetry.io/collector/client"
)

// Kind says how a sender is known.
type Kind uint8

const (
	// Own is the collector itself: one of its receivers without a client, or a
	// connector.
	Own Kind = iota
	// Authenticated is a client that an authenticator of the receiver has named.
	Authenticated
	// Address is a client that is known by its address only.
	Address
)

// ID identifies a sender. It is comparable and takes at most 100 bytes. The zero
// value is the collector itself.
type ID struct {
	Kind Kind
	// Subject is the name of an authenticated client, or a hash of a name of more
	// than 64 bytes. It is "" if the authenticator tells no name.
	Subject string
	// Network is the address of a client without a Subject. An IPv6 address is that
	// of its network of 64 bits, because its hosts choose their addresses freely. It
	// is the zero value where there is no IP address, such as on a Unix socket; all
	// such clients are one sender.
	Network netip.Prefix
}

// maxSubject limits the bytes of a name.
const maxSubject = 64

// From returns who has sent the request of a context.
func From(ctx context.Context) ID {
	info := client.FromContext(ctx)
	id := ID{Kind: Address}
	switch {
	case info.Auth != nil:
		id.Kind, id.Subject = Authenticated, subject(info.Auth)
	case info.Addr == nil && ctx.Value(http.LocalAddrContextKey) == nil:
		// confighttp tells no address of a Unix socket and of an IPv6 address with a
		// zone, but then the context is that of an HTTP server.
		return ID{}
	}
	if id.Subject != "" {
		return id
	}
	if ip := IP(ctx); ip.Is4() {
		id.Network = netip.PrefixFrom(ip, 32)
	} else if ip.IsValid() {
		id.Network, _ = ip.Prefix(64)
	}
	return id
}

// IP returns the address of the client, or the zero value if there is none.
func IP(ctx context.Context) (ip netip.Addr) {
	switch a := client.FromContext(ctx).Addr.(type) {
	case nil:
		return ip
	case *net.TCPAddr:
		ip, _ = netip.AddrFromSlice(a.IP)
	case *net.IPAddr:
		ip, _ = netip.AddrFromSlice(a.IP)
	default:
		port, err := netip.ParseAddrPort(a.String())
		if err != nil {
			return ip
		}
		ip = port.Addr()
	}
	return ip.Unmap().WithZone("")
}

// String returns the sender for a person to read.
func (id ID) String() string {
	switch {
	case id.Kind == Own:
		return "this collector"
	case id.Subject != "":
		return id.Subject
	case !id.Network.IsValid():
		return "a client without an IP address"
	case id.Network.IsSingleIP():
		return id.Network.Addr().String()
	default:
		return id.Network.String()
	}
}

// subject returns the name of an authenticated client.
func subject(auth client.AuthData) string {
	for _, name := range [...]string{"subject", "username"} {
		text, _ := auth.GetAttribute(name).(string)
		if len(text) > maxSubject {
			hash := sha256.Sum256([]byte(text))
			return hex.EncodeToString(hash[:16])
		}
		if text != "" {
			return text
		}
	}
	return ""
}
