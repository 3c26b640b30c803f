package mlguardprocessor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// endsAfter is how long everything must have been taken until a time without is
// over: a queue that is full takes a request now and then.
const endsAfter = 30 * time.Second

// untaken is what the components after a guard have not taken. The zero value is
// ready. It is safe for concurrent use, and takes a lock only around such times.
type untaken struct {
	// lasts reports whether there is such a time now.
	lasts atomic.Bool

	mu sync.Mutex
	// since and last are the beginning of the present or last such time and when
	// something was last not taken in it, until its end. items were not taken in it,
	// and all ever.
	since, last, until time.Time
	items, all         int64
}

// add adds what was not taken. It returns true if a time without begins.
func (u *untaken) add(now time.Time, items int) (begins bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if begins = !u.lasts.Load(); begins {
		u.since, u.items = now, 0
		u.lasts.Store(true)
	}
	u.last = now
	u.items += int64(items)
	u.all += int64(items)
	return begins
}

// taken returns true if a time without ends because something was taken.
func (u *untaken) taken() (ends bool) {
	if !u.lasts.Load() {
		return false
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.lasts.Load() || now.Sub(u.last) < endsAfter {
		return false
	}
	u.until = now
	u.lasts.Store(false)
	return true
}

// passed takes what the next component returned for items, and returns what the
// sender is told.
func (g *guard) passed(ctx context.Context, items int, err error) error {
	if err == nil {
		if g.untaken.taken() {
			g.logger.Info("What follows takes data again.", zap.String("signal", g.signal))
		}
		return nil
	}
	if g.drops() {
		g.telemetry.ProcessorMlGuardItemsDropped.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(time.Now(), items) {
			g.logger.Warn("Data is dropped, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
		return nil
	}
	// A guard that is nearer to the refusal has counted it.
	counted := errors.As(err, new(*retryError))
	temporary, told := g.withRetry(err)
	if temporary && !counted && ctx.Err() == nil {
		now := time.Now()
		g.state.Refused(now)
		g.telemetry.ProcessorMlGuardItemsRefused.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(now, items) {
			g.logger.Warn("Data is refused, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
	}
	return told
}

// drops reports whether what is not taken is dropped.
func (g *guard) drops() bool { return g.out != nil && g.out.WhenRefused == Drop }

// leadsNowhere reports whether there is no back end.
func (g *guard) leadsNowhere() bool {
	return g.out != nil && g.out.Destination != nil && *g.out.Destination == ""
}

// retryError is a temporary error with the delay until the next attempt.
type retryError struct {
	error
	status *status.Status
}

func (e *retryError) Unwrap() error { return e.error }

// GRPCStatus returns the status with which a receiver answers.
func (e *retryError) GRPCStatus() *status.Status { return e.status }

// withRetry adds the retry delay to an error that is temporary, as the first result
// says. It returns other errors unchanged: those that are permanent, or whose client
// has gone. Of an error that already has a delay, the delay stays.
func (g *guard) withRetry(err error) (temporary bool, told error) {
	if consumererror.IsPermanent(err) || errors.Is(err, context.Canceled) {
		return false, err
	}
	s, known := status.FromError(err)
	if !known {
		s = status.New(codes.Unavailable, err.Error())
	}
	switch s.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded, codes.OutOfRange, codes.DataLoss:
	default:
		return false, err
	}
	if g.retryAfter == 0 {
		return true, err
	}
	for _, detail := range s.Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return true, &retryError{error: err, status: s}
		}
	}
	s, detailed := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(g.retryAfter)})
	if detailed != nil {
		return true, err
	}
	return true, &retryError{error: err, status: s}
}

// nextTraces, nextMetrics and nextLogs pass the next component's errors to the guard, and
// tell that component that the sender of metrics and log records is believed.
type nextTraces struct {
	consumer.Traces
	guard *guard
}

// ConsumeTraces returns what the sender is told of the next component's error.
func (n nextTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	items := td.SpanCount()
	return n.guard.passed(ctx, items, n.Traces.ConsumeTraces(ctx, td))
}

type nextMetrics struct {
	consumer.Metrics
	guard *guard
}

// ConsumeMetrics returns what the sender is told of the next component's error.
func (n nextMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	items := md.DataPointCount()
	return n.guard.passed(ctx, items, n.Metrics.ConsumeMetrics(n.guard.trust.Mark(ctx), md))
}

type nextLogs struct {
	consumer.Logs
	guard *guard
}

// ConsumeLogs returns what the sender is told of the next component's error.
func (n nextLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	items := ld.LogRecordCount()
	return n.guard.passed(ctx, items, n.Logs.ConsumeLogs(n.guard.trust.Mark(ctx), ld))
}
