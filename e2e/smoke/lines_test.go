package smoke

import (
	"encoding/json"
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
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// A training that only prints has steps, a loss and an end: nothing but the overlay is
// needed, and a file.
func TestLinesOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "llama.log")
	file, err := os.Create(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-files.yaml")},
		Env:    []string{"TRAINING_LOGS=[" + name + "]"},
		Dir:    dir, Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"},
	})
	at := time.Now().Add(-100 * time.Second)
	const stamp = "2006-01-02 15:04:05.000000"
	for i := range 10 {
		at = at.Add(10 * time.Second)
		_, err = fmt.Fprintf(file, " [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:    16 | lm loss: %.6E | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
			at.Format(stamp), (i+1)*10, (i+1)*160, 7-float64(i)/10)
		require.NoError(t, err)
	}
	await := func(check func(*assert.CollectT, []harness.Sample)) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
			require.NoError(c, err)
			check(c, samples)
		}, harness.StartTimeout, 200*time.Millisecond)
	}
	await(func(c *assert.CollectT, samples []harness.Sample) {
		for name, want := range map[string]float64{"ml_steps_total": 100, "ml_samples_total": 1600, "ml_loss": 6.1, "ml_learning_rate": 1e-4} {
			if found := harness.Select(samples, name, harness.Labels{"job": "megatron"}); assert.Len(c, found, 1, name) {
				assert.InDelta(c, want, found[0].Value, 1e-9, name)
			}
		}
	})
	_, err = fmt.Fprintf(file, "[after training is done] datetime: %s\n", at.Format(time.DateTime))
	require.NoError(t, err)
	await(func(c *assert.CollectT, samples []harness.Sample) {
		ended := harness.Select(samples, "ml_run_state", harness.Labels{"ml_run_state": "ended"})
		if assert.Len(c, ended, 1) {
			assert.InDelta(c, 1, ended[0].Value, 0)
		}
		sum := harness.Select(samples, "ml_step_duration_seconds_sum", harness.Labels{"ml_phase": "step"})
		count := harness.Select(samples, "ml_step_duration_seconds_count", harness.Labels{"ml_phase": "step"})
		if assert.Len(c, sum, 1) && assert.Len(c, count, 1) {
			assert.InDelta(c, 1, sum[0].Value/count[0].Value, 1e-6)
			assert.GreaterOrEqual(c, count[0].Value, 99.0)
		}
	})
}

// A training that crashes is a failed run, of a class and a rank, and has a reproduction
// report.
func TestFailureInLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "slurm-494583.out")
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-slurm.yaml")},
		Env:    []string{"TRAINING_LOGS=[" + name + "]"},
		Dir:    dir, Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"},
	})
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "[rank3]: [titan] %s - root - INFO - step: %2d  loss:  7.12345  grad_norm:  1.4042  memory: 23.36GiB(29.49%%)  tps: 7,338  tflops: 47.90  mfu: 15.62%%\n",
			time.Now().Add(time.Duration(i-10)*time.Second).Format("2006-01-02 15:04:05,000"), i+1)
	}
	text.WriteString("[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/opt/train/train.py\", line 71, in train_step\n[rank3]:     loss.backward()\n" +
		"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 146.00 MiB.\n")
	require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		failed := harness.Select(samples, "ml_run_state", harness.Labels{"ml_run_id": "494583", "ml_run_state": "failed"})
		if assert.Len(c, failed, 1) {
			assert.InDelta(c, 1, failed[0].Value, 0)
		}
		assert.NotEmpty(c, harness.Select(samples, "ml_errors_total", harness.Labels{"error_type": "torch.OutOfMemoryError"}))
		artifacts, err := harness.Artifacts(filepath.Join(dir, "reproductions"))
		require.NoError(c, err)
		assert.Len(c, artifacts, 1)
	}, harness.StartTimeout, 200*time.Millisecond)
	artifacts, err := harness.Artifacts(filepath.Join(dir, "reproductions"))
	require.NoError(t, err)
	report, err := os.ReadFile(filepath.Join(artifacts[0].Dir, "report.md"))
	require.NoError(t, err)
	for _, text := range []string{"torch.OutOfMemoryError", `File "/opt/train/train.py", line 71, in train_step`, `"ml.rank.global": 3`, `"ml.run.id": "494583"`} {
		assert.Contains(t, string(report), text)
	}
}

