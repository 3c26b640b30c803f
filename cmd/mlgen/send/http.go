package send

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	protobufType = "application/x-protobuf"
	// maxResponse is the number of bytes of a response that are read.
	maxResponse = 64 << 10
)

type httpSender struct {
	client                *http.Client
	retry                 Retry
	traces, metrics, logs string
}

// NewHTTP returns a sender for a base URL, to which it appends the standard
// paths /v1/traces, /v1/metrics and /v1/logs. tracesURL, if not empty, replaces
// the URL for traces: some clients post to exactly the configured address. It
// does not connect yet and follows no redirects.
func NewHTTP(base, tracesURL string, retry Retry) (Sender, error) {
	if err := checkURL(base); err != nil {
		return nil, err
	}
	base = strings.TrimSuffix(base, "/")
	s := &httpSender{
		retry:   retry,
		traces:  base + "/v1/traces",
		metrics: base + "/v1/metrics",
		logs:    base + "/v1/logs",
	}
	if tracesURL != "" {
		if err := checkURL(tracesURL); err != nil {
			return nil, err
		}
		s.traces = tracesURL
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// As for gRPC, the address that was named is the one that is used.
	transport.Proxy = nil
	s.client = &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return s, nil
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("endpoint %q is not an http:// or https:// URL", raw)
	}
	return nil
}

// Traces implements Sender.
func (s *httpSender) Traces(ctx context.Context, td ptrace.Traces) (Partial, error) {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return Partial{}, err
	}
	return s.post(ctx, s.traces, body, func(answer []byte) (Partial, error) {
		resp := ptraceotlp.NewExportResponse()
		err := resp.UnmarshalProto(answer)
		return Partial{resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage()}, err
	})
}

// Metrics implements Sender.
func (s *httpSender) Metrics(ctx context.Context, md pmetric.Metrics) (Partial, error) {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return Partial{}, err
	}
	return s.post(ctx, s.metrics, body, func(answer []byte) (Partial, error) {
		resp := pmetricotlp.NewExportResponse()
		err := resp.UnmarshalProto(answer)
		return Partial{resp.PartialSuccess().RejectedDataPoints(), resp.PartialSuccess().ErrorMessage()}, err
	})
}

// Logs implements Sender.
func (s *httpSender) Logs(ctx context.Context, ld plog.Logs) (Partial, error) {
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return Partial{}, err
	}
	return s.post(ctx, s.logs, body, func(answer []byte) (Partial, error) {
		resp := plogotlp.NewExportResponse()
		err := resp.UnmarshalProto(answer)
		return Partial{resp.PartialSuccess().RejectedLogRecords(), resp.PartialSuccess().ErrorMessage()}, err
	})
}

// Close implements Sender.
func (s *httpSender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *httpSender) post(ctx context.Context, address string, body []byte, parse func([]byte) (Partial, error)) (Partial, error) {
	return s.retry.do(ctx, func(ctx context.Context) (Partial, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			return Partial{}, err
		}
		req.Header.Set("Content-Type", protobufType)
		resp, err := s.client.Do(req)
		if err != nil {
			return Partial{}, retryable{error: err}
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
		if err != nil {
			return Partial{}, retryable{error: err}
		}
		if resp.StatusCode != http.StatusOK {
			return Partial{}, httpError(resp, answer)
		}
		partial, err := parse(answer)
		if err != nil {
			return Partial{}, fmt.Errorf("%s answered 200 with something that is no OTLP response: %w", address, err)
		}
		return partial, nil
	})
}

// httpError marks the statuses after which OTLP allows a retry:
// https://opentelemetry.io/docs/specs/otlp/#failures-1.
func httpError(resp *http.Response, answer []byte) error {
	err := fmt.Errorf("%s answered %s%s", resp.Request.URL.Redacted(), resp.Status, reason(resp, answer))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryable{error: err, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	}
	return err
}

// reason returns the server's message: a google.rpc.Status, or a line of text.
func reason(resp *http.Response, answer []byte) string {
	text := string(answer)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), protobufType) {
		var st spb.Status
		if proto.Unmarshal(answer, &st) != nil {
			return ""
		}
		text = st.GetMessage()
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if text == "" {
		return ""
	}
	return ": " + strconv.Quote(text[:min(len(text), 300)])
}

// retryAfter returns the header's delay, from seconds or a date. 0 means none.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(min(n, 3600))*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
