package send

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

type grpcSender struct {
	conn    *grpc.ClientConn
	retry   Retry
	traces  ptraceotlp.GRPCClient
	metrics pmetricotlp.GRPCClient
	logs    plogotlp.GRPCClient
}

// NewGRPC returns a sender for an endpoint host:port, in plain text.
// http://host:port means the same, as in the configuration of some clients, and
// https://host:port uses TLS with the system's roots. It does not connect yet.
func NewGRPC(endpoint string, retry Retry) (Sender, error) {
	target, secure, err := grpcTarget(endpoint)
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if secure {
		creds = credentials.NewTLS(nil)
	}
	// "passthrough" leaves the address to the dialer: no lookups of service
	// configurations, and a proxy of the environment is not used.
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	return &grpcSender{
		conn: conn, retry: retry,
		traces:  ptraceotlp.NewGRPCClient(conn),
		metrics: pmetricotlp.NewGRPCClient(conn),
		logs:    plogotlp.NewGRPCClient(conn),
	}, nil
}

func grpcTarget(endpoint string) (target string, secure bool, err error) {
	target = endpoint
	if rest, ok := strings.CutPrefix(endpoint, "https://"); ok {
		target, secure = rest, true
	} else if rest, ok := strings.CutPrefix(endpoint, "http://"); ok {
		target = rest
	}
	target = strings.TrimSuffix(target, "/")
	host, port, err := net.SplitHostPort(target)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || host == "" || number == 0 {
		return "", false, fmt.Errorf("endpoint %q is not host:port", endpoint)
	}
	return target, secure, nil
}

// Traces implements Sender.
func (s *grpcSender) Traces(ctx context.Context, td ptrace.Traces) (Partial, error) {
	return s.retry.do(ctx, func(ctx context.Context) (Partial, error) {
		resp, err := s.traces.Export(ctx, ptraceotlp.NewExportRequestFromTraces(td))
		if err != nil {
			return Partial{}, grpcError(err)
		}
		return Partial{resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage()}, nil
	})
}

// Metrics implements Sender.
func (s *grpcSender) Metrics(ctx context.Context, md pmetric.Metrics) (Partial, error) {
	return s.retry.do(ctx, func(ctx context.Context) (Partial, error) {
		resp, err := s.metrics.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
		if err != nil {
			return Partial{}, grpcError(err)
		}
		return Partial{resp.PartialSuccess().RejectedDataPoints(), resp.PartialSuccess().ErrorMessage()}, nil
	})
}

// Logs implements Sender.
func (s *grpcSender) Logs(ctx context.Context, ld plog.Logs) (Partial, error) {
	return s.retry.do(ctx, func(ctx context.Context) (Partial, error) {
		resp, err := s.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(ld))
		if err != nil {
			return Partial{}, grpcError(err)
		}
		return Partial{resp.PartialSuccess().RejectedLogRecords(), resp.PartialSuccess().ErrorMessage()}, nil
	})
}

// Close implements Sender.
func (s *grpcSender) Close() error { return s.conn.Close() }

// grpcError marks the errors after which OTLP allows a retry:
// https://opentelemetry.io/docs/specs/otlp/#failures. RESOURCE_EXHAUSTED is one
// of them only with a delay from the server.
func grpcError(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	again := retryable{error: err}
	told := false
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			again.after, told = info.GetRetryDelay().AsDuration(), true
		}
	}
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return again
	case codes.ResourceExhausted:
		if told {
			return again
		}
	}
	return err
}
