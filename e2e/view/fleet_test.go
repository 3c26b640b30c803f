package view_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// fleet is the page of a fleet, with the files that it and the gateways need.
type fleet struct {
	page   *harness.Collector
	dir    string
	client *http.Client
}

const (
	reader   = "ada"
	password = "a long password"
)

// startFleet starts the shipped configuration of the page.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir()}
	f.write(t, "token", []byte("a token of the collectors"))
	f.write(t, "readers", []byte(reader+":"+password+"\n"))
	f.certify(t)
	f.page = harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "fleet.yaml"),
		Overrides: map[string]any{"exporters::ml_view::interval": "500ms"},
		Env: []string{
			"FLEET_TOKEN=" + f.file("token"), "FLEET_READERS=" + f.file("readers"),
			"FLEET_CERT=" + f.file("crt"), "FLEET_KEY=" + f.file("key"),
			// Otherwise pages show what those of other tests have kept.
			"OTELCOL_ML_STATE_DIR=" + f.file("state"),
		},
	})
	f.page.AwaitHealthy(t)
	return f
}

func (f *fleet) file(name string) string { return filepath.Join(f.dir, "fleet."+name) }

func (f *fleet) write(t *testing.T, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.file(name), content, 0o600))
}

// certify makes the certificate of the page, and a client that knows it.
func (f *fleet) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fleet"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{Subject: pkix.Name{CommonName: "fleet"}, SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	f.write(t, "crt", public)
	f.write(t, "key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	known := x509.NewCertPool()
	require.True(t, known.AppendCertsFromPEM(public))
	f.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}, Timeout: 10 * time.Second}
	t.Cleanup(f.client.CloseIdleConnections)
}

// get asks the page as curl does, and returns the status and the body.
func (f *fleet) get(t require.TestingT, test *testing.T, path, password string) (int, string) {
	request, err := http.NewRequestWithContext(test.Context(), http.MethodGet, "https://"+f.page.Address(test, "exporters::ml_view")+path, http.NoBody)
	require.NoError(t, err)
	request.SetBasicAuth(reader, password)
	response, err := f.client.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(body)
}

// fleetState is the part of the state that the test reads.
type fleetState struct {
	view.State
	Failures []struct {
		Class    string   `json:"class"`
		Service  string   `json:"service"`
		Command  string   `json:"command"`
		Requires []string `json:"requires"`
	} `json:"failures"`
	Changes []struct {
		Kind string `json:"kind"`
		To   string `json:"to"`
	} `json:"changes"`
	Collectors []struct {
		ID          string     `json:"id"`
		SilentSince *time.Time `json:"silent_since"`
	} `json:"collectors"`
}

func (f *fleet) state(t require.TestingT, test *testing.T) *fleetState {
	status, body := f.get(t, test, "/api/v1/state", password)
	require.Equal(t, http.StatusOK, status)
	var state fleetState
	require.NoError(t, json.Unmarshal([]byte(body), &state))
	return &state
}

// run returns the run of the trainer, of which there is one row.
func (s *fleetState) run(t require.TestingT) *view.Run {
	require.Len(t, s.Runs, 1)
	return &s.Runs[0]
}

// gateway is a collector that sends to the page, and a program that sends to it.
type gateway struct {
	*harness.Collector
	sender *harness.GRPCSender
	steps  uint64
}

