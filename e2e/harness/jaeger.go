package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// errNoTrace says that Jaeger does not have the trace that it was asked for.
var errNoTrace = errors.New("no such trace")

// Jaeger is a running Jaeger that keeps its traces in memory.
type Jaeger struct {
	*Process
	url          string
	otlpEndpoint string
}

// StartJaeger starts Jaeger with the configuration of the compose stack,
// docker/jaeger/jaeger.yaml, on free ports.
func StartJaeger(tb testing.TB) *Jaeger {
	tb.Helper()
	ports := map[string]int{}
	var env []string
	for _, name := range []string{"OTLP_GRPC", "OTLP_HTTP", "QUERY_HTTP", "QUERY_GRPC", "HEALTH", "METRICS"} {
		ports[name] = FreePort(tb)
		env = append(env, fmt.Sprintf("JAEGER_%s_PORT=%d", name, ports[name]))
	}
	jaeger := &Jaeger{
		Process: Start(tb, Command{
			Name: "jaeger",
			Path: serverBinary(tb, "jaeger"),
			Args: []string{"--config", "file:" + Path("docker", "jaeger", "jaeger.yaml")},
			Env:  env,
		}),
		url:          fmt.Sprintf("http://127.0.0.1:%d", ports["QUERY_HTTP"]),
		otlpEndpoint: fmt.Sprintf("127.0.0.1:%d", ports["OTLP_GRPC"]),
	}
	health := fmt.Sprintf("http://127.0.0.1:%d/status", ports["HEALTH"])
	jaeger.await(tb, func() error {
		return errors.Join(
			expectOK(tb.Context(), health),
			expectOK(tb.Context(), jaeger.url+"/api/services"),
		)
	})
	return jaeger
}

// ConnectJaeger returns a Jaeger that something else has started and whose
// queries are answered at the URL. It has no process of its own.
func ConnectJaeger(url string) *Jaeger { return &Jaeger{url: url} }

// OTLPEndpoint returns where Jaeger takes OTLP over gRPC, as host:port.
func (j *Jaeger) OTLPEndpoint() string { return j.otlpEndpoint }

// URL returns where Jaeger's API and pages are.
func (j *Jaeger) URL() string { return j.url }

// Services returns the names of the services that Jaeger has spans of.
func (j *Jaeger) Services(ctx context.Context) ([]string, error) {
	body, err := fetch(ctx, j.url+"/api/v3/services")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Services []string `json:"services"`
	}
	err = json.Unmarshal(body, &answer)
	return answer.Services, err
}

// Trace returns a trace as it was stored, given its id as 32 hexadecimal
// digits, or errNoTrace.
func (j *Jaeger) Trace(ctx context.Context, id string) (ptrace.Traces, error) {
	status, body, err := fetchStatus(ctx, j.url+"/api/v3/traces/"+url.PathEscape(id)+"?raw_traces=true")
	if err != nil {
		return ptrace.Traces{}, err
	}
	switch status {
	case http.StatusOK:
	case http.StatusNotFound:
		return ptrace.Traces{}, fmt.Errorf("%w: %s", errNoTrace, id)
	default:
		return ptrace.Traces{}, fmt.Errorf("trace %s: status %d: %.500s", id, status, body)
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return ptrace.Traces{}, fmt.Errorf("trace %s: %w", id, err)
	}
	return (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(answer.Result)
}

// Search returns the ids of the traces that Jaeger's search page finds for a
// service and for attributes that a span or its resource has, at most limit.
func (j *Jaeger) Search(ctx context.Context, service string, attributes map[string]string, limit int) ([]string, error) {
	tags, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	query := url.Values{
		"service":  {service},
		"tags":     {string(tags)},
		"lookback": {"1h"},
		"limit":    {strconv.Itoa(limit)},
	}
	body, err := fetch(ctx, j.url+"/api/traces?"+query.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			TraceID string `json:"traceID"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(answer.Data))
	for _, trace := range answer.Data {
		ids = append(ids, trace.TraceID)
	}
	return ids, nil
}