// followPods starts a collector that reads the logs of pods below a folder.
func followPods(t *testing.T, dir, pods string, overrides map[string]any) *harness.Collector {
	t.Helper()
	all := map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"}
	maps.Copy(all, overrides)
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-kubernetes.yaml")},
		Env:    []string{"TRAINING_LOGS=[" + filepath.Join(pods, "*", "*", "*.log") + "]"},
		Dir:    dir, Overrides: all,
	})
}

// The pods of a job are one run, by the files of their containers: steps of one, checkpoints
// of another. Lines are cut by the runtime.
func TestLinesOfPods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pods := filepath.Join(dir, "pods")
	collector := followPods(t, dir, pods, nil)
	start := time.Now().Add(-time.Minute)
	write := func(pod string, lines ...string) {
		folder := filepath.Join(pods, "ml_"+pod+"_0a1b2c3d-0000", "pytorch")
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "0.log"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	var steps []string
	for i := range 30 {
		at := start.Add(time.Duration(i) * time.Second)
		line := fmt.Sprintf(" [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 7.000000E+00 | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan iterations:   0 |",
			at.Format("2006-01-02 15:04:05.000000"), i+1, (i+1)*16)
		stamp := at.UTC().Format(time.RFC3339Nano)
		steps = append(steps, stamp+" stdout P "+line[:40], stamp+" stdout F "+line[40:])
	}
	write("llama-worker-3", steps...)
	at := start.Add(10 * time.Second)
	write("llama-worker-0",
		at.UTC().Format(time.RFC3339Nano)+" stdout F ["+at.Format("2006-01-02 15:04:05")+"] saving checkpoint at iteration      10 to /ckpt in torch_dist format",
		at.Add(4*time.Second).UTC().Format(time.RFC3339Nano)+" stdout F  ["+at.Add(4*time.Second).Format("2006-01-02 15:04:05")+"] successfully saved checkpoint from iteration      10 to /ckpt [ t 1/1, p 1/1 ]")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		found := harness.Select(samples, "ml_steps_total", harness.Labels{"job": "pytorch"})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 30, found[0].Value, 0)
			run := found[0].Labels["ml_run_id"]
			assert.Contains(c, run, "llama-")
			var saved float64
			for _, sample := range harness.Select(samples, "ml_run_time_seconds_total", harness.Labels{"ml_run_id": run, "ml_run_state": "checkpoint"}) {
				saved += sample.Value
			}
			assert.InDelta(c, 4, saved, 0.01)
		}
	}, harness.StartTimeout, 200*time.Millisecond)
}

// reportsFrom is the time from which on the nodes of a run report their failures.
var reportsFrom = time.Now().Add(-30 * time.Second).Truncate(time.Second)

// nodeReport is what the torchrun of a node prints of the rank that failed first there.
func nodeReport(rank, exit int, after time.Duration, says string) string {
	return fmt.Sprintf(`Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : %s
  host      : llama-worker
  rank      : %d (local_rank: 0)
  exitcode  : %d (pid: 2630)
  error_file: <N/A>
  traceback : %s
============================================================
`, reportsFrom.Add(after).Format("2006-01-02_15:04:05"), rank, exit, says)
}

// writePod writes the log of the container of a pod of a job.
func writePod(t *testing.T, pods string, pod int, text string) {
	t.Helper()
	folder := filepath.Join(pods, fmt.Sprintf("ml_llama-worker-%d_0a1b2c3d-0000", pod), "pytorch")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	var lines strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&lines, "%s stderr F %s", time.Now().UTC().Format(time.RFC3339Nano), line)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "0.log"), []byte(lines.String()), 0o600))
}

