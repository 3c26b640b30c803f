package ras_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/rastest"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

// two is an answer about two ranks, one of which does not respond.
var two = rastest.Text(rastest.Communicator{
	Hash: "0x1a", Size: 2,
	Ranks:   []rastest.Rank{{Rank: 0, Host: "10.0.0.1", PID: 100, AllReduce: 9}},
	Missing: []rastest.Rank{{Rank: 1, Host: "10.0.0.2", PID: 200, Device: 1, Unresponsive: true}},
})

// patient waits as long as the test does.
func patient(endpoint string) ras.Client {
	return ras.Client{Endpoint: endpoint, Timeout: time.Minute, MaxSize: 1 << 20, Handshake: time.Minute}
}

// brief does not wait long for an answer.
func brief(endpoint string) ras.Client {
	client := patient(endpoint)
	client.Timeout = time.Millisecond
	return client
}

// hasty does not wait long for anything.
func hasty(endpoint string) ras.Client {
	return ras.Client{Endpoint: endpoint, Timeout: time.Millisecond, MaxSize: 1 << 20, Handshake: 50 * time.Millisecond}
}

func TestStatus(t *testing.T) {
	for name, reply := range map[string]rastest.Reply{
		"an answer":   rastest.Status(two),
		"in parts":    rastest.Slowly(two, time.Millisecond),
		"NCCL 2.28.9": rastest.Status(rastest.WithoutCommas(two)),
	} {
		t.Run(name, func(t *testing.T) {
			server := rastest.New(t, reply)
			client := patient(server.Endpoint)
			answer, err := client.Status(t.Context())
			require.NoError(t, err)
			require.Len(t, answer.Communicators, 1)
			c := answer.Communicators[0]
			assert.Equal(t, "0x1a:0x2:0x3", c.Hash)
			assert.Equal(t, 2, c.Size)
			assert.Equal(t, [...]uint64{2, 2, 2, 2, 9}, c.Ranks[0].Counts)
			assert.True(t, c.Ranks[0].Running)
			assert.Equal(t, 200, c.Missing[0].PID)
			assert.Equal(t, "10.0.0.2", c.Missing[0].Host.String())
			assert.True(t, c.Missing[0].Unresponsive)
			assert.False(t, c.Missing[0].Dead)
			assert.Equal(t, []string{"CLIENT PROTOCOL 2", "TIMEOUT 60", "SET FORMAT json", "STATUS"}, server.Lines(), "nothing else is ever sent")
		})
	}
}

func TestStatusFails(t *testing.T) {
	tests := map[string]struct {
		reply  rastest.Reply
		client func(string) ras.Client
		want   ras.Reason
		tries  int
	}{
		"it accepts and never answers":        {rastest.Silent(), hasty, ras.TimedOut, 3},
		"it closes at once":                   {func(*rastest.Conn) {}, patient, ras.Protocol, 3},
		"it has another protocol":             {rastest.Saying("HTTP/1.1 400 Bad Request\r\n"), patient, ras.Protocol, 3},
		"it has no JSON":                      {rastest.Old(), patient, ras.Unsupported, 1},
		"its lines have no end":               {rastest.Saying(strings.Repeat("x", 1<<16)), patient, ras.Protocol, 3},
		"half a line":                         {func(c *rastest.Conn) { c.Line(); c.Send("SERVER PROT"); c.Wait() }, hasty, ras.TimedOut, 3},
		"the answer is an error":              {rastest.Status("ERROR: out of memory\n"), patient, ras.Protocol, 1},
		"the answer is empty":                 {rastest.Status(""), patient, ras.Protocol, 1},
		"the answer is cut off":               {rastest.Status(two[:len(two)/2]), patient, ras.Malformed, 1},
		"the answer is text":                  {rastest.Status("NCCL version 2.30.7\n"), patient, ras.Malformed, 1},
		"the answer is other JSON":            {rastest.Status(`{"a":[1]}`), patient, ras.Malformed, 1},
		"the answer has other types":          {rastest.Status(`{"communicators":[{"size":"many"}]}`), patient, ras.Malformed, 1},
		"the answer has a long number":        {rastest.Status(`{"communicators":[{"size":` + strings.Repeat("1", 1<<16) + "}]}"), patient, ras.Malformed, 1},
		"the answer has no end":               {rastest.Endless(two), patient, ras.TooLarge, 1},
		"the answer comes and nothing closes": {rastest.Hanging(two), brief, ras.TimedOut, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := rastest.New(t, tt.reply)
			client := tt.client(server.Endpoint)
			_, err := client.Status(t.Context())
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1<<10, "it is logged")
			assert.Equal(t, tt.want, ras.ReasonOf(err), err.Error())
			// The server may accept a connection after the client has given it up.
			require.Eventually(t, func() bool { return server.Connections() == tt.tries }, time.Minute, time.Millisecond)
			assert.NotContains(t, strings.Join(server.Lines(), "\n"), "MONITOR")
		})
	}
}

// The kernel may choose a process that ends first.
func TestAnotherProcessAnswers(t *testing.T) {
	ends := func(*rastest.Conn) {}
	server := rastest.New(t, ends, ends, rastest.Status(two))
	client := patient(server.Endpoint)
	answer, err := client.Status(t.Context())
	require.NoError(t, err)
	assert.Len(t, answer.Communicators, 1)
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	client := patient(listener.Addr().String())
	_, err = client.Status(t.Context())
	assert.Equal(t, ras.Refused, ras.ReasonOf(err))
}

// A query ends with its context.
func TestStatusIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := rastest.New(t, func(c *rastest.Conn) {
		c.Serve()
		cancel()
		c.Wait()
	})
	client := patient(server.Endpoint)
	_, err := client.Status(ctx)
	assert.Equal(t, ras.TimedOut, ras.ReasonOf(err))
}
