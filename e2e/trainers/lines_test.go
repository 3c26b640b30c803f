package trainers

import (
	"fmt"
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
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
)

// printer is a program that only prints, in a pod, before the connector that reads its lines
// and what comes after it.
type printer struct {
	*collector
	lines   consumer.Logs
	records *consumertest.LogsSink
}

func startPrinter(t *testing.T) *printer {
	t.Helper()
	p := &printer{collector: startCollector(t), records: new(consumertest.LogsSink)}
	count := mlmetricsconnector.NewFactory()
	set := connector.Settings{ID: component.NewID(count.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	factory := mllinesconnector.NewFactory()
	set.ID = component.NewID(factory.Type())
	lines, err := factory.CreateLogsToTraces(t.Context(), set, factory.CreateDefaultConfig(), p.traces)
	require.NoError(t, err)
	require.NoError(t, lines.Start(t.Context(), componenttest.NewNopHost()))
	p.lines, p.parts = lines, append(p.parts, lines)
	return p
}

// print prints a line in a pod, by its clock, as file_log's operator container reads it.
func (p *printer) print(pod, line string) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	resource := rl.Resource().Attributes()
	resource.PutStr("host.name", "node-"+pod[len(pod)-1:])
	resource.PutStr("k8s.namespace.name", "ml")
	resource.PutStr("k8s.pod.name", pod)
	resource.PutStr("k8s.pod.uid", "u"+pod)
	resource.PutStr("k8s.container.name", "pytorch")
	resource.PutStr("k8s.container.restart_count", "0")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Attributes().PutStr("log.file.path", "/var/log/pods/ml_"+pod+"_u"+pod+"/pytorch/0.log")
	record.Body().SetStr(strings.ReplaceAll(line, "NOW", time.Now().Format("2006-01-02 15:04:05.000000")))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	require.NoError(p.t, p.lines.ConsumeLogs(p.t.Context(), ld))
}

func (p *printer) iteration(pod string, number int, loss string) {
	p.print(pod, fmt.Sprintf(" [NOW] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:    16 | %sloss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan iterations:   0 |", number, number*16, loss))
}

// sum adds the newest points of a series up that have some attributes, as name=value.
func (p *printer) sum(name string, attributes ...string) (sum float64, points int) {
	for _, rm := range p.wait(20 * time.Second).ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				each := func(attrs pcommon.Map, value float64) {
					for _, attribute := range attributes {
						key, want, _ := strings.Cut(attribute, "=")
						if v, ok := attrs.Get(key); !ok || v.Str() != want {
							return
						}
					}
					sum += value
					points++
				}
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, point := range m.Sum().DataPoints().All() {
						each(point.Attributes(), number(point))
					}
				case pmetric.MetricTypeGauge:
					for _, point := range m.Gauge().DataPoints().All() {
						each(point.Attributes(), number(point))
					}
				}
			}
		}
	}
	return sum, points
}

func number(point pmetric.NumberDataPoint) float64 {
	if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(point.IntValue())
	}
	return point.DoubleValue()
}

const lossOfLine = "lm loss: 6.100000E+00 | "

// TestLinesOfAJob: Megatron-LM prints steps in the pod of the last rank and checkpoints in
// that of the first. Both are one run, which has steps, samples and time in checkpoints.
func TestLinesOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPrinter(t)
		defer p.stop()
		for i := range 30 {
			time.Sleep(10 * time.Second)
			p.iteration("llama-worker-3", (i+1)*10, lossOfLine)
			if i == 19 {
				p.print("llama-worker-0", "[NOW] saving checkpoint at iteration     200 to /ckpt in torch_dist format")
				time.Sleep(10 * time.Second)
				p.print("llama-worker-0", " [NOW] successfully saved checkpoint from iteration     200 to /ckpt [ t 1/1, p 1/1 ]")
			}
		}
		steps, points := p.sum("ml.steps")
		assert.InDelta(t, 300, steps, 0)
		assert.Equal(t, 1, points, "one series: only one pod has steps")
		samples, _ := p.sum("ml.samples")
		assert.InDelta(t, 4800, samples, 0)
		saved, _ := p.sum("ml.run.time", "ml.run.state=checkpoint")
		assert.InDelta(t, 10, saved, 0.1)
		attempts, points := p.sum("ml.run.attempts")
		assert.InDelta(t, points, attempts, 0, "each pod has one")
	})
}

