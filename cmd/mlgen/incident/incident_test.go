package incident

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

var testStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const (
	stepTime  = 50 * time.Millisecond
	testSteps = 2 * Onset
	second    = float64(time.Second)
)

// onset is when it goes wrong.
var onset = testStart.Add(Onset * stepTime)

func play(t *testing.T, name string, seed int64) []scenario.Batch {
	t.Helper()
	site, err := New(name, scenario.Settings{Seed: seed, Rate: 20, MetricsInterval: time.Second}, 0)
	require.NoError(t, err)
	var out []scenario.Batch
	for i := range testSteps {
		out = append(out, site.Step(testStart.Add(time.Duration(i+1)*stepTime))...)
	}
	return append(out, site.Finish(testStart.Add(testSteps*stepTime))...)
}

// sent is what an incident sends.
type sent struct {
	spans   []*sentlog.Span
	metrics []*sentlog.Metric
}

func sentBy(t *testing.T, name string) (out sent) {
	t.Helper()
	for _, batch := range play(t, name, 42) {
		require.Equal(t, name, batch.Scenario)
		out.add(batch)
	}
	return out
}

func (s *sent) add(batch scenario.Batch) {
	for _, e := range batch.Entries() {
		switch {
		case e.Span != nil:
			s.spans = append(s.spans, e.Span)
		case e.Metric != nil:
			s.metrics = append(s.metrics, e.Metric)
		}
	}
}

// last returns the last value of each series of a metric, by some of its
// attributes.
func (s sent) last(name string, keys ...string) map[string]float64 {
	values := map[string]float64{}
	for _, m := range s.metrics {
		if m.Name == name {
			values[labels(m.Attributes, keys)] = m.Value
		}
	}
	return values
}

func labels(of sentlog.Attributes, keys []string) string {
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = fmt.Sprint(of[key])
	}
	return strings.Join(values, " ")
}

func all(count int, value float64, format string) map[string]float64 {
	values := map[string]float64{}
	for i := range count {
		values[fmt.Sprintf(format, i)] = value
	}
	return values
}

// TestHang shows the last spans of each rank, and what their GPUs do.
func TestHang(t *testing.T) {
	out := sentBy(t, "hang")
	newest := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		rank := fmt.Sprint(span.Resource["ml.rank.global"])
		if newest[rank] == nil || span.EndUnixNano > newest[rank].EndUnixNano {
			newest[rank] = span
		}
		assert.Equal(t, "llama-sft-48211", span.Resource["ml.run.id"])
	}
	require.Len(t, newest, 16)
	for rank, span := range newest {
		want, host := "forward", "gpu-01"
		if rank == "13" {
			want = "data_load"
		}
		if len(rank) == 2 || rank > "7" {
			host = "gpu-02"
		}
		assert.Equal(t, want, span.Name, rank)
		assert.Equal(t, host, span.Resource["host.name"], rank)
		assert.WithinDuration(t, onset, time.Unix(0, span.EndUnixNano), 2*stepTime, rank)
	}
	assert.Equal(t, all(8, 1, "gpu-01 %d"), firstHalf(out.last("hw.gpu.utilization", "host.name", "nvidia.gpu.index")))
	for gpu, watts := range out.last("hw.power", "host.name", "nvidia.gpu.index") {
		assert.InDelta(t, 210, watts, 0, gpu)
	}
	assert.Equal(t, all(16, 61<<30, "llama-sft-48211 %d"), out.last("nvidia.gpu.workload.memory.usage", "ml.run.id", "ml.rank.global"))
}

func firstHalf(values map[string]float64) map[string]float64 {
	half := map[string]float64{}
	for key, v := range values {
		if key < "gpu-02" {
			half[key] = v
		}
	}
	return half
}

