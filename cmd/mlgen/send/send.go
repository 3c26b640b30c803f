// Package send delivers OTLP requests over gRPC or HTTP, with bounded retries,
// and reports what the server did not take.
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

// Partial is a server's answer about a request that it took: how many of its
// items it refused all the same. The zero value means none.
type Partial struct {
	Refused int64
	Message string
}

// Sender delivers requests to one server. It is safe for concurrent use. A nil
// error means that the server answered with success.
type Sender interface {
	Traces(ctx context.Context, td ptrace.Traces) (Partial, error)
	Metrics(ctx context.Context, md pmetric.Metrics) (Partial, error)
	Logs(ctx context.Context, ld plog.Logs) (Partial, error)
	// Close releases connections.
	Close() error
}

// Retry bounds the attempts for one request. The zero value means one attempt.
type Retry struct {
	// Attempts is the largest number of attempts, the first included. Below 1
	// means 1.
	Attempts int
	// Wait is the pause after the first attempt; it doubles up to MaxWait. A
	// server's own wish replaces it, also at most MaxWait.
	Wait time.Duration
	// MaxWait is the longest pause.
	MaxWait time.Duration
	// Timeout bounds one attempt. 0 means no bound beyond the context's.
	Timeout time.Duration
}

// DefaultRetry makes five attempts within about four seconds where the server
// answers at once.
func DefaultRetry() Retry {
	return Retry{Attempts: 5, Wait: 250 * time.Millisecond, MaxWait: 2 * time.Second, Timeout: 10 * time.Second}
}

// retryable is an error that the protocol allows to try again.
type retryable struct {
	error
	// after is the server's wish; 0 means none.
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