// startGateway starts the default configuration with what the documentation adds.
func (f *fleet) startGateway(t *testing.T, name string) *gateway {
	t.Helper()
	text, err := os.ReadFile(harness.Path("docs", "fleet.md"))
	require.NoError(t, err)
	added := filepath.Join(t.TempDir(), "fleet.yaml")
	blocks := documents.Of(documents.Parse("docs/fleet.md", string(text)), "yaml")
	at := slices.IndexFunc(blocks, func(b documents.Block) bool { return strings.Contains(b.Text, "otlp_grpc/fleet") })
	require.GreaterOrEqual(t, at, 0, "docs/fleet.md does not say what collectors add")
	require.NoError(t, os.WriteFile(added, []byte(blocks[at].Text), 0o600))
	g := &gateway{Collector: harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"), Merged: []string{added},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s",
			"connectors::ml_metrics::initial_zero":   "0s",
			"connectors::ml_metrics::stall_timeout":  "3s",
			"processors::repro_gen::sibling_wait":    "1s",
		},
		Env: []string{
			"FLEET_ENDPOINT=" + f.page.Address(t, "receivers::otlp::protocols::grpc"),
			"FLEET_TOKEN=" + f.file("token"), "FLEET_CA=" + f.file("crt"), "COLLECTOR_INSTANCE_ID=" + name,
		},
		Dir: t.TempDir(),
	})}
	g.sender, err = harness.NewGRPCSender(g.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.sender.Close()) })
	return g
}

const trainerRun = "llama-sft-1"

// step sends a step of the run, with the version of its program.
func (g *gateway) step(t require.TestingT, test *testing.T, version string) {
	g.steps++
	td := ptrace.NewTraces()
	// Of two ranks: one alone whose GPU does nothing may be a notebook.
	for rank := range 2 {
		span := g.spanOf(td, "trainer", "optimizer.step")
		attrs := td.ResourceSpans().At(rank).Resource().Attributes()
		attrs.PutStr("service.version", version)
		attrs.PutInt("ml.rank.global", int64(rank))
		span.Attributes().PutStr("ml.phase", "optimizer")
	}
	require.NoError(t, g.sender.Traces(test.Context(), td))
}

// spanOf adds a span of a service with a new id.
func (*gateway) spanOf(td ptrace.Traces, service, name string) ptrace.Span {
	rs := td.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	attrs.PutStr("service.name", service)
	attrs.PutStr("host.name", "gpu-01")
	if service == "trainer" {
		attrs.PutStr("ml.run.id", trainerRun)
		attrs.PutInt("ml.rank.global", 0)
	}
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	now := time.Now()
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[:], uint64(now.UnixNano())) // #nosec G115 -- not negative
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID(trace[:8]))
	span.SetName(name)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	return span
}

// holdGPU sends a reading of the GPU that the run holds, which does nothing.
func (g *gateway) holdGPU(t require.TestingT, test *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "gpu-01")
	rm.Resource().Attributes().PutStr("hw.id", "GPU-1")
	for name, value := range map[string]int64{"nvidia.gpu.workload.memory.usage": 61 << 30, "hw.gpu.memory.usage": 62 << 30, "hw.gpu.utilization": 0} {
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		point := m.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetIntValue(value)
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.Attributes().PutStr("host.name", "gpu-01")
		point.Attributes().PutStr("hw.id", "GPU-1")
		switch {
		case strings.Contains(name, "workload"):
			point.Attributes().PutStr("ml.run.id", trainerRun)
		case strings.Contains(name, "utilization"):
			point.Attributes().PutStr("hw.gpu.task", "general")
		}
	}
	require.NoError(t, g.sender.Metrics(test.Context(), md))
}

// fails sends the span of a call that failed.
func (g *gateway) fails(t *testing.T) {
	t.Helper()
	td := ptrace.NewTraces()
	span := g.spanOf(td, "worker", "predict")
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr("repro.payload", `{"python_module":"math","function":"sqrt","args":[-1],"kwargs":{},"call_type":"function"}`)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "ValueError")
	event.Attributes().PutStr("exception.message", "math domain error")
	require.NoError(t, g.sender.Traces(t.Context(), td))
}

// stateAt returns the state of the run by the gateway's own page.
func (g *gateway) stateAt(t require.TestingT, test *testing.T) string {
	state, err := view.Read(test.Context(), g.Address(test, "exporters::ml_view"))
	require.NoError(t, err)
	for _, run := range state.Runs {
		if run.ID == trainerRun {
			return run.State
		}
	}
	return ""
}

const (
	arrival = 45 * time.Second
	poll    = 200 * time.Millisecond
)

