package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// GRPCSender sends OTLP over gRPC.
type GRPCSender struct {
	connection *grpc.ClientConn
}

// NewGRPCSender returns a sender to host:port, without TLS unless an option says
// otherwise. The caller closes it.
func NewGRPCSender(endpoint string, options ...grpc.DialOption) (*GRPCSender, error) {
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	connection, err := grpc.NewClient(endpoint, options...)
	if err != nil {
		return nil, err
	}
	return &GRPCSender{connection: connection}, nil
}

// Close ends the connection.
func (s *GRPCSender) Close() error { return s.connection.Close() }

// Traces sends spans. A partial success is an error, as a test would otherwise
// wait for what was rejected.
func (s *GRPCSender) Traces(ctx context.Context, traces ptrace.Traces) error {
	response, err := ptraceotlp.NewGRPCClient(s.connection).Export(ctx, ptraceotlp.NewExportRequestFromTraces(traces))
	if err != nil {
		return err
	}
	return rejected(response.PartialSuccess().RejectedSpans(), response.PartialSuccess().ErrorMessage())
}

// Metrics sends metrics.
func (s *GRPCSender) Metrics(ctx context.Context, metrics pmetric.Metrics) error {
	response, err := pmetricotlp.NewGRPCClient(s.connection).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(metrics))
	if err != nil {
		return err
	}
	return rejected(response.PartialSuccess().RejectedDataPoints(), response.PartialSuccess().ErrorMessage())
}

// Logs sends log records.
func (s *GRPCSender) Logs(ctx context.Context, logs plog.Logs) error {
	response, err := plogotlp.NewGRPCClient(s.connection).Export(ctx, plogotlp.NewExportRequestFromLogs(logs))
	if err != nil {
		return err
	}
	return rejected(response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage())
}

func rejected(count int64, message string) error {
	if count == 0 && message == "" {
		return nil
	}
	return fmt.Errorf("%d items were rejected: %s", count, message)
}

// PostTraces sends spans by OTLP over HTTP to exactly this URL.
func PostTraces(ctx context.Context, url string, traces ptrace.Traces) error {
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	return errors.Join(err, post(ctx, url, body))
}

// PostMetrics sends metrics by OTLP over HTTP to exactly this URL.
func PostMetrics(ctx context.Context, url string, metrics pmetric.Metrics) error {
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	return errors.Join(err, post(ctx, url, body))
}

// PostLogs sends log records by OTLP over HTTP to exactly this URL.
func PostLogs(ctx context.Context, url string, logs plog.Logs) error {
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	return errors.Join(err, post(ctx, url, body))
}

func post(ctx context.Context, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	status, answer, err := do(request)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("POST %s: status %d: %.500s", url, status, answer)
	}
	return nil
}
