package trainers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
)

// request is one request of a program.
type request struct {
	at      time.Time
	traces  ptrace.Traces
	metrics pmetric.Metrics
	// isMetrics says which of the two it is.
	isMetrics bool
}

// collector is an ml_enrich before an ml_metrics, as the shipped configurations have
// them.
type collector struct {
	t             *testing.T
	traces        consumer.Traces
	metrics       consumer.Metrics
	series, rates *consumertest.MetricsSink
	parts         []component.Component
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t, series: new(consumertest.MetricsSink), rates: new(consumertest.MetricsSink)}
	count, enrich := mlmetricsconnector.NewFactory(), mlenrichprocessor.NewFactory()
	set := connector.Settings{ID: component.NewID(count.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	cfg := count.CreateDefaultConfig().(*mlmetricsconnector.Config)
	cfg.InitialZero = 0
	fromTraces, err := count.CreateTracesToMetrics(t.Context(), set, cfg, c.series)
	require.NoError(t, err)
	fromMetrics, err := count.CreateMetricsToMetrics(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	both, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		require.NoError(t, c.rates.ConsumeMetrics(ctx, md))
		return fromMetrics.ConsumeMetrics(ctx, md)
	})
	require.NoError(t, err)
	enrichSet := processor.Settings{ID: component.NewID(enrich.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	enrichTraces, err := enrich.CreateTraces(t.Context(), enrichSet, enrich.CreateDefaultConfig(), fromTraces)
	require.NoError(t, err)
	enrichMetrics, err := enrich.CreateMetrics(t.Context(), enrichSet, enrich.CreateDefaultConfig(), both)
	require.NoError(t, err)
	c.traces, c.metrics = enrichTraces, enrichMetrics
	c.parts = []component.Component{fromMetrics, fromTraces, enrichTraces, enrichMetrics}
	for _, part := range c.parts {
		require.NoError(t, part.Start(t.Context(), componenttest.NewNopHost()))
	}
	return c
}

func (c *collector) stop() {
	for i := range c.parts {
		require.NoError(c.t, c.parts[len(c.parts)-1-i].Shutdown(c.t.Context()))
	}
}

func (c *collector) send(r *request) {
	if !r.isMetrics {
		td := ptrace.NewTraces()
		r.traces.CopyTo(td)
		require.NoError(c.t, c.traces.ConsumeTraces(c.t.Context(), td))
		return
	}
	md := pmetric.NewMetrics()
	r.metrics.CopyTo(md)
	require.NoError(c.t, c.metrics.ConsumeMetrics(c.t.Context(), md))
}

// wait lets time pass, and returns the newest series after it, if there are any.
func (c *collector) wait(d time.Duration) pmetric.Metrics {
	time.Sleep(d)
	synctest.Wait()
	all := c.series.AllMetrics()
	if len(all) == 0 {
		return pmetric.NewMetrics()
	}
	return all[len(all)-1]
}

// holdGPU sends a reading of a GPU of the host of the program.
func (c *collector) holdGPU(id string) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "gpu-01")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.workload.memory.usage")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(60 << 30)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.Attributes().PutStr("hw.id", id)
	point.Attributes().PutStr("user.id", "1000")
	require.NoError(c.t, c.metrics.ConsumeMetrics(c.t.Context(), md))
}

// requestsOf returns what a program sends, in the order of arrival.
func requestsOf(t *testing.T, folder string) (all []request) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(folder, "recording.jsonl")); err == nil {
		for line := range bytes.Lines(text) {
			all = append(all, recorded(t, line))
		}
		return all
	}
	files, err := filepath.Glob(filepath.Join(folder, "input", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		r := request{at: arrival(t, string(text)), isMetrics: golden.Signal(t, file) == "metrics"}
		if r.isMetrics {
			r.metrics = golden.ReadMetrics(t, file)
		} else {
			r.traces = golden.ReadTraces(t, file)
		}
		all = append(all, r)
	}
	return all
}

