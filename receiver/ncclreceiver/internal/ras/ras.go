// Package ras asks the RAS (reliability, availability and serviceability) service of
// NCCL for the status of a job's communicators, and reads its answers. The service
// is part of every process that uses NCCL.
package ras

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxSize is the largest accepted number of ranks of a communicator.
	maxSize = 1 << 20
	// maxHash is the length of two hashes and three numbers of 64 bits.
	maxHash = 64
	// minEntry is less than a rank or a communicator has in an answer, in bytes.
	minEntry = 64
)

// Collectives are the operations that NCCL counts, in the order of Rank.Counts.
var Collectives = [...]string{"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"}

// Answer is what a process says about the communicators of its job.
type Answer struct {
	// Communicators are ordered by size, the largest first.
	Communicators []Communicator
	// Dropped is the number of communicators that were left out because their
	// numbers are impossible.
	Dropped int
}

// Communicator is a group of ranks.
type Communicator struct {
	// Hash has the communicator's hash and secondary hash, which identify it.
	Hash string `json:"hash"`
	// Size is the number of ranks that it was made with.
	Size int `json:"size"`
	// Ranks have responded, Missing have not. Both are ordered by Number.
	Ranks   list[Rank] `json:"ranks"`
	Missing list[Rank] `json:"missing_ranks"`
	// Secondary is the second part of Hash until an answer is read.
	Secondary string `json:"secondary_hash"`
}

// Rank is one rank of a communicator.
type Rank struct {
	// Number is the rank in the communicator.
	Number int
	// Host is the address of its host. It is not valid if unknown.
	Host netip.Addr
	// PID is its process in the process's PID namespace, -1 if unknown.
	PID int
	// Device is the index of its CUDA device in the process.
	Device int
	// Running reports, of a rank that has responded, whether it is neither being
	// made, destroyed nor aborted.
	Running bool
	// Counts has the operations that it has launched.
	Counts [len(Collectives)]uint64
	// Unresponsive and Dead are, of a missing rank, whether its process has not
	// responded, and whether NCCL has given it up.
	Unresponsive, Dead bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Rank) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Rank   int    `json:"rank"`
		Host   string `json:"host"`
		PID    int    `json:"pid"`
		Device int    `json:"cuda_dev"`
		Status struct {
			InitState    int  `json:"init_state"`
			Finalize     bool `json:"finalize_called"`
			Destroy      bool `json:"destroy_flag"`
			Abort        bool `json:"abort_flag"`
			Unresponsive bool `json:"unresponsive"`
			Dead         bool `json:"considered_dead"`
		} `json:"status"`
		Counts struct {
			Broadcast, Reduce, AllGather, ReduceScatter, AllReduce uint64
		} `json:"collective_counts"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	host, _ := netip.ParseAddr(wire.Host) // "unknown" is none
	s, counts := &wire.Status, &wire.Counts
	*r = Rank{
		Number: wire.Rank, Host: host.Unmap().WithZone(""), PID: max(wire.PID, -1), Device: wire.Device,
		Running:      s.InitState == 0 && !s.Finalize && !s.Destroy && !s.Abort,
		Counts:       [...]uint64{counts.Broadcast, counts.Reduce, counts.AllGather, counts.ReduceScatter, counts.AllReduce},
		Unresponsive: s.Unresponsive, Dead: s.Dead,
	}
	return nil
}

// list is a list whose memory is bounded by the length of its text, which hostile
// lists of small entries would exceed many times.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if first, err := decoder.Token(); err != nil || first == nil {
		return err
	} else if first != json.Delim('[') {
		return errors.New("it is no list")
	}
	for decoder.More() {
		if len(*l) > len(raw)/minEntry {
			return errors.New("the entries of a list are too short")
		}
		var one T
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// Parse reads an answer. It also reads that of NCCL 2.28.9, which leaves out commas.
func Parse(raw []byte) (*Answer, error) {
	var wire struct {
		Communicators list[Communicator] `json:"communicators"`
	}
	err := json.Unmarshal(raw, &wire)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		wire.Communicators = nil
		err = json.Unmarshal(insertCommas(raw), &wire)
	}
	if err != nil {
		return nil, err
	}
	if wire.Communicators == nil {
		return nil, errors.New(`the answer has no "communicators"`)
	}
	answer := &Answer{}
	seen := make(map[string]bool, len(wire.Communicators))
	for _, c := range wire.Communicators {
		c.Hash += ":" + c.Secondary
		// Two with one hash would be two series with one name.
		if !c.order() || seen[c.Hash] {
			answer.Dropped++
			continue
		}
		seen[c.Hash] = true
		answer.Communicators = append(answer.Communicators, c)
	}
	slices.SortFunc(answer.Communicators, func(a, b Communicator) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Hash, b.Hash))
	})
	return answer, nil
}

// order orders the ranks of a communicator, and returns false if its numbers are
// impossible.
func (c *Communicator) order() bool {
	if len(c.Hash) > maxHash || strings.Trim(c.Hash, "0123456789abcdefx:") != "" || len(c.Hash) < 2 || c.Size < 1 || c.Size > maxSize {
		return false
	}
	seen := make(map[int]bool)
	for _, ranks := range [...][]Rank{c.Ranks, c.Missing} {
		for i := range ranks {
			number := ranks[i].Number
			if number < 0 || number >= c.Size || seen[number] {
				return false
			}
			seen[number] = true
		}
		slices.SortFunc(ranks, func(a, b Rank) int { return cmp.Compare(a.Number, b.Number) })
	}
	return true
}

// jsonToken is white space, a text, or another token of JSON.
var jsonToken = regexp.MustCompile(`[ \t\r\n]+|"(?:[^"\\]|\\(?s:.))*"?|[,:{}\[\]]|[^ \t\r\n,:{}\[\]"]+`)

// insertCommas puts a comma wherever a value follows another one without. It leaves
// valid JSON as it is.
func insertCommas(raw []byte) []byte {
	afterValue := false
	return jsonToken.ReplaceAllFunc(raw, func(token []byte) []byte {
		first := token[0]
		if strings.IndexByte(" \t\r\n", first) >= 0 {
			return token
		}
		if afterValue && strings.IndexByte(",:}]", first) < 0 {
			token = slices.Concat([]byte{','}, token)
		}
		afterValue = strings.IndexByte(",:{[", first) < 0
		return token
	})
}

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

// Error implements error, of which a query returns one that wraps the reason.
func (r Reason) Error() string { return string(r) }

// because returns an error with at most 256 characters of the cause, which can have a part
// of the answer.
func (r Reason) because(cause any) error { return fmt.Errorf("%w: %.256v", r, cause) }

// ReasonOf returns the reason of an error of this package, Protocol for others.
func ReasonOf(err error) Reason {
	reason := Protocol
	errors.As(err, &reason)
	return reason
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
// most two times. The error wraps a Reason.
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
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Handshake, handshake))
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Endpoint)
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
		return otherwise.because(fmt.Sprintf("the reply to %q is %.100q", line, text))
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
		return nil, TooLarge.because(fmt.Sprintf("the answer has more than %d bytes", c.MaxSize))
	case err != nil:
		return nil, failed(err)
	case len(raw) == 0:
		return nil, failed(io.ErrUnexpectedEOF)
	case bytes.HasPrefix(raw, []byte("ERROR:")):
		return nil, Protocol.because(fmt.Sprintf("the answer is %.100q", raw))
	}
	answer, err := Parse(raw)
	if err != nil {
		return nil, Malformed.because(err)
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
		return Refused.because(err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return TimedOut.because(err)
	}
	return Protocol.because(err)
}
