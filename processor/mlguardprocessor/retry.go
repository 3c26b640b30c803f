package mlguardprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// retryError is a temporary error with the delay until the next attempt.
type retryError struct {
	error
	status *status.Status
}

func (e *retryError) Unwrap() error { return e.error }

// GRPCStatus returns the status with which a receiver answers.
func (e *retryError) GRPCStatus() *status.Status { return e.status }

// withRetry adds the retry delay to a temporary error. It returns errors
// unchanged that are permanent, that already have a delay, or whose client has
// gone.
func (g *guard) withRetry(err error) error {
	if g.retryAfter == 0 || err == nil || consumererror.IsPermanent(err) || errors.Is(err, context.Canceled) {
		return err
	}
	s, known := status.FromError(err)
	if !known {
		s = status.New(codes.Unavailable, err.Error())
	}
	switch s.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded, codes.OutOfRange, codes.DataLoss:
	default:
		return err
	}
	for _, detail := range s.Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return err
		}
	}
	s, detailed := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(g.retryAfter)})
	if detailed != nil {
		return err
	}
	return &retryError{error: err, status: s}
}

// nextTraces, nextMetrics and nextLogs apply withRetry to the next component's
// errors.
type nextTraces struct {
	consumer.Traces
	guard *guard
}

// ConsumeTraces returns the next component's error, with a retry delay.
func (n nextTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return n.guard.withRetry(n.Traces.ConsumeTraces(ctx, td))
}

type nextMetrics struct {
	consumer.Metrics
	guard *guard
}

// ConsumeMetrics returns the next component's error, with a retry delay.
func (n nextMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return n.guard.withRetry(n.Metrics.ConsumeMetrics(ctx, md))
}

type nextLogs struct {
	consumer.Logs
	guard *guard
}

// ConsumeLogs returns the next component's error, with a retry delay.
func (n nextLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return n.guard.withRetry(n.Logs.ConsumeLogs(ctx, ld))
}
