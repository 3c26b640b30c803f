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
