package ras

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// handshake limits the time until a connection has replied to each line of the
	// handshake.
	handshake = time.Second
	// attempts is the number of connections of one query: the kernel may choose
	// another process for the next one.
	attempts = 3
	// maxReply is the longest reply to a line of the handshake in bytes. NCCL's are
	// shorter than 1 KiB.
	maxReply = 4 << 10
)

// Reason says why a query failed. It is a label of the receiver's own metrics.
type Reason string

// The reasons.
const (
	// Refused means that no process listens: there is no job with NCCL.
	Refused Reason = "refused"
	// TimedOut means that the process has not replied in time, or not to the end.
	TimedOut Reason = "timeout"
	// TooLarge means that the answer is larger than the limit.
	TooLarge Reason = "too_large"
	// Unsupported means that this version of NCCL does not write JSON.
	Unsupported Reason = "unsupported"
	// Protocol means that the reply is none of the protocol, or an error.
	Protocol Reason = "protocol"
	// Malformed means that the answer is not the JSON of a status.
	Malformed Reason = "malformed"
)

// Error is a failed query.
type Error struct {
	Reason Reason
	err    error
}

// Error implements error. The text has at most 256 characters of the cause, which can
// have a part of the answer.
func (e *Error) Error() string { return fmt.Sprintf("%s: %.256s", e.Reason, e.err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// ReasonOf returns the reason of an error of this package, Protocol for others.
func ReasonOf(err error) Reason {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own.Reason
	}
	return Protocol
}

// Client asks one endpoint. The service has no authentication, and has commands
// that change a job: the client sends only those that read a status.
type Client struct {
	// Endpoint is host:port.
	Endpoint string
	// Timeout is how long NCCL waits for each process of the job, at least one
	// second. A query takes at most twice as long and the time of the handshake.
	Timeout time.Duration
	// MaxSize is the largest answer in bytes.
	MaxSize int64
	// Handshake is the limit for the handshake of a connection. 0 means 1s.
	Handshake time.Duration
}

// Status asks for the status of the communicators of a job. If several jobs of a
// user run on the host, the kernel chooses which one answers. A process that is
// stopped may accept a connection: if the handshake fails, Status tries again, at
// most two times. The error is an *Error.
func (c *Client) Status(ctx context.Context) (*Answer, error) {
	for attempt := 1; ; attempt++ {
		conn, reader, err := c.connect(ctx)
		if err == nil {
			defer func() { _ = conn.Close() }()
			return c.status(ctx, conn, reader)
		}
		reason := ReasonOf(err)
		if attempt == attempts || reason == Refused || reason == Unsupported || ctx.Err() != nil {
			return nil, err
		}
	}
}

// connect opens a connection that answers in JSON.
func (c *Client) connect(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	limit := c.Handshake
	if limit == 0 {
		limit = handshake
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", c.Endpoint)
	if err != nil {
		return nil, nil, failed(err)
	}
	stop := interrupt(ctx, conn)
	reader := bufio.NewReaderSize(conn, maxReply)
	seconds := strconv.Itoa(int(math.Ceil(c.Timeout.Seconds())))
	for _, step := range []struct {
		line, reply string
		otherwise   Reason
	}{
		{"CLIENT PROTOCOL 2", "SERVER PROTOCOL ", Protocol},
		{"TIMEOUT " + seconds, "OK", Protocol},
		{"SET FORMAT json", "OK", Unsupported},
	} {
		if err = send(conn, reader, step.line, step.reply, step.otherwise); err != nil {
			break
		}
	}
	// Stopped before the limit has passed, so that it does not end the answer.
	if !stop() && err == nil {
		err = failed(context.DeadlineExceeded)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, reader, nil
}

// send sends a line and reads the reply to it.
func send(conn net.Conn, reader *bufio.Reader, line, reply string, otherwise Reason) error {
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return failed(err)
	}
	got, err := reader.ReadSlice('\n')
	if err != nil {
		return failed(err)
	}
	if text := strings.TrimRight(string(got), "\r\n"); !strings.HasPrefix(text, reply) {
		return &Error{otherwise, fmt.Errorf("the reply to %q is %.100q", line, text)}
	}
	return nil
}

// status reads the answer, after which the service closes the connection.
func (c *Client) status(ctx context.Context, conn net.Conn, reader io.Reader) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.Timeout+handshake)
	defer cancel()
	defer interrupt(ctx, conn)()
	if _, err := io.WriteString(conn, "STATUS\n"); err != nil {
		return nil, failed(err)
	}
	raw, err := io.ReadAll(io.LimitReader(reader, c.MaxSize+1))
	switch {
	case int64(len(raw)) > c.MaxSize:
		return nil, &Error{TooLarge, fmt.Errorf("the answer has more than %d bytes", c.MaxSize)}
	case err != nil:
		return nil, failed(err)
	case len(raw) == 0:
		return nil, failed(io.ErrUnexpectedEOF)
	case bytes.HasPrefix(raw, []byte("ERROR:")):
		return nil, &Error{Protocol, fmt.Errorf("the answer is %.100q", raw)}
	}
	answer, err := Parse(raw)
	if err != nil {
		return nil, &Error{Malformed, err}
	}
	return answer, nil
}

// interrupt ends reading and writing when ctx ends. stop reports whether it was
// called before.
func interrupt(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// failed returns the error of a network operation.
func failed(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Refused, err}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{TimedOut, err}
	}
	return &Error{Protocol, err}
}
