package image

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// stack is the compose stack while it runs, without Grafana.
type stack struct {
	*harness.Stack
	jaegerContainer *harness.Container
	jaeger          *harness.Jaeger
	prometheus      *harness.Prometheus
	collector       *harness.Container
	endpoints       harness.Endpoints
	sent            *sentlog.Log
	stored          harness.Store
}

// The two workloads differ in their seed, so that no id is sent twice.
var (
	firstWorkload = harness.Workload{Seed: 11, Scenarios: "all", Duration: 20 * time.Second, Rate: 5, Ranks: 2}
	lastWorkload  = harness.Workload{Seed: 12, Scenarios: "torchtel", Duration: 2 * time.Second, Rate: 20, Ranks: 2}
)

func TestStack(t *testing.T) {
	s := startStack(t)
	t.Run("what a container may do", func(t *testing.T) { testPrivileges(t, s) })
	t.Run("other names of the collector", func(t *testing.T) { testNames(t, s) })

	s.sent = harness.GenerateTo(t, s.endpoints, firstWorkload)
	s.stored = s.jaeger.AwaitSpans(t, s.sent.Spans)
	t.Run("traces", func(t *testing.T) { testTraces(t, s) })
	t.Run("metrics", func(t *testing.T) { testMetrics(t, s) })
	t.Run("reproductions", func(t *testing.T) { testReproductions(t, s) })
	t.Run("a client that posts to the root path", func(t *testing.T) { testRootPath(t, s) })
	t.Run("the queue outlives a crash", func(t *testing.T) { testQueue(t, s) })
}

func startStack(t *testing.T) *stack {
	t.Helper()
	project := harness.LoadCompose(t, harness.ComposeOptions{
		Files:    []string{harness.StackFile(), harness.StackGPUFile()},
		Profiles: []string{"rootless"},
		// The modules of Python's standard library that the simulated failures
		// call.
		Env: []string{"OTELCOL_ML_REPRO_ALLOWED_MODULES=[statistics, json, json.decoder, datetime]"},
	})
	// No machine that the tests run on has the NVIDIA runtime. All else of the
	// service is as it is with a GPU.
	gpu := project.Services["gpu-rootless"]
	gpu.Runtime = ""
	project.Services["gpu-rootless"] = gpu

	s := &stack{Stack: harness.NewStack(t, engine, project)}
	s.startJaeger(t)
	s.startCollector(t)
	s.StartService(t, "gpu-rootless", "")
	prometheus := s.StartService(t, "prometheus", images[project.Services["prometheus"].Image])
	s.prometheus = harness.ConnectPrometheus("http://" + prometheus.Address(t, 9090))
	return s
}

func (s *stack) startJaeger(t *testing.T) {
	t.Helper()
	project := harness.LoadCompose(t, harness.ComposeOptions{Files: []string{harness.StackFile()}})
	s.jaegerContainer = s.StartService(t, "jaeger", images[project.Services["jaeger"].Image])
	s.jaeger = harness.ConnectJaeger("http://" + s.jaegerContainer.Address(t, 16686))
}

func (s *stack) startCollector(t *testing.T) {
	t.Helper()
	s.collector = s.StartService(t, "otelcol-ml", "")
	s.endpoints = harness.Endpoints{GRPC: s.collector.Address(t, 4317), HTTP: "http://" + s.collector.Address(t, 4318)}
}

// testPrivileges reads from the kernel what the collector's process has.
func testPrivileges(t *testing.T, s *stack) {
	proc := filepath.Join("/proc", s.collector.HostPID(t))
	text, err := os.ReadFile(filepath.Join(proc, "status"))
	if runtime.GOOS != "linux" || err != nil {
		t.Skipf("LEFT OUT: the engine's containers are not this host's processes: %v", err)
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		status[key] = strings.Join(strings.Fields(value), " ")
	}
	assert.Equal(t, "10001 10001 10001 10001", status["Uid"])
	assert.Equal(t, "10001 10001 10001 10001", status["Gid"])
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		assert.Equal(t, "0000000000000000", status[set], set)
	}
	assert.Equal(t, "1", status["NoNewPrivs"])

	mounts, err := os.ReadFile(filepath.Join(proc, "mounts"))
	require.NoError(t, err)
	options := map[string]string{}
	for line := range strings.Lines(string(mounts)) {
		if columns := strings.Fields(line); len(columns) > 3 {
			options[columns[1]] = columns[3]
		}
	}
	for mount, mode := range map[string]string{
		"/":                                 "ro",
		"/etc/otelcol-ml/stack.yaml":        "ro",
		"/var/lib/otelcol-ml/queue":         "rw",
		"/var/lib/otelcol-ml/reproductions": "rw",
		"/var/lib/otelcol-ml/state":         "rw",
	} {
		assert.Equal(t, mode, strings.Split(options[mount], ",")[0], mount)
	}
}

// testNames reaches the collector by each of its names from another container.
func testNames(t *testing.T, s *stack) {
	for _, name := range []string{"otelcol-ml", "otel-collector", "optl-collector"} {
		_, err := s.jaegerContainer.Exec(t, "wget", "-q", "-T", "5", "-O", "/dev/null", "http://"+name+":8889/metrics")
		assert.NoError(t, err)
	}
}

