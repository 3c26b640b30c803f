package intake_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
)

// site reads metrics into a store with a clock that the test sets.
type site struct {
	*model.Store
	in  *intake.Intake
	now time.Time
}

func newSite(settings input.Settings) *site {
	s := &site{now: time.Unix(1_700_000_000, 0)}
	settings.Now = func() time.Time { return s.now }
	s.Store = pagetest.NewStore(settings)
	s.in = intake.New(s.Store)
	return s
}

func (s *site) consume(batches ...pmetric.Metrics) {
	for _, md := range batches {
		s.in.ConsumeMetrics(context.Background(), md)
	}
}

// shown returns the State after an interval, and the details of all runs, as JSON.
func (s *site) shown(t *testing.T) string {
	s.now = s.now.Add(2 * time.Second)
	state := s.State()
	all := []any{state}
	for i := range state.Runs {
		detail, ok := s.Run(state.Runs[i].Key)
		require.True(t, ok)
		all = append(all, detail)
	}
	text, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	return string(text)
}

// attributesOf calls f with the attributes of all points.
func attributesOf(md pmetric.Metrics, f func(pcommon.Map)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, point := range m.Gauge().DataPoints().All() {
						f(point.Attributes())
					}
				case pmetric.MetricTypeHistogram:
					for _, point := range m.Histogram().DataPoints().All() {
						f(point.Attributes())
					}
				}
			}
		}
	}
}

// turned returns metrics whose attributes have another order.
func turned(md pmetric.Metrics) pmetric.Metrics {
	other := pmetric.NewMetrics()
	md.CopyTo(other)
	attributesOf(other, func(attrs pcommon.Map) {
		var keys []string
		raw := pcommon.NewMap()
		attrs.CopyTo(raw)
		for key := range raw.All() {
			keys = append(keys, key)
		}
		attrs.Clear()
		for _, key := range slices.Backward(keys) {
			v, _ := raw.Get(key)
			v.CopyTo(attrs.PutEmpty(key))
		}
	})
	return other
}

// gpuMetrics returns a reading of a GPU that a run holds.
func gpuMetrics(utilization float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "gpu-000")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	for name, value := range map[string]float64{"hw.gpu.utilization": utilization, "hw.power": 400, "nvidia.gpu.workload.memory.usage": 1 << 30, "hw.temperature": 60} {
		m := metrics.AppendEmpty()
		m.SetName(name)
		point := m.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetDoubleValue(value)
		attrs := point.Attributes()
		attrs.PutStr("hw.id", "GPU-1")
		attrs.PutStr("nvidia.gpu.index", "0")
		attrs.PutStr("nvidia.gpu.source", "simulated")
		attrs.PutStr("hw.sensor_location", "gpu")
		if name == "nvidia.gpu.workload.memory.usage" {
			attrs.PutStr("ml.run.id", "llama-sft-50000")
			attrs.PutStr("user.id", "ada")
		}
	}
	return md
}

// The page shows the same whether a sender repeats its streams as they were, of which
// only the values are read, or in another form each time.
func TestRepeatedStreamsShowTheSame(t *testing.T) {
	same, other := newSite(input.Settings{}), newSite(input.Settings{})
	e := newEmission(3, 4)
	for round := range 40 {
		e.next(same.now, round)
		for _, md := range append(slices.Clone(e.batches), gpuMetrics(float64(round)/100)) {
			same.consume(md)
			if round%2 == 1 {
				md = turned(md)
			}
			other.consume(md)
		}
		shown := same.shown(t)
		require.Equal(t, other.shown(t), shown, "round %d", round)
		if round == 39 {
			for _, name := range []string{"power", "seconds_per_step", "token_rate", "owner"} {
				assert.Contains(t, shown, strconv.Quote(name))
			}
		}
	}
}

