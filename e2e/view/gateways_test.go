package view_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// secret is in the arguments and the message of a call that fails.
const secret = "what Ada wrote"

// startBetween starts a gateway with the shipped configurations, between agents and the
// page.
func (f *fleet) startBetween(t *testing.T, name string) *harness.Collector {
	t.Helper()
	dir := t.TempDir()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "to-fleet.yaml")},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s",
			"connectors::ml_metrics::initial_zero":   "0s",
			"connectors::ml_metrics::stall_timeout":  "3s",
		},
		Env: []string{
			"FLEET_ENDPOINT=" + f.page.Address(t, "receivers::otlp::protocols::grpc"),
			"FLEET_TOKEN=" + f.file("token"), "FLEET_CA=" + f.file("crt"), "COLLECTOR_INSTANCE_ID=" + name,
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"),
		},
		Dir: dir,
	})
}

// startAgent starts the agent of a machine, which sends to gateways. Programs send to it.
func startAgent(t *testing.T, gateways ...*harness.Collector) *gateway {
	t.Helper()
	return startAgentWith(t, nil, gateways...)
}

// startAgentWith starts an agent with more overrides.
func startAgentWith(t *testing.T, more map[string]any, gateways ...*harness.Collector) *gateway {
	t.Helper()
	var addresses []string
	for _, g := range gateways {
		addresses = append(addresses, g.Address(t, "receivers::otlp::protocols::grpc"))
	}
	dir := t.TempDir()
	overrides := map[string]any{
		"exporters::load_balancing::resolver":                            map[string]any{"dns": nil, "static": map[string]any{"hostnames": addresses}},
		"exporters::load_balancing::sending_queue::batch::flush_timeout": "100ms",
		"service::pipelines::metrics::receivers":                         []string{"otlp"},
		"service::pipelines::logs::receivers":                            []string{"otlp"},
		"processors::repro_gen::sibling_wait":                            "1s",
	}
	maps.Copy(overrides, more)
	a := &gateway{Collector: harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent-gateway.yaml"),
		Overrides: overrides,
		Env:       []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue")},
		Dir:       dir,
	})}
	var err error
	a.sender, err = harness.NewGRPCSender(a.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.sender.Close()) })
	return a
}

// failsWithText sends the span of a call that failed, with what people wrote.
func (g *gateway) failsWithText(t *testing.T) {
	t.Helper()
	td := ptrace.NewTraces()
	span := g.spanOf(td, "worker", "predict")
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(secret)
	span.Attributes().PutStr("repro.payload", `{"python_module":"math","function":"sqrt","args":["`+secret+`"],"kwargs":{},"call_type":"function"}`)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "ValueError")
	event.Attributes().PutStr("exception.message", secret)
	require.NoError(t, g.sender.Traces(t.Context(), td))
}

// TestFleetOfGateways has an agent that sends to two gateways, which send to the page of
// a fleet: it shows a run, its GPU, the problem of the run and a failure once each, and
// no text that people wrote.
func TestFleetOfGateways(t *testing.T) {
	f := startFleet(t)
	one, two := f.startBetween(t, "gw-1"), f.startBetween(t, "gw-2")
	agent := startAgent(t, one, two)

	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		agent.step(t2, t, "1.8.1")
		agent.holdGPU(t2, t)
		state := f.state(t2, t)
		run := state.run(t2)
		require.NotNil(t2, run.Steps)
		assert.Equal(t2, "running", run.State)
		require.Len(t2, state.GPUs, 1)
		assert.NotNil(t2, state.GPUs[0].Utilization)
	}, arrival, poll)
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		run := f.state(t2, t).run(t2)
		require.NotNil(t2, run.Steps)
		assert.InDelta(t2, agent.steps, *run.Steps, 0, "each step counts once")
	}, arrival, poll)

	// The run hangs on a GPU that does nothing, and a call fails.
	agent.failsWithText(t)
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		agent.holdGPU(t2, t)
		state := f.state(t2, t)
		require.Len(t2, state.Needs, 1)
		need := state.Needs[0]
		assert.Equal(t2, "looks_hung", need.Kind)
		assert.Equal(t2, trainerRun, need.RunID)
		assert.Contains(t2, strings.Join(need.Evidence, "; "), "confirmed by 1 GPU at 0 %")
		assert.Equal(t2, "stalled", state.run(t2).State)
		require.NotNil(t2, state.run(t2).GPUs)
		assert.InDelta(t2, 1, *state.run(t2).GPUs, 0)
		require.NotNil(t2, state.run(t2).GPUUtilization)
		require.Len(t2, state.GPUs, 1)
		require.Len(t2, state.Failures, 1)
		failure := state.Failures[0]
		assert.Equal(t2, "worker", failure.Service)
		assert.Equal(t2, "ValueError", failure.Class)
		assert.Regexp(t2, `^python3 /.*/reproductions/[0-9a-f]{16}/\S+/repro\.py$`, failure.Command)
	}, arrival, poll)
	artifacts, err := filepath.Glob(strings.TrimPrefix(f.state(t, t).Failures[0].Command, "python3 "))
	require.NoError(t, err)
	assert.Len(t, artifacts, 1, "the page says where the reproduction is")

	for _, path := range []string{"/api/v1/state", "/?width=200"} {
		status, body := f.get(t, t, path, password)
		assert.Equal(t, http.StatusOK, status)
		assert.NotContains(t, body, secret, path)
	}
	for _, g := range []*harness.Collector{agent.Collector, one, two, f.page} {
		assert.Zero(t, g.Stop(t))
		for _, entry := range harness.LogErrors(g.Output()) {
			assert.True(t, harness.IsAbsentBackend(entry), entry)
		}
	}
}