// TestNaNInLines: a loss that the program leaves out, as Megatron-LM does with one that is
// NaN, is not finite.
func TestNaNInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPrinter(t)
		defer p.stop()
		for i := range 30 {
			time.Sleep(10 * time.Second)
			loss := lossOfLine
			if i >= 28 {
				loss = ""
			}
			p.iteration("llama-worker-3", (i+1)*10, loss)
		}
		broken, _ := p.sum("ml.nonfinite", "ml.signal=loss")
		assert.InDelta(t, 2, broken, 0)
	})
}

// TestRestartInLines: a program that starts again in its container is another attempt of
// its run, and its steps from the checkpoint on are done again.
func TestRestartInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPrinter(t)
		defer p.stop()
		for i := range 30 {
			time.Sleep(10 * time.Second)
			p.iteration("llama-worker-3", (i+1)*10, lossOfLine)
		}
		time.Sleep(time.Minute)
		p.print("llama-worker-3", "  loading distributed checkpoint from /ckpt at iteration 200")
		time.Sleep(5 * time.Second)
		p.print("llama-worker-3", "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 200")
		for i := range 20 {
			time.Sleep(10 * time.Second)
			p.iteration("llama-worker-3", 200+(i+1)*10, lossOfLine)
		}
		attempts, _ := p.sum("ml.run.attempts")
		assert.InDelta(t, 2, attempts, 0)
		rework, _ := p.sum("ml.run.time", "ml.run.state=rework")
		assert.InDelta(t, 100, rework, 2)
		restored, _ := p.sum("ml.run.time", "ml.run.state=checkpoint_restore")
		assert.InDelta(t, 5, restored, 0.1)
	})
}

// hold sends a reading of a GPU that a pod holds.
func (p *printer) hold(pod string) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "node-"+pod[len(pod)-1:])
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.workload.memory.usage")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(60 << 30)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.Attributes().PutStr("hw.id", "GPU-6a1b0c9e-0000-4000-8000-000000000007")
	point.Attributes().PutStr("k8s.pod.uid", "u"+pod)
	require.NoError(p.t, p.metrics.ConsumeMetrics(p.t.Context(), md))
}

// TestGPUOfLines: the GPU that a pod holds is joined to the run of its lines. A program that
// prints no more and holds its GPU is stalled, and one whose GPU nobody reads is silent.
func TestGPUOfLines(t *testing.T) {
	for _, read := range []bool{true, false} {
		testGPUOfLines(t, read)
	}
}

func testGPUOfLines(t *testing.T, read bool) {
	synctest.Test(t, func(t *testing.T) {
		p := startPrinter(t)
		defer p.stop()
		for i := range 60 {
			time.Sleep(10 * time.Second)
			p.iteration("llama-worker-3", (i+1)*10, lossOfLine)
			p.hold("llama-worker-3")
		}
		all := p.rates.AllMetrics()
		newest := all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
		run, _ := newest.Attributes().Get("ml.run.id")
		assert.Contains(t, run.Str(), "llama-")
		rule, _ := newest.Attributes().Get("ml.gpu.join")
		assert.Equal(t, "pod", rule.Str())
		running, _ := p.sum("ml.run.state", "ml.run.state=running")
		assert.InDelta(t, 1, running, 0)
		for range 120 {
			time.Sleep(10 * time.Second)
			if read {
				p.hold("llama-worker-3")
			}
		}
		state := "silent"
		if read {
			state = "stalled"
		}
		now, _ := p.sum("ml.run.state", "ml.run.state="+state)
		assert.InDelta(t, 1, now, 0, state)
	})
}