// stepsOf returns one point of ml.steps with labels.
func stepsOf(value float64, labels ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("ml.steps")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetDoubleValue(value)
	for i := 0; i < len(labels); i += 2 {
		point.Attributes().PutStr(labels[i], labels[i+1])
	}
	return md
}

// Streams are told apart by each of their labels, wherever its text ends.
func TestStreamsAreToldApart(t *testing.T) {
	s := newSite(input.Settings{})
	for range 3 {
		for i, labels := range [][]string{
			{"ml.run.id", "r", "host.name", "h", "ml.rank.global", "0"},
			{"ml.run.id", "r", "host.name", "h", "ml.rank.global", "1"},
			{"ml.run.id", "rh", "host.name", "", "ml.rank.global", "0"},
			{"ml.run.id", "", "host.name", "rh", "ml.rank.global", "0"},
			{"ml.run.id", "h", "host.name", "r", "ml.rank.global", "0"},
		} {
			s.consume(stepsOf(float64(10+i), labels...))
		}
	}
	s.now = s.now.Add(2 * time.Second)
	steps := map[string]float64{}
	for _, run := range s.State().Runs {
		steps[run.ID] = *run.Steps
	}
	assert.Equal(t, map[string]float64{"r": 11, "rh": 12, "h": 14}, steps)
}

// readingOf returns one reading of a GPU.
func readingOf(host string) pmetric.Metrics {
	md := stepsOf(300, "host.name", host, "hw.id", "GPU-1")
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("hw.power")
	return md
}

// A run that was forgotten is back with its next point, and its host with its next
// reading.
func TestAForgottenRunComesBack(t *testing.T) {
	s := newSite(input.Settings{History: time.Minute})
	point, reading := stepsOf(1, "ml.run.id", "r", "host.name", "h"), readingOf("h")
	s.consume(point, point, reading, reading)
	s.now = s.now.Add(2 * time.Second)
	require.Len(t, s.State().Runs, 1)
	s.now = s.now.Add(time.Hour)
	require.Empty(t, s.State().Runs)
	s.consume(point, point, reading, reading)
	s.now = s.now.Add(2 * time.Second)
	assert.Len(t, s.State().Runs, 1)
	assert.Equal(t, 1, s.State().Collector.HostsReporting)
}

// A host that only repeats its readings reports. One of which ml_metrics repeats what it
// has computed does not.
func TestARepeatingHostReports(t *testing.T) {
	s := newSite(input.Settings{})
	for range 10 {
		s.consume(readingOf("h"), stepsOf(1, "ml.run.id", "r", "host.name", "other"))
		s.now = s.now.Add(20 * time.Second)
	}
	assert.Equal(t, 1, s.State().Collector.HostsReporting)
	assert.Equal(t, 1, s.State().Collector.Hosts)
}

// Metrics that the page does not read are news of the client that has sent them, unless
// ml_metrics computes them.
func TestMetricsThatAreNotShownAreNews(t *testing.T) {
	for name, sent := range map[string]bool{"vllm:num_requests_running": true, "ml.user.cost": false, "ml_user_cost_total": false} {
		s := newSite(input.Settings{})
		md := stepsOf(1)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "h")
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(name)
		s.consume(md)
		s.now = s.now.Add(2 * time.Second)
		state := s.State()
		assert.Equal(t, sent, state.Collector.DataTime != nil, name)
		assert.Equal(t, map[bool]int{true: 1}[sent], state.Collector.HostsReporting, name)
	}
}

// Data beyond the limit of another component is missing for as long as it says so.
func TestRepeatedOverflow(t *testing.T) {
	s := newSite(input.Settings{})
	point := stepsOf(1, "ml.run.id", "r", "otel.metric.overflow", "true")
	for range 10 {
		s.consume(point)
		s.now = s.now.Add(time.Minute)
	}
	missing, err := json.Marshal(s.State().Missing)
	require.NoError(t, err)
	assert.Contains(t, string(missing), "overflow")
}