// TestFleet has two gateways that send to the page of a fleet. One hands a run over to
// the other one and is killed; then the run hangs, and a call fails.
func TestFleet(t *testing.T) {
	f := startFleet(t)
	one, two := f.startGateway(t, "gw-1"), f.startGateway(t, "gw-2")

	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		one.step(t2, t, "1.8.1")
		one.holdGPU(t2, t)
		run := f.state(t2, t).run(t2)
		require.NotNil(t2, run.Steps)
		assert.Equal(t2, "running", run.State)
	}, arrival, poll)

	// The run moves. The first gateway has its GPU, and says that it hangs.
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		two.step(t2, t, "1.8.1")
		one.holdGPU(t2, t)
		two.holdGPU(t2, t)
		state := f.state(t2, t)
		assert.Equal(t, "running", state.run(t).State, "the run takes steps elsewhere")
		assert.Empty(t, state.Needs)
		require.Equal(t2, "stalled", one.stateAt(t2, t))
		require.Len(t2, state.Collectors, 2)
		require.Len(t2, state.GPUs, 1)
	}, arrival, poll)
	one.Kill(t)

	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		two.step(t2, t, "1.8.2")
		two.holdGPU(t2, t)
		status, text := f.get(t2, t, "/?width=120", password)
		require.Equal(t2, http.StatusOK, status)
		assert.Contains(t2, text, "1 of 2 collectors sending")
		assert.Regexp(t2, `gw-1 +SILENT since`, text)
		assert.Regexp(t2, `gw-2 +sending`, text)
	}, arrival, poll)
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		run := f.state(t2, t).run(t2)
		require.NotNil(t2, run.Steps)
		assert.InDelta(t2, one.steps+two.steps, *run.Steps, 0, "each step counts once")
	}, arrival, poll)

	two.fails(t)
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		two.holdGPU(t2, t)
		state := f.state(t2, t)
		require.Len(t2, state.Needs, 1)
		assert.Equal(t2, "looks_hung", state.Needs[0].Kind)
		assert.Equal(t2, "stalled", state.run(t2).State)
		assert.Contains(t2, fmt.Sprint(state.Changes), "1.8.2")
		require.Len(t2, state.Failures, 1)
		failure := state.Failures[0]
		assert.Equal(t2, "ValueError", failure.Class)
		assert.Regexp(t2, `^python3 /.*/reproductions/[0-9a-f]{16}/\S+/repro\.py$`, failure.Command)
		host, err := os.Hostname()
		require.NoError(t2, err)
		assert.Contains(t2, failure.Requires, "host "+host)
	}, arrival, poll)

	// Nothing of the host arrives any more. The gateway goes on telling of its run.
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		state := f.state(t2, t)
		require.Len(t2, state.GPUs, 1)
		assert.Equal(t2, []string{"no_data", "looks_hung"}, []string{state.GPUs[0].Activity, state.GPUs[0].LastActivity})
		assert.Equal(t2, map[string]int{"no_data": 1}, state.Collector.GPUs)
		assert.Equal(t2, 1, state.Collector.HostsReporting, "the gateway reads its own driver")
		assert.Equal(t2, "stalled", state.run(t2).State)
		status, text := f.get(t2, t, "/?width=160", password)
		require.Equal(t2, http.StatusOK, status)
		assert.Contains(t2, text, "1 without data since ")
		assert.Contains(t2, text, "was looks hung")
	}, arrival, poll)

	status, body := f.get(t, t, "/", "a guess")
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.NotContains(t, body, trainerRun)
	f.strangerIsRefused(t)
	assert.Zero(t, two.Stop(t))
	assert.Zero(t, f.page.Stop(t))
	for _, entry := range harness.LogErrors(f.page.Output()) {
		t.Error(entry)
	}
}

// strangerIsRefused sends to the page without its token.
func (f *fleet) strangerIsRefused(t *testing.T) {
	t.Helper()
	connection, err := tls.Dial("tcp", f.page.Address(t, "receivers::otlp::protocols::grpc"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:noctx // a stranger
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	sender, err := harness.NewGRPCSender(f.page.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	assert.Error(t, sender.Traces(t.Context(), ptrace.NewTraces()), "without TLS")
}