func recorded(t *testing.T, line []byte) request {
	t.Helper()
	var one struct {
		At      float64         `json:"at"`
		Signal  string          `json:"signal"`
		Request json.RawMessage `json:"request"`
	}
	require.NoError(t, json.Unmarshal(line, &one))
	r := request{at: time.Unix(0, int64(one.At*1e9)), isMetrics: one.Signal == "metrics"}
	var err error
	if r.isMetrics {
		r.metrics, err = (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(one.Request)
	} else {
		r.traces, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(one.Request)
	}
	require.NoError(t, err)
	return r
}

// arrival returns when a text of input arrives: its first comment says it, such as
// "# arrives 2026-09-01T10:00:00Z".
func arrival(t *testing.T, text string) time.Time {
	t.Helper()
	line, _, _ := strings.Cut(text, "\n")
	at, err := time.Parse(time.RFC3339, strings.TrimPrefix(line, "# arrives "))
	require.NoError(t, err)
	return at
}

// gpus are the GPUs that programs name. The others' are joined to none.
var gpus = map[string]string{
	"megatron_default":  "GPU-6a1b0c9e-0000-4000-8000-000000000007",
	"megatron_per_step": "GPU-6a1b0c9e-0000-4000-8000-000000000007",
	"megatron_newer":    "GPU-6a1b0c9e-0000-4000-8000-000000000007",
}

// TestTrainers plays each program and compares the series with expected.txt. Then
// the program sends its last metrics again and again, as one that hangs does: its
// run stalls if it is known to hold a GPU, and else it is silent.
func TestTrainers(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			requests := requestsOf(t, folder)
			synctest.Test(t, func(t *testing.T) {
				// Not at the moment of an emission, which may be before or after it.
				time.Sleep(time.Until(requests[0].at) - 300*time.Millisecond)
				c := startCollector(t)
				defer c.stop()
				last := &requests[0]
				for i := range requests {
					r := &requests[i]
					time.Sleep(time.Until(r.at))
					if c.send(r); r.isMetrics {
						last = r
					}
				}
				if gpu := gpus[name]; gpu != "" {
					c.holdGPU(gpu)
				}
				md := c.wait(40 * time.Second) // times count one emission later
				golden.Compare(t, filepath.Join(folder, "expected.txt"), golden.MetricsWithoutTimes(t, withRates(md, c.rates)))
				if state(md) == "" {
					return // no run
				}
				assert.Equal(t, "running", state(md))
				for range 30 {
					if gpu := gpus[name]; gpu != "" {
						c.holdGPU(gpu)
					}
					c.send(last)
					md = c.wait(time.Minute)
				}
				want := "silent"
				if gpus[name] != "" {
					want = "stalled"
				}
				assert.Equal(t, want, state(md))
			})
		})
	}
}

// state returns the state of the run, or "".
func state(md pmetric.Metrics) string {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != "ml.run.state" {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					if is, _ := p.Attributes().Get("ml.run.state"); p.DoubleValue() == 1 || p.IntValue() == 1 {
						return is.Str()
					}
				}
			}
		}
	}
	return ""
}

// withRates returns the series with the newest metrics that ml_enrich adds.
func withRates(md pmetric.Metrics, sent *consumertest.MetricsSink) pmetric.Metrics {
	newest := make(map[string]pmetric.ResourceMetrics)
	for _, request := range sent.AllMetrics() {
		for _, rm := range request.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				if !strings.HasSuffix(sm.Scope().Name(), "mlenrichprocessor") {
					continue
				}
				one := pmetric.NewResourceMetrics()
				sm.CopyTo(one.ScopeMetrics().AppendEmpty())
				if service, ok := rm.Resource().Attributes().Get("service.name"); ok {
					one.Resource().Attributes().PutStr("service.name", service.Str())
				}
				m := sm.Metrics().At(0)
				if m.Name() == "ml.token.throughput" && m.Gauge().DataPoints().At(0).DoubleValue() == 0 {
					continue // at its end, the exporter sends the last numbers twice
				}
				newest[m.Name()] = one
			}
		}
	}
	all := pmetric.NewMetrics()
	md.CopyTo(all)
	for _, one := range newest {
		one.MoveTo(all.ResourceMetrics().AppendEmpty())
	}
	return all
}