// TestSlowInput shows the restart, and what takes longer after it.
func TestSlowInput(t *testing.T) {
	out := sentBy(t, "slow-input")
	steps, loads, hosts := map[int64][]float64{}, map[int64][]float64{}, map[int64]map[any]bool{}
	for _, span := range out.spans {
		attempt := span.Resource["ml.run.attempt"].(int64)
		if hosts[attempt] == nil {
			hosts[attempt] = map[any]bool{}
		}
		hosts[attempt][span.Resource["host.name"]] = true
		length := float64(span.EndUnixNano-span.StartUnixNano) / second
		switch span.Name {
		case "train_step":
			steps[attempt] = append(steps[attempt], length)
		case "data_load":
			loads[attempt] = append(loads[attempt], length)
		}
	}
	assert.Equal(t, map[int64]map[any]bool{0: {"gpu-03": true, "gpu-04": true}, 1: {"gpu-03": true, "gpu-05": true}}, hosts)
	assert.InDelta(t, 0.050, mean(steps[0]), 0.001)
	assert.InDelta(t, 0.080, mean(steps[1]), 0.001)
	assert.InDelta(t, mean(steps[1])-mean(steps[0]), mean(loads[1])-mean(loads[0]), 0.001, "the data_load is what takes longer")
	held := out.last("hw.gpu.memory.usage", "host.name", "nvidia.gpu.index")
	assert.Zero(t, held["gpu-04 0"])
	assert.InDelta(t, 61<<30, held["gpu-05 0"], 0)
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// TestBadVersion shows the share of requests that fail, by version.
func TestBadVersion(t *testing.T) {
	out := sentBy(t, "bad-version")
	requests, failed, classes := map[any]int{}, map[any]int{}, map[string]int{}
	for _, span := range out.spans {
		version := span.Resource["service.version"]
		class, _ := span.Attributes["error.type"].(string)
		switch span.Name {
		case "invoke_agent support-agent":
			requests[version]++
			if class != "" {
				failed[version]++
				assert.Equal(t, "error", span.Status.Code)
			}
		case "execute_tool lookup_order":
			if class != "" {
				classes[fmt.Sprint(version, " ", class)]++
				require.Len(t, span.Events, 1)
				assert.Equal(t, class, span.Events[0].Attributes["exception.type"])
			}
		default:
			assert.Equal(t, "unset", span.Status.Code, "the model answers always")
		}
	}
	assert.Equal(t, map[any]int{"1.8.1": 3 * Onset, "1.8.2": 3 * Onset}, requests)
	assert.Equal(t, map[any]int{"1.8.1": 2, "1.8.2": 72}, failed, "0.4 % of 600, and then 12 %")
	assert.Equal(t, map[string]int{"1.8.1 ConnectionError": 2, "1.8.2 ToolTimeout": 72}, classes)
}

// TestHeldIdle shows whose memory it is, and that nothing uses the GPUs.
func TestHeldIdle(t *testing.T) {
	out := sentBy(t, "held-idle")
	for _, m := range out.metrics {
		if m.Name != "hw.gpu.utilization" || m.Attributes["nvidia.gpu.index"].(int64) < 4 {
			continue
		}
		if m.TimeUnixNano <= onset.UnixNano() {
			assert.InDelta(t, 0.7, m.Value, 0.1)
		} else {
			assert.Zero(t, m.Value)
		}
	}
	held := out.last("nvidia.gpu.workload.memory.usage", "nvidia.gpu.index", "user.id", "slurm.job.id", "ml.run.id")
	for i := range 4 {
		assert.InDelta(t, 61<<30, held[fmt.Sprintf("%d 1004 48255 bert-ft-48255", i)], 0)
		assert.InDelta(t, 61<<30, held[fmt.Sprintf("%d 1003 48274 <nil>", i+4)], 0)
	}
	busy := map[any][]float64{}
	for _, m := range out.metrics {
		if m.Name == "nvidia.gpu.busy.time" {
			busy[m.Attributes["nvidia.gpu.index"]] = append(busy[m.Attributes["nvidia.gpu.index"]], m.Value)
		}
	}
	assert.InDelta(t, 0.7*10, busy[int64(7)][len(busy[int64(7)])-1], 1.5, "busy for the ten seconds before")
	assert.IsNonDecreasing(t, busy[int64(0)])
}

// TestHangAtStart shows processes that hold GPUs, send metrics, and no span.
func TestHangAtStart(t *testing.T) {
	out := sentBy(t, "hang-at-start")
	assert.Empty(t, out.spans)
	processes := map[any]bool{}
	for _, m := range out.metrics {
		if m.Name == "process.memory.usage" {
			processes[m.Resource["ml.rank.global"]] = true
			assert.Equal(t, "mixtral-pretrain-48290", m.Resource["ml.run.id"])
		}
	}
	assert.Len(t, processes, 8)
	assert.Equal(t, all(8, 61<<30, "mixtral-pretrain-48290 %d"), out.last("nvidia.gpu.workload.memory.usage", "ml.run.id", "ml.rank.global"))
	assert.Equal(t, all(8, 1, "%d"), out.last("hw.gpu.utilization", "nvidia.gpu.index"))
}

// TestEverythingIsSimulated shows that all of it says so.
func TestEverythingIsSimulated(t *testing.T) {
	for _, name := range Names() {
		out := sentBy(t, name)
		for _, span := range out.spans {
			require.Equal(t, true, span.Resource["ml.simulated"], span.Name)
			require.LessOrEqual(t, span.StartUnixNano, span.EndUnixNano, span.Name)
			require.LessOrEqual(t, span.EndUnixNano, testStart.Add(testSteps*stepTime).UnixNano(), span.Name)
		}
		for _, m := range out.metrics {
			require.Equal(t, true, m.Resource["ml.simulated"], m.Name)
			if m.Name != "process.memory.usage" {
				require.Equal(t, "simulated", m.Attributes["nvidia.gpu.source"], m.Name)
			}
		}
	}
}

func TestSeedRepeatsEverything(t *testing.T) {
	for _, name := range Names() {
		first, again, other := marshal(t, play(t, name, 1)), marshal(t, play(t, name, 1)), marshal(t, play(t, name, 2))
		assert.Equal(t, first, again, name)
		assert.NotEqual(t, first, other, name)
	}
}

func marshal(t *testing.T, batches []scenario.Batch) (out []byte) {
	t.Helper()
	for _, b := range batches {
		var raw []byte
		var err error
		switch b.Signal {
		case sentlog.SignalTraces:
			raw, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(b.Traces)
		case sentlog.SignalLogs:
			raw, err = (&plog.ProtoMarshaler{}).MarshalLogs(b.Logs)
		default:
			raw, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(b.Metrics)
		}
		require.NoError(t, err)
		out = append(out, raw...)
	}
	return out
}

func TestUnknown(t *testing.T) {
	_, err := New("flood", scenario.Settings{Rate: 1}, 0)
	require.EqualError(t, err, `unknown incident "flood", want one of bad-version, gpu-failed, hang, hang-at-start, held-idle, slow-input`)
}

// TestIncidentsEnd: what is mended is well, and goes wrong again.
func TestIncidentsEnd(t *testing.T) {
	const lasts = 400
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			site, err := New(name, scenario.Settings{Seed: 1, Rate: 20, MetricsInterval: time.Second}, lasts)
			require.NoError(t, err)
			wrong := func(s sent) bool {
				switch name {
				case "hang", "hang-at-start":
					return !slices.ContainsFunc(s.spans, func(s *sentlog.Span) bool { return s.Name == "train_step" })
				case "bad-version":
					return slices.ContainsFunc(s.spans, func(s *sentlog.Span) bool { return s.Attributes["error.type"] == "ToolTimeout" })
				case "held-idle":
					return slices.ContainsFunc(s.metrics, func(m *sentlog.Metric) bool {
						return m.Name == "hw.gpu.utilization" && m.Value == 0
					})
				case "slow-input":
					return slices.ContainsFunc(s.spans, func(s *sentlog.Span) bool { return s.Resource["host.name"] == "gpu-05" })
				default:
					return slices.ContainsFunc(s.metrics, func(m *sentlog.Metric) bool {
						return m.Name == "hw.status" && m.Attributes["hw.state"] == "failed" && m.Value == 1
					})
				}
			}
			place := slices.Index(Names(), name)
			begins := Onset + apart*place
			well := lasts / 2 * (1 + place%3)
			step := 0
			during := func(to int) (out sent) {
				for ; step < to; step++ {
					for _, batch := range site.Step(testStart.Add(time.Duration(step+1) * stepTime)) {
						out.add(batch)
					}
				}
				return out
			}
			during(begins + 40)
			assert.True(t, wrong(during(begins+lasts)), "the first time")
			during(begins + lasts + 60)
			assert.False(t, wrong(during(begins+lasts+well)), "mended")
			during(begins + lasts + well + 40)
			assert.True(t, wrong(during(begins+2*lasts+well)), "again")
		})
	}
}