// testTraces expects the spans of every scenario in Jaeger, and what ml_enrich
// adds to them.
func testTraces(t *testing.T, s *stack) {
	spans, runs := map[string]int{}, map[string]int{}
	for _, sent := range s.sent.Spans {
		spans[sent.Scenario]++
		if _, found := s.stored[sent.TraceID][sent.SpanID].Attribute("ml.run.id"); found {
			runs[sent.Scenario]++
		}
	}
	for system := range s.sent.Summary.Scenarios {
		assert.Positive(t, spans[system], "%s has sent no span", system)
	}
	for _, system := range []string{"torchtel", "tuft", "fx"} {
		assert.Positive(t, runs[system], "no span of %s has ml.run.id", system)
	}
	services, err := s.jaeger.Services(t.Context())
	require.NoError(t, err)
	for _, service := range []string{"torchtel", "tuft", "fx-forecasting", "taskweaver.otlp.tracer", "snakepit"} {
		assert.Contains(t, services, service)
	}
}

// testMetrics compares some totals with what was sent, and expects every target
// to be scraped and every rule to be evaluated.
func testMetrics(t *testing.T, s *stack) {
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		unhealthy, err := s.prometheus.UnhealthyTargets(t.Context())
		assert.NoError(c, err)
		assert.Empty(c, unhealthy)
	}, harness.ArrivalTimeout, harness.ArrivalPoll)

	truth := func(system string) sentlog.Truth { return s.sent.Summary.Scenarios[system].Truth }
	floats := func(counts map[string]int64) map[string]float64 {
		values := map[string]float64{}
		for key, count := range counts {
			values[key] = float64(count)
		}
		return values
	}
	s.prometheus.AwaitValues(t, `sum by (ml_rank_global) (ml_steps_total{job="torchtel"})`, "ml_rank_global", floats(truth("torchtel").Steps))
	s.prometheus.AwaitValues(t, `sum by (ml_run_id) (ml_steps_total{job="tuft"})`, "ml_run_id", floats(truth("tuft").Steps))
	directions := map[string]float64{}
	for _, tokens := range truth("taskweaver").Tokens {
		for direction, count := range tokens {
			directions[direction] += float64(count)
		}
	}
	s.prometheus.AwaitValues(t, `sum by (direction) (prompt_size_total{job="taskweaver.otlp.tracer"})`, "direction", directions)
	s.prometheus.AwaitSeries(t, `snakepit_call_total`)
	s.prometheus.AwaitSeries(t, `ml_loss{job="fx-forecasting"}`)
	s.prometheus.AwaitSeries(t, `otelcol_exporter_sent_spans`)
	// The collector that reads GPUs says that it found no driver.
	s.prometheus.AwaitSeries(t, `nvidia_gpu_driver_state`)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		rules, err := s.prometheus.Rules(t.Context())
		assert.NoError(c, err)
		assert.NotEmpty(c, rules)
		for _, rule := range rules {
			assert.Equal(c, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
		}
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}

// testReproductions takes an artifact out of the volume and runs it.
func testReproductions(t *testing.T, s *stack) {
	var script string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		artifacts, err := harness.Artifacts(s.collector.CopyOut(t, "/var/lib/otelcol-ml/reproductions"))
		assert.NoError(c, err)
		script = ""
		for _, artifact := range artifacts {
			for _, failure := range s.sent.Summary.Scenarios["snakepit"].Truth.Failures {
				if failure.Payload && failure.TraceID == artifact.TraceID && failure.SpanID == artifact.SpanID {
					script = artifact.Script()
				}
			}
		}
		assert.NotEmpty(c, script, "%d artifacts, none of a failed call with its arguments", len(artifacts))
	}, harness.ArrivalTimeout, time.Second)
	verdict, output := harness.Reproduce(t, script, "")
	assert.Equal(t, harness.Reproduced, verdict, output)
}

// testRootPath posts as the FX toolkit's exporter does.
func testRootPath(t *testing.T, s *stack) {
	traces, span := oneSpan("posts-to-root", 1)
	require.NoError(t, harness.PostTraces(t.Context(), "http://"+s.collector.Address(t, 11000)+"/", traces))
	s.jaeger.AwaitSpans(t, []*sentlog.Span{span})
}

// testQueue kills the collector while it holds spans that Jaeger was not there
// to take. They arrive once both are back, and then it ends when it is asked to.
func testQueue(t *testing.T, s *stack) {
	s.jaegerContainer.Kill(t)
	sent := harness.GenerateTo(t, s.endpoints, lastWorkload)
	require.NotEmpty(t, sent.Spans)
	s.collector.Kill(t)

	s.startJaeger(t)
	s.startCollector(t)
	s.jaeger.AwaitSpans(t, sent.Spans)
	assert.Zero(t, s.collector.Stop(t), "exit code after SIGTERM")
	assert.Empty(t, harness.LogErrors(s.collector.Output()))
}
