package podresources

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

const (
	// maxAnswerSize is the largest answer in bytes, which is also the
	// kubelet's own limit.
	maxAnswerSize = 16 << 20
	// maxHeaderSize bounds what comes before the answer, in bytes.
	maxHeaderSize = 64 << 10
)

// Options are the settings of a Client.
type Options struct {
	// Socket is the path of the kubelet's socket.
	Socket string
	// Interval is the least time between two questions. Zero means none.
	Interval time.Duration
	// Timeout is how long the kubelet may take to answer. It must be positive.
	Timeout time.Duration
	// Logger gets one line for each change of what the kubelet answers.
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Client asks the kubelet which container has which GPU. NewClient makes one.
type Client struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	busy   bool
	closed bool
	asked  time.Time
	owners *Owners
	denied bool
	// logged is what was last logged.
	logged answerKind
}

// answerKind is what is logged when it changes: nothing yet, or what the
// kubelet answered.
type answerKind string

const (
	kindNone     answerKind = ""
	kindAnswered answerKind = "answered"
	kindDenied   answerKind = "denied"
	// Others are the codes of errors.
)

// NewClient returns a client that has not asked yet.
func NewClient(opts Options) *Client {
	c := &Client{opts: opts}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Poll asks the kubelet in the background, unless it was asked less than the
// interval ago or has not answered yet. It never waits.
func (c *Client) Poll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	// A clock that was set back must not end the questions.
	early := now.Sub(c.asked) < c.opts.Interval && !now.Before(c.asked)
	if c.closed || c.busy || !c.asked.IsZero() && early {
		return
	}
	c.busy, c.asked = true, now
	c.asking.Go(c.ask)
}

// Owners returns what the kubelet answered last: nil where it did not answer.
// The state says whether it may be asked; SourceOK only that it answered.
func (c *Client) Owners() (*Owners, workload.SourceState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.owners != nil:
		return c.owners, workload.SourceOK
	case c.denied:
		return nil, workload.SourceDenied
	}
	return nil, workload.SourceAbsent
}

// Shutdown stops asking and waits for what is under way, which it interrupts.
// It is safe to call again.
func (c *Client) Shutdown(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	done := make(chan struct{})
	go func() {
		c.asking.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// ask asks once and keeps the answer. An answer is dropped as soon as the next
// one fails: what it says may have changed.
func (c *Client) ask() {
	owners, err := c.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.closed {
		// The interruption says nothing about the kubelet.
		return
	}
	c.owners = owners
	c.denied = errors.Is(err, fs.ErrPermission) || status.Code(err) == codes.PermissionDenied
	c.log(err)
}

// list opens a connection of its own: a kubelet that was started again has
// another socket at the same path. It opens it before gRPC is asked anything,
// which would log a socket that is not there as a warning each time.
func (c *Client) list() (*Owners, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
	defer cancel()
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.opts.Socket)
	if err != nil {
		return nil, err
	}
	// It is closed by gRPC, or here where gRPC has not taken it.
	defer func() { _ = dialed.Close() }()
	opened := make(chan net.Conn, 1)
	opened <- dialed
	connection, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case dialed := <-opened:
				return dialed, nil
			default:
				return nil, errConnectionLost
			}
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithMaxHeaderListSize(maxHeaderSize),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerSize)),
	)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	answer, err := podresourcesapi.NewPodResourcesListerClient(connection).List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return ownersOf(answer)
}

// errConnectionLost means that the one connection of a question has ended.
var errConnectionLost = errors.New("the connection to the kubelet has ended")

// log tells a change. A kubelet that was never there is no news: most hosts
// have none.
func (c *Client) log(err error) {
	kind := kindAnswered
	switch {
	case err == nil:
	case c.denied:
		kind = kindDenied
	case errors.Is(err, fs.ErrNotExist):
		kind = kindNone
	default:
		// Sockets that cannot be connected to have no code: they are unknown.
		kind = answerKind(status.Code(err).String())
	}
	if kind == c.logged {
		return
	}
	c.logged = kind
	socket := zap.String("socket", c.opts.Socket)
	switch kind {
	case kindAnswered:
		c.opts.Logger.Info("The kubelet tells which container has which GPU", socket)
	case kindNone:
		c.opts.Logger.Info("The kubelet's socket is gone; containers that have GPUs have no names until it is back", socket)
	case kindDenied:
		c.opts.Logger.Info("The kubelet's socket may not be used, so that containers that have GPUs have no names; it needs root", socket)
	default:
		c.opts.Logger.Warn("The kubelet does not tell which container has which GPU; it is asked again", socket, zap.Error(err))
	}
}
