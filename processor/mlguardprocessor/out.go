package mlguardprocessor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// endsAfter is how long everything must have been taken until a time without is
// over: a queue that is full takes a request now and then.
const endsAfter = 30 * time.Second

// wayOut is where a signal goes after a guard, with what the components there have not
// taken. It is safe for concurrent use.
type wayOut struct {
	OutConfig

	retryAfter time.Duration
	logger     *zap.Logger
	state      *shared.State
	// signal is the signal's name, and ofSignal has the attributes of its counters.
	signal   string
	ofSignal metric.MeasurementOption
	// become is what becomes of what is not taken, "dropped" or "refused", and untaken
	// counts it.
	become  string
	untaken metric.Int64Counter

	mu sync.Mutex
	// lasts reports whether there is a time now in which something is not taken.
	lasts bool
	// since and last are the beginning of the present or last such time and when
	// something was last not taken in it, until its end. items were not taken in it,
	// and all ever.
	since, last, until time.Time
	items, all         int64
}

func newWayOut(cfg *Config, set processor.Settings, telemetry *metadata.TelemetryBuilder, signal string) *wayOut {
	o := &wayOut{
		retryAfter: cfg.RetryAfter, logger: set.Logger, signal: signal,
		ofSignal: metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal), attribute.String("processor", set.ID.String()))),
		become:   "refused", untaken: telemetry.ProcessorMlGuardItemsRefused,
	}
	if out := cfg.Out.Get(); out != nil {
		o.OutConfig = *out
	}
	if o.drops() {
		o.become, o.untaken = "dropped", telemetry.ProcessorMlGuardItemsDropped
	}
	return o
}

// add adds what was not taken. It returns true if a time without begins.
func (o *wayOut) add(now time.Time, items int) (begins bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if begins = !o.lasts; begins {
		o.lasts, o.since, o.items = true, now, 0
	}
	o.last = now
	o.items += int64(items)
	o.all += int64(items)
	return begins
}

// taken returns true if a time without ends because something was taken.
func (o *wayOut) taken() (ends bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasts || time.Since(o.last) < endsAfter {
		return false
	}
	o.lasts, o.until = false, time.Now()
	return true
}

// passed takes what the next component returned for items, and returns what the
// sender is told.
func (o *wayOut) passed(ctx context.Context, items int, err error) error {
	if err == nil {
		if o.taken() {
			o.logger.Info("What follows takes data again.", zap.String("signal", o.signal))
		}
		return nil
	}
	now := time.Now()
	var told error
	if !o.drops() {
		// A guard that is nearer to the refusal has counted it.
		counted := errors.As(err, new(*retryError))
		var temporary bool
		if temporary, told = o.withRetry(err); !temporary || counted || ctx.Err() != nil {
			return told
		}
		o.state.Refused(now)
	}
	o.untaken.Add(ctx, int64(items), o.ofSignal)
	if o.add(now, items) {
		o.logger.Warn("Data is "+o.become+", because what follows refuses it.", zap.String("signal", o.signal), zap.Error(err))
	}
	return told
}

// drops reports whether what is not taken is dropped.
func (o *wayOut) drops() bool { return o.WhenRefused == Drop }

// leadsNowhere reports whether there is no back end.
func (o *wayOut) leadsNowhere() bool { return o.Destination != nil && *o.Destination == "" }

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
func (o *wayOut) withRetry(err error) (temporary bool, told error) {
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
	if o.retryAfter == 0 {
		return true, err
	}
	for _, detail := range s.Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return true, &retryError{error: err, status: s}
		}
	}
	s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(o.retryAfter)}) // it fails only without an error
	return true, &retryError{error: err, status: s}
}

// notices returns a notice if there is no back end, or if something was not taken.
func (o *wayOut) notices() []shared.Notice {
	if o.leadsNowhere() {
		return []shared.Notice{{
			Key: "destination " + o.signal, Kind: "destination", What: "A back end that keeps " + o.signal,
			Why: "The collector has no address of one. This page shows the newest " + o.signal + "; metrics and problems are computed from all. In the shipped configurations, the collector's environment has the address.",
			Fix: "JAEGER_ENDPOINT=<host:port>",
		}}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return nil
	}
	notice := shared.Notice{Key: o.become + " " + o.signal, Kind: o.become, Count: o.all}
	to := ""
	if o.drops() {
		to = " for the back end"
		if o.Destination != nil {
			to += " " + *o.Destination
		}
	}
	if !o.lasts {
		notice.What = strings.ToUpper(o.signal[:1]) + o.signal[1:] + to + " that were " + o.become
		notice.Why = "The last time was from " + clock(o.since) + " to " + clock(o.until) + "."
		return []shared.Notice{notice}
	}
	notice.Since, notice.Count = o.since, o.items
	if o.drops() {
		notice.What = "Drops " + o.signal + to
		notice.Why = "It takes none, or its queue is full: the collector's log has the error. The last were dropped at " + clock(o.last) + ". Metrics, problems and this page are computed from all " + o.signal + "."
	} else {
		notice.What = "Refuses data: " + o.signal
		notice.Why = "A queue is full or memory is short: the collector's log has the error. The last were refused at " + clock(o.last) + ". Senders may send them again; what they give up is missing everywhere."
	}
	return []shared.Notice{notice}
}

func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 UTC") }