// Each node's torchrun prints to the log of its own pod which of its ranks failed first. The
// run has one failure, that of the rank which failed first on all of them. The report of that
// node arrives last, one node was stopped, and one, which printed the steps, says nothing.
func TestFailureOfNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pods := filepath.Join(dir, "pods")
	collector := followPods(t, dir, pods, map[string]any{"connectors::ml_metrics::stall_timeout": "5s"})
	var steps strings.Builder
	for i := range 10 {
		fmt.Fprintf(&steps, "iter %d: loss 2.5000, time 100.00ms, mfu 1.00%%\n", i)
	}
	write := func(pod int, text string) { writePod(t, pods, pod, text) }
	write(3, steps.String())
	write(1, nodeReport(8, -11, 4*time.Second, "Signal 11 (SIGSEGV) received by PID 2630"))
	write(2, nodeReport(16, -15, -2*time.Second, "Signal 15 (SIGTERM) received by PID 2630"))
	await := func(evidence ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
			require.NoError(c, err)
			assert.Len(c, harness.Select(samples, "ml_problem_onset_timestamp_seconds", harness.Labels{"ml_problem": "run_failed"}), 1)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+collector.Address(t, "exporters::ml_view")+"/api/v1/state", http.NoBody)
			require.NoError(c, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(c, err)
			defer response.Body.Close() //nolint:errcheck // only read
			var state struct {
				Needs []struct {
					Kind     string
					Evidence []string
				}
			}
			require.NoError(c, json.NewDecoder(response.Body).Decode(&state))
			if assert.Len(c, state.Needs, 1) && assert.Equal(c, "run_failed", state.Needs[0].Kind) && assert.Len(c, state.Needs[0].Evidence, len(evidence)) {
				for i, part := range evidence {
					assert.Regexp(c, part, state.Needs[0].Evidence[i])
				}
			}
		}, 2*time.Minute, time.Second)
	}
	segfault, stopped := "^rank 8 .* with SIGSEGV in train", "^rank 16 .* followed with SIGTERM in train"
	await(segfault, stopped)
	write(0, nodeReport(3, -9, time.Second, "Signal 9 (SIGKILL) received by PID 2630"))
	await("^rank 3 .* ended with SIGKILL in train .*: Signal 9 .SIGKILL. received by PID 2630$", segfault, stopped)
}

// The collector of each node reads the pods of its node. The gateway of the run names the
// rank that failed first on all nodes, and withholds what the error says.
func TestFailureOfNodesAtAGateway(t *testing.T) {
	t.Parallel()
	dir, back := t.TempDir(), harness.StartSink(t)
	gateway := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Env:    []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"), "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + back.Endpoint},
		Dir:    dir, Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "5s"},
	})
	for node, report := range []string{
		nodeReport(8, -11, 4*time.Second, "Signal 11 (SIGSEGV) received by PID 2630"), nodeReport(3, -9, time.Second, "Signal 9 (SIGKILL) received by PID 2630"),
	} {
		dir := t.TempDir()
		writePod(t, filepath.Join(dir, "pods"), node, report)
		harness.StartCollector(t, harness.CollectorOptions{
			Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
			Merged: []string{harness.Path("distribution", "config", "logs-kubernetes.yaml"), harness.Path("distribution", "config", "logs-gateway.yaml")},
			Env:    []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"), "TRAINING_LOGS=[" + filepath.Join(dir, "pods", "*", "*", "*.log") + "]"},
			Dir:    dir,
			Overrides: map[string]any{
				"exporters::load_balancing::resolver": map[string]any{"dns": nil, "static": map[string]any{"hostnames": []string{gateway.Address(t, "receivers::otlp::protocols::grpc")}}},
				"receivers::gpu":                      map[string]any{"source": "replay", "collection_interval": "1s", "replay": map[string]any{"path": harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml")}},
			},
		})
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var last map[string]any
		for _, record := range back.LogRecords() {
			if is := record.Attributes().AsRaw(); is["ml.problem"] == "run_failed" {
				last = is
			}
		}
		assert.EqualValues(c, 3, last["ml.rank.global"])
		assert.Equal(c, "SIGKILL", last["error.type"])
		assert.Equal(c, "[text: 39 bytes]", last["exception.message"])
		assert.Len(c, last["ml.problem.evidence"], 2)
	}, 2*time.Minute, time.Second)
}

