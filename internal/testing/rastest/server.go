// Package rastest has a RAS service that answers as tests want, and the text of
// answers in the form that NCCL gives them.
package rastest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Server listens on a port of its own.
type Server struct {
	// Endpoint is its address.
	Endpoint string

	mu      sync.Mutex
	replies []Reply
	lines   []string
	queries int
	conns   map[net.Conn]struct{}
	closing bool
	running sync.WaitGroup
}

// Reply serves one connection. Afterwards the server closes it.
type Reply func(c *Conn)

// Conn is a connection of a client.
type Conn struct {
	net.Conn
	lines  *bufio.Scanner
	server *Server
}

// New starts a server that serves each connection with the next reply, and further
// ones with the last. It ends with the test.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Server{Endpoint: listener.Addr().String(), replies: replies, conns: make(map[net.Conn]struct{})}
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if reply, ok := s.accept(conn); ok {
				s.running.Go(func() { s.serve(conn, reply) })
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		s.closing = true
		for conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return s
}

func (s *Server) accept(conn net.Conn) (Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = conn.Close()
		return nil, false
	}
	s.conns[conn] = struct{}{}
	reply := s.replies[min(s.queries, len(s.replies)-1)]
	s.queries++
	return reply, true
}

func (s *Server) serve(conn net.Conn, reply Reply) {
	reply(&Conn{Conn: conn, lines: bufio.NewScanner(conn), server: s})
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = conn.Close()
	delete(s.conns, conn)
}

// Connections returns the number of connections so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

// Lines returns all lines that clients have sent.
func (s *Server) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// Send writes text.
func (c *Conn) Send(text string) { _, _ = io.WriteString(c.Conn, text) }

// Line returns the next line of the client, and false at the end.
func (c *Conn) Line() (string, bool) {
	if !c.lines.Scan() {
		return "", false
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.lines = append(c.server.lines, c.lines.Text())
	return c.lines.Text(), true
}

// Serve follows the protocol until the client asks for the status.
func (c *Conn) Serve() bool {
	for {
		switch line, ok := c.Line(); {
		case !ok:
			return false
		case strings.HasPrefix(line, "CLIENT PROTOCOL "):
			c.Send("SERVER PROTOCOL 2\n")
		case strings.HasPrefix(line, "TIMEOUT "), line == "SET FORMAT json":
			c.Send("OK\n")
		case line == "STATUS":
			return true
		default:
			c.Send("ERROR: Unknown command " + line + "\n")
		}
	}
}

// Wait waits until the client closes the connection.
func (c *Conn) Wait() { _, _ = io.Copy(io.Discard, c.Conn) }

// Status answers with a text.
func Status(text string) Reply {
	return func(c *Conn) {
		if c.Serve() {
			c.Send(text)
		}
	}
}

// Slowly answers with a text in small parts, and waits between them.
func Slowly(text string, wait time.Duration) Reply {
	return func(c *Conn) {
		if !c.Serve() {
			return
		}
		for part := range strings.SplitAfterSeq(text, "\n") {
			c.Send(part)
			time.Sleep(wait)
		}
	}
}

// Hanging answers with a text and does not close the connection.
func Hanging(text string) Reply {
	return func(c *Conn) {
		if c.Serve() {
			c.Send(text)
			c.Wait()
		}
	}
}

// Endless answers with the same text again and again.
func Endless(text string) Reply {
	return func(c *Conn) {
		if !c.Serve() {
			return
		}
		for {
			if _, err := io.WriteString(c.Conn, text); err != nil {
				return
			}
		}
	}
}

// Silent accepts the connection and sends nothing, as a stopped process does.
func Silent() Reply { return (*Conn).Wait }

// Saying sends a text to each line of the client.
func Saying(text string) Reply {
	return func(c *Conn) {
		for {
			if _, ok := c.Line(); !ok {
				return
			}
			c.Send(text)
		}
	}
}

// Old follows the protocol of a version without JSON.
func Old() Reply {
	return func(c *Conn) {
		for {
			switch line, ok := c.Line(); {
			case !ok:
				return
			case strings.HasPrefix(line, "CLIENT PROTOCOL "):
				c.Send("SERVER PROTOCOL 2\n")
			case strings.HasPrefix(line, "TIMEOUT "):
				c.Send("OK\n")
			default:
				c.Send("ERROR: Unknown command " + line + "\n")
			}
		}
	}
}
