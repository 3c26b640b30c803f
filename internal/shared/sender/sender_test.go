package sender_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/client"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

type auth map[string]any

func (a auth) GetAttribute(name string) any { return a[name] }
func (auth) GetAttributeNames() []string    { return nil }

func from(t *testing.T, info client.Info) sender.ID {
	t.Helper()
	return sender.From(client.NewContext(t.Context(), info))
}

func tcp(address string, port int) net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(address), Port: port}
}

func TestFrom(t *testing.T) {
	one := from(t, client.Info{Addr: tcp("192.0.2.1", 1)})
	assert.Equal(t, sender.ID{Kind: sender.Address, Network: netip.MustParsePrefix("192.0.2.1/32")}, one)
	for name, addr := range map[string]net.Addr{
		"another port":   tcp("192.0.2.1", 2),
		"four bytes":     &net.TCPAddr{IP: net.ParseIP("192.0.2.1").To4(), Port: 3},
		"HTTP":           &net.IPAddr{IP: net.ParseIP("192.0.2.1")},
		"UDP":            &net.UDPAddr{IP: net.ParseIP("192.0.2.1"), Port: 7},
		"IPv4 over IPv6": &net.IPAddr{IP: net.ParseIP("::ffff:192.0.2.1")},
	} {
		assert.Equal(t, one, from(t, client.Info{Addr: addr}), name)
	}
	assert.NotEqual(t, one, from(t, client.Info{Addr: tcp("192.0.2.2", 1)}))
	assert.Equal(t, from(t, client.Info{Addr: tcp("2001:db8::1", 1)}), from(t, client.Info{Addr: tcp("2001:db8::ffff:1", 1)}), "one network")
	assert.NotEqual(t, from(t, client.Info{Addr: tcp("2001:db8::1", 1)}), from(t, client.Info{Addr: tcp("2001:db8:0:1::1", 1)}))
	assert.Equal(t, sender.ID{Kind: sender.Address}, from(t, client.Info{Addr: &net.UnixAddr{Name: "/run/otel", Net: "unix"}}))
	assert.Equal(t, sender.ID{}, from(t, client.Info{}), "no client")
	assert.Equal(t, sender.ID{}, sender.From(t.Context()))
}

func TestAuthenticated(t *testing.T) {
	me := from(t, client.Info{Auth: auth{"username": "me"}, Addr: tcp("192.0.2.1", 1)})
	assert.Equal(t, sender.ID{Kind: sender.Authenticated, Subject: "me"}, me)
	assert.Equal(t, me, from(t, client.Info{Auth: auth{"subject": "me"}, Addr: tcp("192.0.2.9", 1)}), "from elsewhere")
	assert.NotEqual(t, me, from(t, client.Info{Auth: auth{"username": "you"}, Addr: tcp("192.0.2.1", 1)}))
	unnamed := from(t, client.Info{Auth: auth{"raw": "secret", "subject": 7}, Addr: tcp("192.0.2.1", 1)})
	assert.Equal(t, sender.ID{Kind: sender.Authenticated, Network: netip.MustParsePrefix("192.0.2.1/32")}, unnamed)
	long := from(t, client.Info{Auth: auth{"subject": strings.Repeat("x", 1<<20)}})
	assert.Len(t, long.Subject, 32)
	assert.NotEqual(t, long, from(t, client.Info{Auth: auth{"subject": strings.Repeat("y", 1<<20)}}))
}

// TestHTTPWithoutAddress: confighttp does not tell every address, and such a client
// is not the collector itself.
func TestHTTPWithoutAddress(t *testing.T) {
	got := make(chan sender.ID, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- sender.From(client.NewContext(r.Context(), client.Info{}))
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if assert.NoError(t, err) {
		response, err := server.Client().Do(request)
		if assert.NoError(t, err) {
			assert.NoError(t, response.Body.Close())
		}
	}
	assert.Equal(t, sender.ID{Kind: sender.Address}, <-got)
}

func TestString(t *testing.T) {
	assert.Equal(t, "this collector", sender.ID{}.String())
	for want, info := range map[string]client.Info{
		"me":                             {Auth: auth{"username": "me"}},
		"192.0.2.1":                      {Addr: tcp("192.0.2.1", 1)},
		"2001:db8::/64":                  {Addr: tcp("2001:db8::1", 1)},
		"a client without an IP address": {Addr: &net.UnixAddr{Net: "unix"}},
	} {
		assert.Equal(t, want, from(t, info).String())
	}
}

func TestFromDoesNotAllocate(t *testing.T) {
	for _, info := range []client.Info{{}, {Addr: tcp("192.0.2.1", 1)}, {Addr: tcp("2001:db8::1", 1)}, {Auth: auth{"username": "me"}}} {
		ctx := client.NewContext(context.Background(), info)
		assert.Zero(t, testing.AllocsPerRun(100, func() { sender.From(ctx) }))
	}
}