// A program that sends its steps and prints them counts once: its process tells the run of
// its file. A collector that starts again goes on with the step.
func TestLinesOfAProgramThatSends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "train.log")
	file, err := os.Create(name)
	require.NoError(t, err)
	program := exec.CommandContext(t.Context(), "cat")
	program.Env, program.Stdout = append(os.Environ(), "TORCHELASTIC_RUN_ID=llama-7b"), file
	lines, err := program.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	require.NoError(t, file.Close())
	t.Cleanup(func() {
		require.NoError(t, lines.Close())
		_ = program.Wait() // its context has ended
	})
	printed := 0
	printTen := func() {
		printed += 10
		_, err := fmt.Fprintf(lines, "iter %d: loss 2.5000, time 100.00ms, mfu 1.00%%\n", printed)
		require.NoError(t, err)
	}
	options := harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-files.yaml")},
		Env:    []string{"TRAINING_LOGS=[" + name + "]", "OTELCOL_ML_STATE_DIR=" + filepath.Join(dir, "state")},
		Dir:    dir, Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"},
	}
	steps := func(collector *harness.Collector, labels harness.Labels, want float64) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
			require.NoError(c, err)
			if found := harness.Select(samples, "ml_steps_total", labels); assert.Len(c, found, 1) {
				assert.InDelta(c, want, found[0].Value, 0)
			}
		}, harness.StartTimeout, 200*time.Millisecond)
	}
	printTen()
	printTen()
	first := harness.StartCollector(t, options)
	steps(first, harness.Labels{"ml_run_id": "llama-7b"}, 21) // they begin with 0
	first.Stop(t)
	printTen()
	second := harness.StartCollector(t, options)
	steps(second, harness.Labels{"ml_run_id": "llama-7b"}, 31)

	sender, err := harness.NewGRPCSender(second.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	rs.Resource().Attributes().PutStr("ml.run.id", "llama-7b")
	for i := range 5 {
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("step")
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		span.Attributes().PutStr("ml.phase", "batch")
		span.Attributes().PutInt("ml.step", int64(31+i))
	}
	require.NoError(t, sender.Traces(t.Context(), td))
	steps(second, harness.Labels{"ml_run_id": "llama-7b", "job": "trainer"}, 5)
	printTen()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), second.Address(t, harness.TelemetryPath))
		require.NoError(c, err)
		if found := harness.Select(samples, "otelcol_processor_ml_enrich_printed_spans_dropped", nil); assert.Len(c, found, 1) {
			assert.InDelta(c, 10, found[0].Value, 0)
		}
	}, harness.StartTimeout, 200*time.Millisecond)
	steps(second, harness.Labels{"ml_run_id": "llama-7b", "job": "trainer"}, 5)
}

// The overlays fit over agent-gateway.yaml, with one more: a gateway gets the spans.
func TestLinesOfAnAgentWithGateways(t *testing.T) {
	t.Parallel()
	dir, gateway := t.TempDir(), harness.StartSink(t)
	name := filepath.Join(dir, "train.log")
	require.NoError(t, os.WriteFile(name, []byte("iter 10: loss 2.5000, time 100.00ms, mfu 1.00%\n"), 0o600))
	harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-files.yaml"), harness.Path("distribution", "config", "logs-gateway.yaml")},
		Env:    []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"), "TRAINING_LOGS=[" + name + "]"},
		Dir:    dir,
		Overrides: map[string]any{
			"exporters::load_balancing::resolver": map[string]any{"dns": nil, "static": map[string]any{"hostnames": []string{gateway.Endpoint}}},
			"receivers::gpu":                      map[string]any{"source": "replay", "collection_interval": "1s", "replay": map[string]any{"path": harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml")}},
		},
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		steps := 0
		for _, td := range gateway.Traces() {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					steps += ss.Spans().Len()
				}
			}
		}
		assert.Equal(c, 11, steps, "they begin with 0")
	}, harness.StartTimeout, 200*time.Millisecond)
}
