// Package sink is an OTLP server for tests: it speaks gRPC and HTTP on loopback,
// keeps what it receives, and fails when told to.
package sink

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
)

// Answer is what the server says to a request. The zero value is success.
type Answer struct {
	// Err fails a gRPC request.
	Err error
	// Status fails an HTTP request where it is not 0 and not 200. Header and
	// Body go with it.
	Status int
	Header http.Header
	Body   []byte
	// Refused and Message make a partial success.
	Refused int64
	Message string
}

// Server keeps what it receives, in the order of arrival.
type Server struct {
	// GRPC is the gRPC address, HTTP the base URL.
	GRPC, HTTP string

	grpcServer *grpc.Server
	httpServer *httptest.Server
	serving    sync.WaitGroup

	mu      sync.Mutex
	answers []Answer
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
	logs    []plog.Logs
	paths   []string
}

// New starts a server on free loopback ports.
func New() (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{GRPC: listener.Addr().String(), grpcServer: grpc.NewServer()}
	ptraceotlp.RegisterGRPCServer(s.grpcServer, &traceService{Server: s})
	pmetricotlp.RegisterGRPCServer(s.grpcServer, &metricService{Server: s})
	plogotlp.RegisterGRPCServer(s.grpcServer, &logService{Server: s})
	s.serving.Go(func() { _ = s.grpcServer.Serve(listener) })
	s.httpServer = httptest.NewServer(http.HandlerFunc(s.serveHTTP))
	s.HTTP = s.httpServer.URL
	return s, nil
}

// Close stops the server and waits for it.
func (s *Server) Close() {
	s.grpcServer.Stop()
	s.httpServer.Close()
	s.serving.Wait()
}

// Then queues answers for the requests to come. Success follows after them.
func (s *Server) Then(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Traces returns the trace requests so far, Metrics and Logs the others.
func (s *Server) Traces() []ptrace.Traces {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ptrace.Traces(nil), s.traces...)
}

// Metrics returns the metric requests so far.
func (s *Server) Metrics() []pmetric.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]pmetric.Metrics(nil), s.metrics...)
}

// Logs returns the log requests so far.
func (s *Server) Logs() []plog.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]plog.Logs(nil), s.logs...)
}

// Paths returns the paths of the HTTP requests so far, failed ones included.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.paths...)
}

// take books a request unless the next answer fails it.
func (s *Server) take(keep func()) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer Answer
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	if answer.Err == nil && (answer.Status == 0 || answer.Status == http.StatusOK) {
		keep()
	}
	return answer
}

type traceService struct {
	ptraceotlp.UnimplementedGRPCServer
	*Server
}

// Export implements ptraceotlp.GRPCServer.
func (s *traceService) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	answer := s.take(func() { s.traces = append(s.traces, req.Traces()) })
	resp := ptraceotlp.NewExportResponse()
	resp.PartialSuccess().SetRejectedSpans(answer.Refused)
	resp.PartialSuccess().SetErrorMessage(answer.Message)
	return resp, answer.Err
}

type metricService struct {
	pmetricotlp.UnimplementedGRPCServer
	*Server
}

// Export implements pmetricotlp.GRPCServer.
func (s *metricService) Export(_ context.Context, req pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	answer := s.take(func() { s.metrics = append(s.metrics, req.Metrics()) })
	resp := pmetricotlp.NewExportResponse()
	resp.PartialSuccess().SetRejectedDataPoints(answer.Refused)
	resp.PartialSuccess().SetErrorMessage(answer.Message)
	return resp, answer.Err
}

type logService struct {
	plogotlp.UnimplementedGRPCServer
	*Server
}

// Export implements plogotlp.GRPCServer.
func (s *logService) Export(_ context.Context, req plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	answer := s.take(func() { s.logs = append(s.logs, req.Logs()) })
	resp := plogotlp.NewExportResponse()
	resp.PartialSuccess().SetRejectedLogRecords(answer.Refused)
	resp.PartialSuccess().SetErrorMessage(answer.Message)
	return resp, answer.Err
}

// response is what the responses of the three signals have in common.
type response interface{ MarshalProto() ([]byte, error) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "want a protobuf POST", http.StatusUnsupportedMediaType)
		return
	}
	answer, resp, err := s.receive(r.URL.Path, body)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case answer.Status != 0 && answer.Status != http.StatusOK:
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	default:
		out, _ := resp.MarshalProto()
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(out)
	}
}

// receive decodes by the path; any unknown path takes traces, as a server does
// that is told to accept them elsewhere.
func (s *Server) receive(path string, body []byte) (Answer, response, error) {
	switch path {
	case "/v1/metrics":
		req := pmetricotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			return Answer{}, nil, err
		}
		answer := s.take(func() { s.metrics = append(s.metrics, req.Metrics()) })
		resp := pmetricotlp.NewExportResponse()
		resp.PartialSuccess().SetRejectedDataPoints(answer.Refused)
		resp.PartialSuccess().SetErrorMessage(answer.Message)
		return answer, resp, nil
	case "/v1/logs":
		req := plogotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			return Answer{}, nil, err
		}
		answer := s.take(func() { s.logs = append(s.logs, req.Logs()) })
		resp := plogotlp.NewExportResponse()
		resp.PartialSuccess().SetRejectedLogRecords(answer.Refused)
		resp.PartialSuccess().SetErrorMessage(answer.Message)
		return answer, resp, nil
	default:
		req := ptraceotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			return Answer{}, nil, err
		}
		answer := s.take(func() { s.traces = append(s.traces, req.Traces()) })
		resp := ptraceotlp.NewExportResponse()
		resp.PartialSuccess().SetRejectedSpans(answer.Refused)
		resp.PartialSuccess().SetErrorMessage(answer.Message)
		return answer, resp, nil
	}
}
