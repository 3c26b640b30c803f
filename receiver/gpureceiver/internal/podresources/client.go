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

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
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
	// Interval is the least time between two requests. Zero means no limit.
	Interval time.Duration
	// Timeout is the limit for an answer. It must be positive.
	Timeout time.Duration
	// Logger gets one line for each change between answers and errors.
	Logger *zap.Logger
	// Now is the clock.
	Now func() time.Time
}

// Client reads the GPUs of containers from the kubelet. Create it with
// NewClient; a nil Client asks nothing.
type Client struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup
	stop   shared.Stop

	mu     sync.Mutex
	busy   bool
	closed bool
	asked  time.Time
	owners Owners
	denied bool
	// logged is the kind of the last answer: a code, or "" without a kubelet.
	logged string
}

// NewClient returns a client that has sent no request yet.
func NewClient(opts Options) *Client {
	c := &Client{opts: opts}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Poll sends a request in the background, unless the last one was less than the
// interval ago or has no answer yet. It never waits.
func (c *Client) Poll() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	// A clock that was set back must not stop the requests.
	early := now.Sub(c.asked) < c.opts.Interval && !now.Before(c.asked)
	if c.closed || c.busy || !c.asked.IsZero() && early {
		return
	}
	c.busy, c.asked = true, now
	c.asking.Go(c.ask)
}

// Owners returns the kubelet's last answer, or nil without one. The state is
// SourceOK if it answered, and SourceDenied if the socket may not be used.
func (c *Client) Owners() (Owners, workload.SourceState) {
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

// Shutdown interrupts the current request and waits for it, until ctx ends. It
// is safe to call again.
func (c *Client) Shutdown(ctx context.Context) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	_ = c.stop.Do(ctx, func() error {
		c.asking.Wait()
		return nil
	})
}

// ask sends one request and keeps the answer. It drops the earlier answer if the
// request fails, because that may be outdated.
func (c *Client) ask() {
	owners, err := c.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.closed {
		// The request was interrupted.
		return
	}
	c.owners = owners
	c.denied = errors.Is(err, fs.ErrPermission) || status.Code(err) == codes.PermissionDenied
	c.log(err)
}

// list opens a new connection, because a restarted kubelet has another socket at
// the same path. It dials before it uses gRPC, which would log a warning for each
// missing socket.
func (c *Client) list() (Owners, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
	defer cancel()
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.opts.Socket)
	if err != nil {
		return nil, err
	}
	// gRPC closes the connection too, if it has used it.
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

// errConnectionLost means that the request's one connection has ended.
var errConnectionLost = errors.New("the connection to the kubelet has ended")

// log logs a change of the answer's kind. A kubelet that was never there is not
// logged, because most hosts have none.
func (c *Client) log(err error) {
	// A socket that refuses connections has the code Unknown.
	kind, write := status.Code(err).String(), c.opts.Logger.Info
	text := "The kubelet lists the GPUs of containers"
	switch {
	case err == nil:
	case c.denied:
		kind, text = "denied", "The collector has no permission for the kubelet's socket, which needs root; containers with GPUs have no names"
	case errors.Is(err, fs.ErrNotExist):
		kind, text = "", "The kubelet's socket is gone; containers with GPUs have no names until it is back"
	default:
		write, text = c.opts.Logger.Warn, "The kubelet does not list the GPUs of containers; the receiver tries again"
	}
	if kind != c.logged {
		c.logged = kind
		write(text, zap.String("socket", c.opts.Socket), zap.Error(err))
	}
}
