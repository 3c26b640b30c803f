// Package send sends OTLP requests over gRPC or HTTP, with limited retries, and
// reports what the server did not accept.
package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Partial is the number of items that a server refused from a request that it
// accepted. The zero value means none.
type Partial struct {
	Refused int64
	Message string
}

// Sender sends requests to one server. It is safe for concurrent use. A nil
// error means that the server answered with success.
type Sender interface {
	Traces(ctx context.Context, td ptrace.Traces) (Partial, error)
	Metrics(ctx context.Context, md pmetric.Metrics) (Partial, error)
	Logs(ctx context.Context, ld plog.Logs) (Partial, error)
	// Close releases connections.
	Close() error
}

// Retry limits the attempts for one request. The zero value means one attempt.
type Retry struct {
	// Attempts is the maximal number of attempts, including the first. Below 1
	// means 1.
	Attempts int
	// Wait is the pause after the first attempt; it doubles up to MaxWait. The
	// server's own delay takes precedence, also up to MaxWait.
	Wait time.Duration
	// MaxWait is the longest pause.
	MaxWait time.Duration
	// Timeout limits one attempt. 0 means no limit except the context's.
	Timeout time.Duration
}

// DefaultRetry returns five attempts, which take about four seconds if the
// server answers at once.
func DefaultRetry() Retry {
	return Retry{Attempts: 5, Wait: 250 * time.Millisecond, MaxWait: 2 * time.Second, Timeout: 10 * time.Second}
}

// retryable is an error after which the protocol allows a retry.
type retryable struct {
	error
	// after is the server's delay; 0 means none.
	after time.Duration
}

func (r retryable) Unwrap() error { return r.error }

// do runs attempts until one succeeds, fails for good, or the bounds are met.
func (r Retry) do(ctx context.Context, attempt func(context.Context) (Partial, error)) (Partial, error) {
	wait := r.Wait
	for n := 1; ; n++ {
		partial, err := r.once(ctx, attempt)
		var again retryable
		if err == nil || !errors.As(err, &again) {
			return partial, err
		}
		if n >= r.Attempts {
			return Partial{}, fmt.Errorf("after %d attempts: %w", n, err)
		}
		pause := wait
		if again.after > 0 {
			pause = again.after
		}
		timer := time.NewTimer(min(pause, r.MaxWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return Partial{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-timer.C:
		}
		wait *= 2
	}
}

func (r Retry) once(ctx context.Context, attempt func(context.Context) (Partial, error)) (Partial, error) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	return attempt(ctx)
}
