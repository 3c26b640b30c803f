package scale

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// gatewayIP is the address of a gateway, on the loopback interface of the tests'
// namespace.
func gatewayIP(gateway int) string { return fmt.Sprintf("10.77.0.%d", gateway+1) }

// ip runs ip(8), in the network namespace of a process if that is not 0.
func ip(t *testing.T, process int, arguments string) {
	t.Helper()
	command := append([]string{"ip"}, strings.Fields(arguments)...)
	if process > 0 {
		command = append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", process), "--"}, command...)
	}
	output, err := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, output)
}

// addGatewayAddress gives the loopback interface the address of a gateway until the
// test ends.
func addGatewayAddress(t *testing.T, gateway int) {
	t.Helper()
	ip(t, 0, "addr add "+gatewayIP(gateway)+"/32 dev lo")
	t.Cleanup(func() { ip(t, 0, "addr del "+gatewayIP(gateway)+"/32 dev lo") })
}

// host is a network namespace with one link to that of the tests.
type host struct {
	// holder keeps the namespace while the agent is down.
	holder *harness.Process
	// address is that of the host.
	address string
}

// newHost returns the host with a number from 0 on.
func newHost(t *testing.T, number int) *host {
	t.Helper()
	h := &host{
		holder:  harness.Start(t, harness.Command{Name: "host", Path: "unshare", Args: []string{"--net", "/bin/sh", "-c", "echo ready; exec sleep infinity"}}),
		address: fmt.Sprintf("10.77.%d.2", number+1),
	}
	h.holder.AwaitOutput(t, "ready")
	link, near := fmt.Sprintf("host%d", number), fmt.Sprintf("10.77.%d.1", number+1)
	ip(t, 0, "link add "+link+" type veth peer name eth0 netns "+strconv.Itoa(h.holder.PID()))
	ip(t, 0, "addr add "+near+"/30 dev "+link)
	ip(t, 0, "link set "+link+" up")
	ip(t, h.holder.PID(), "link set lo up")
	ip(t, h.holder.PID(), "addr add "+h.address+"/30 dev eth0")
	ip(t, h.holder.PID(), "link set eth0 up")
	ip(t, h.holder.PID(), "route add default via "+near)
	// Its other end goes with it. The kernel would do so some time after the holder
	// has ended.
	t.Cleanup(func() { ip(t, 0, "link del "+link) })
	return h
}

// nobody is an address on the host's link whose packets reach nobody.
const nobody = "169.254.77.77"

// cut has the host's packets to a gateway disappear without an answer, as those of a
// broken switch do, until mend is called.
func (h *host) cut(t *testing.T, gateway int) {
	t.Helper()
	ip(t, h.holder.PID(), "neigh replace "+nobody+" lladdr 02:00:00:00:00:77 dev eth0 nud permanent")
	ip(t, h.holder.PID(), "route add "+gatewayIP(gateway)+"/32 via "+nobody+" dev eth0 onlink")
}

func (h *host) mend(t *testing.T, gateway int) {
	t.Helper()
	ip(t, h.holder.PID(), "route del "+gatewayIP(gateway)+"/32")
}

// dial connects from the host.
func (h *host) dial(t *testing.T, address string) error {
	t.Helper()
	dialed := make(chan error, 1)
	go func() {
		// The thread ends with this function, because it stays locked.
		runtime.LockOSThread()
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.holder.PID()))
		if err != nil {
			dialed <- err
			return
		}
		defer func() { _ = namespace.Close() }()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			dialed <- err
			return
		}
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = connection.Close()
		}
		dialed <- err
	}()
	return <-dialed
}

// A cut concerns one host and one gateway, until it is mended.
func TestCut(t *testing.T) {
	var addresses []string
	for gateway := range 2 {
		addGatewayAddress(t, gateway)
		listener, err := net.Listen("tcp", net.JoinHostPort(gatewayIP(gateway), "0"))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, listener.Close()) })
		addresses = append(addresses, listener.Addr().String())
	}
	one, other := newHost(t, 0), newHost(t, 1)
	require.NoError(t, one.dial(t, addresses[0]))
	one.cut(t, 0)
	var timeout net.Error
	require.ErrorAs(t, one.dial(t, addresses[0]), &timeout)
	assert.True(t, timeout.Timeout(), "the host is told that its packets are lost")
	require.NoError(t, one.dial(t, addresses[1]))
	require.NoError(t, other.dial(t, addresses[0]))
	one.mend(t, 0)
	require.NoError(t, one.dial(t, addresses[0]))
}
