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

// retryError is a refusal that says when to send again.
type retryError struct {
	error
	status *status.Status
}

func (e *retryError) Unwrap() error { return e.error }

// GRPCStatus returns the status that a receiver answers with.
func (e *retryError) GRPCStatus() *status.Status { return e.status }

// withRetry adds to a refusal that may be sent again when to do so. Refusals
// that are permanent, that say so already, or whose sender has gone stay as they
// are.
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

// nextTraces, nextMetrics and nextLogs are the next component, whose refusals
// pass withRetry.
type nextTraces struct {
	consumer.Traces
	guard *guard
}

// ConsumeTraces returns what the next component returns, after withRetry.
func (n nextTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return n.guard.withRetry(n.Traces.ConsumeTraces(ctx, td))
}

type nextMetrics struct {
	consumer.Metrics
	guard *guard
}

// ConsumeMetrics returns what the next component returns, after withRetry.
func (n nextMetrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return n.guard.withRetry(n.Metrics.ConsumeMetrics(ctx, md))
}

type nextLogs struct {
	consumer.Logs
	guard *guard
}

// ConsumeLogs returns what the next component returns, after withRetry.
func (n nextLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return n.guard.withRetry(n.Logs.ConsumeLogs(ctx, ld))
}