// TestEvidenceThatOnlyAFleetAsksFor has two agents that conclude nothing, and a process of the run
// on the host of one of them. A gateway concludes that the run hangs, the agents learn it from the
// page of the fleet, and the one with the process gathers the evidence, once.
func TestEvidenceThatOnlyAFleetAsksFor(t *testing.T) {
	f := startFleet(t)
	between := f.startBetween(t, "gw-1")
	// The agent of a host without the run has a proc without its processes.
	elsewhere := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(elsewhere, "proc"), 0o700))
	bundles := make(map[string]string) // by the root of a host
	ask := func(root, password string) *gateway {
		bundles[root] = filepath.Join(t.TempDir(), "reproductions")
		page := map[string]any{
			"endpoint": "https://" + f.page.Address(t, "exporters::ml_view"), "auth": map[string]any{"authenticator": "basicauth/page"},
			"tls": map[string]any{"ca_file": f.file("crt")},
		}
		return startAgentWith(t, map[string]any{
			"extensions::basicauth/page":                 map[string]any{"client_auth": map[string]any{"username": reader, "password": password}},
			"service::extensions":                        []string{"health_check", "ml_guard", "ml_guard/gateways", "file_storage/queue", "basicauth/page"},
			"processors::repro_gen::evidence::root_path": root, "processors::repro_gen::evidence::gateway": page,
			"processors::repro_gen::directory": bundles[root],
		}, between)
	}
	agent, other, stranger := ask("", password), ask(elsewhere, password), ask("/", "a wrong password")
	rank := exec.CommandContext(t.Context(), "sleep", "600")
	rank.Env = []string{"TORCHELASTIC_RUN_ID=" + trainerRun, "RANK=1", "PATH=" + os.Getenv("PATH")}
	require.NoError(t, rank.Start())
	defer func() { _ = rank.Process.Kill(); _ = rank.Wait() }()
	written := func(root string) []string {
		reports, err := filepath.Glob(filepath.Join(bundles[root], "*", "*", "report.md"))
		require.NoError(t, err)
		return reports
	}

	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		agent.step(t2, t, "1.8.1")
		agent.holdGPU(t2, t)
		assert.Equal(t2, "running", f.state(t2, t).run(t2).State)
	}, arrival, poll)
	assert.Empty(t, written(""), "the run is healthy")

	var concluded time.Time
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		agent.holdGPU(t2, t)
		if concluded.IsZero() && len(f.state(t2, t).Needs) > 0 {
			concluded = time.Now()
		}
		require.Len(t2, written(""), 1)
	}, arrival, poll)
	t.Logf("the evidence was there %v after the page had the hang", time.Since(concluded).Round(100*time.Millisecond))
	report, err := os.ReadFile(written("")[0])
	require.NoError(t, err)
	assert.Contains(t, string(report), "# Run "+trainerRun+" (trainer): looks hung\n")
	assert.Contains(t, string(report), fmt.Sprintf("process %d (sleep), rank 1: 1 of its threads sleeping", rank.Process.Pid))
	assert.Contains(t, string(report), "confirmed by 1 GPU at 0 %")
	for _, g := range []*harness.Collector{agent.Collector, other.Collector, stranger.Collector, between, f.page} {
		assert.Zero(t, g.Stop(t))
	}
	assert.Len(t, written(""), 1)
	assert.Empty(t, written(elsewhere))
	assert.Empty(t, written("/"))
	assert.Contains(t, stranger.Output(), "The gateway did not say which runs hang")
	assert.Contains(t, stranger.Output(), "the answer is 401")
}
