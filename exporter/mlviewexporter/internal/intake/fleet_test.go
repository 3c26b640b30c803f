package intake_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
)

// emission is what ml_metrics sends of a fleet at one interval: the same series in
// the same order each time, at most 4096 points at once.
type emission struct {
	batches []pmetric.Metrics
	points  int
	numbers []pmetric.NumberDataPoint
	sums    []pmetric.HistogramDataPoint
}

func newEmission(runs, ranks int) *emission {
	var all []func(*emission)
	for run := range runs {
		for rank := range ranks {
			label := func(attrs pcommon.Map) {
				attrs.PutStr("ml.run.id", fmt.Sprint("llama-sft-", 50000+run))
				attrs.PutStr("ml.job.id", strconv.Itoa(50000+run))
				attrs.PutStr("ml.rank.global", strconv.Itoa(rank))
				attrs.PutStr("host.name", fmt.Sprintf("gpu-%03d", run/8))
			}
			for _, name := range []string{"ml.steps", "ml.samples", "ml.tokens", "ml.loss", "ml.learning_rate", "ml.epoch", "ml.run.last_step.timestamp", "ml.run.attempts"} {
				all = append(all, func(e *emission) { label(e.number(run, name).Attributes()) })
			}
			for _, phase := range []string{"step", "data_load", "forward", "backward", "optimizer", "communication"} {
				all = append(all, func(e *emission) {
					point := e.histogram(run, "ml.step.duration")
					label(point.Attributes())
					point.Attributes().PutStr("ml.phase", phase)
					point.Attributes().PutStr("ml.timing", "host")
				})
			}
		}
		for _, state := range []string{"running", "stalled", "silent", "ended", "unknown"} {
			all = append(all, func(e *emission) {
				attrs := e.number(run, "ml.run.state").Attributes()
				attrs.PutStr("ml.run.id", fmt.Sprint("llama-sft-", 50000+run))
				attrs.PutStr("ml.run.state", state)
			})
		}
	}
	// The shards of ml_metrics hold the series by their hash.
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	e := &emission{}
	for i, add := range all {
		if i%4096 == 0 {
			e.batches = append(e.batches, pmetric.NewMetrics())
		}
		add(e)
	}
	e.points = len(all)
	return e
}

// metric returns the metric with a name in the current batch, of the service of a
// run.
func (e *emission) metric(run int, name string) pmetric.Metric {
	md := e.batches[len(e.batches)-1]
	service := fmt.Sprint("service-", run%40)
	var metrics pmetric.MetricSlice
	for _, rm := range md.ResourceMetrics().All() {
		if v, _ := rm.Resource().Attributes().Get("service.name"); v.Str() == service {
			metrics = rm.ScopeMetrics().At(0).Metrics()
		}
	}
	if metrics == (pmetric.MetricSlice{}) {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", service)
		rm.Resource().Attributes().PutStr("service.namespace", "chat")
		metrics = rm.ScopeMetrics().AppendEmpty().Metrics()
	}
	for _, m := range metrics.All() {
		if m.Name() == name {
			return m
		}
	}
	m := metrics.AppendEmpty()
	m.SetName(name)
	return m
}

func (e *emission) number(run int, name string) pmetric.NumberDataPoint {
	m := e.metric(run, name)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyGauge()
	}
	point := m.Gauge().DataPoints().AppendEmpty()
	e.numbers = append(e.numbers, point)
	return point
}

func (e *emission) histogram(run int, name string) pmetric.HistogramDataPoint {
	m := e.metric(run, name)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	point := m.Histogram().DataPoints().AppendEmpty()
	point.ExplicitBounds().FromRaw([]float64{1, 2, 5, 10, 20})
	point.BucketCounts().FromRaw(make([]uint64, 6))
	e.sums = append(e.sums, point)
	return point
}

// next gives each tenth point a new value, and all a new time.
func (e *emission) next(now time.Time, round int) {
	at := pcommon.NewTimestampFromTime(now)
	for i, point := range e.numbers {
		if point.SetTimestamp(at); (i+round)%10 == 0 {
			point.SetDoubleValue(point.DoubleValue() + 1)
		}
	}
	for i, point := range e.sums {
		if point.SetTimestamp(at); (i+round)%10 == 0 {
			point.SetSum(point.Sum() + 1)
			point.SetCount(point.Count() + 1)
		}
	}
}

// BenchmarkFleet reads what ml_metrics sends every 2 s of 500 runs with 8 ranks.
func BenchmarkFleet(b *testing.B) {
	now := time.Unix(1_700_000_000, 0)
	store := pagetest.NewStore(input.Settings{Now: func() time.Time { return now }})
	in := intake.New(store)
	e := newEmission(500, 8)
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		b.StopTimer()
		round++
		now = now.Add(2 * time.Second)
		e.next(now, round)
		b.StartTimer()
		for _, md := range e.batches {
			in.ConsumeMetrics(context.Background(), md)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*e.points), "ns/point")
}
