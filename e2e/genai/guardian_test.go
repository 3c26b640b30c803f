package genai

import (
	"context"
	"fmt"
	"maps"
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

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// guardian does to metrics what cardinality_guardian, of opentelemetry-collector-contrib,
// does by its documentation, but counts values exactly. It stands in for it: the module
// registry that this was written with does not have its module.
type guardian struct {
	// mode is its enforcement_mode.
	mode string
	// never are the labels that it leaves alone.
	never []string
	// now and before are the values of this epoch and of the one before, by metric and
	// label.
	now, before map[[2]string]map[string]bool
}

// sentinel is the value of a label in the mode overflow_attribute.
const sentinel = "otel.cardinality_overflow"

// newValues is the number of new values in an epoch that it allows,
// max_cardinality_delta_per_epoch of its documentation.
const newValues = 100

// epoch begins the next epoch.
func (g *guardian) epoch() { g.before, g.now = g.now, make(map[[2]string]map[string]bool) }

func (g *guardian) process(md pmetric.Metrics) {
	type point struct {
		order, metric, mode string
		labels              pcommon.Map
	}
	var points []point
	eachMetric(md, func(resource string, m pmetric.Metric) {
		add := func(mode string, labels pcommon.Map) {
			points = append(points, point{resource + m.Name() + fmt.Sprint(labels.AsRaw()), m.Name(), mode, labels})
		}
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				add(g.mode, p.Attributes())
			}
		case pmetric.MetricTypeSum:
			// ml_metrics writes no deltas, the only ones that it adds up.
			for _, p := range m.Sum().DataPoints().All() {
				add("tag_only", p.Attributes())
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				add("tag_only", p.Attributes())
			}
		}
	})
	// Whose values are the first ones is chance, but not here.
	slices.SortFunc(points, func(x, y point) int { return strings.Compare(x.order, y.order) })
	for _, p := range points {
		g.point(p.metric, p.mode, p.labels)
	}
}

// point changes the labels of a point of which there are too many new values.
func (g *guardian) point(metric, mode string, labels pcommon.Map) {
	var over []string
	for key, value := range labels.All() {
		if slices.Contains(g.never, key) {
			continue
		}
		of := [2]string{metric, key}
		if g.now[of] == nil {
			g.now[of] = make(map[string]bool)
		}
		g.now[of][value.AsString()] = true
		if len(g.now[of])-len(g.before[of]) > newValues {
			over = append(over, key)
		}
	}
	for _, key := range over {
		switch mode {
		case "strip_and_reaggregate":
			labels.Remove(key)
		case "overflow_attribute":
			labels.PutStr(key, sentinel)
		default:
			labels.PutBool("otel.metric.overflow", true)
		}
	}
}

// guards are the settings with which cardinality_guardian is tried.
var guards = []struct {
	name string
	guardian
}{
	{"`tag_only`", guardian{mode: "tag_only"}},
	{"`overflow_attribute`", guardian{mode: "overflow_attribute"}},
	{"`strip_and_reaggregate`, its default", guardian{mode: "strip_and_reaggregate"}},
	{"any, with the `never_drop_labels` above", guardian{mode: "strip_and_reaggregate", never: []string{
		mlattr.RunID, mlattr.JobID, mlattr.RankGlobal, mlattr.HostName, "hw.id",
	}}},
}

// TestBesideGuardian has cardinality_guardian behind ml_metrics, with the series of 120
// healthy runs, and behind the readings of 160 GPUs.
func TestBesideGuardian(t *testing.T) {
	spans, readings := aFleet(t)
	result, err := Process(context.Background(), spans, filepath.Join(t.TempDir(), "r"))
	require.NoError(t, err)
	alone := seriesOf(result.Series)
	require.Equal(t, 120, alone.runs())
	require.Equal(t, 160, gpus(readings))

	table := "| `cardinality_guardian` | series of `ml_metrics` | `sum(ml_steps_total)` | runs whose last step is known | GPUs |\n|---|---|---|---|---|\n"
	row := func(name string, s series, gpus int) {
		table += fmt.Sprintf("| %s | %d | %d | %d | %d |\n", name, len(s), s.steps(), s.runs(), gpus)
	}
	row("none", alone, gpus(readings))
	for _, g := range guards {
		guarded := func(md pmetric.Metrics) pmetric.Metrics {
			copied := pmetric.NewMetrics()
			md.CopyTo(copied)
			g.process(copied)
			return copied
		}
		g.epoch()
		first, second := seriesOf(guarded(result.Series)), seriesOf(guarded(result.Series))
		// Prometheus shows what only the first one had for metric_expiration, too.
		shown := maps.Clone(second)
		for of, value := range first {
			if of.metric != lastStep {
				shown[of] = value
			}
		}
		g.epoch()
		assert.Equal(t, alone, seriesOf(guarded(result.Series)), "in the next epoch nothing is new: %s", g.name)

		g.epoch()
		var read []pmetric.Metrics
		for i, md := range slices.Concat(readings, readings) {
			if md = guarded(md); i >= len(readings) {
				read = append(read, md)
			}
		}
		row(g.name, shown, gpus(read))
		if g.never != nil {
			assert.Equal(t, alone, shown)
		}
	}
	documents.CheckTable(t, harness.Path("docs", "replace-contrib-and-dcgm.md"), "guardian", table, *update)
}

// lastStep is a gauge of each run.
const lastStep = "ml.run.last_step.timestamp"

// series are those that Prometheus shows: the number of each by metric and labels.
type series map[seriesKey]int64

type seriesKey struct{ metric, labels, run string }

// steps is what sum(ml_steps_total) gives.
func (s series) steps() (n int64) {
	for of, value := range s {
		if of.metric == "ml.steps" {
			n += value
		}
	}
	return n
}

// runs is the number of runs of which the last step is known.
func (s series) runs() int {
	runs := make(map[string]bool)
	for of := range s {
		if of.metric == lastStep && of.run != "" && of.run != sentinel {
			runs[of.run] = true
		}
	}
	return len(runs)
}

// seriesOf returns the series of a flush.
func seriesOf(md pmetric.Metrics) series {
	all := make(series)
	eachMetric(md, func(resource string, m pmetric.Metric) {
		add := func(labels pcommon.Map, value int64) {
			run, _ := labels.Get(mlattr.RunID)
			all[seriesKey{m.Name(), resource + fmt.Sprint(labels.AsRaw()), run.Str()}] = value
		}
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				add(p.Attributes(), 0)
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				add(p.Attributes(), p.IntValue())
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				add(p.Attributes(), 0)
			}
		}
	})
	return all
}

// gpus is the number of GPUs that gauges name.
func gpus(readings []pmetric.Metrics) int {
	ids := make(map[string]bool)
	for _, md := range readings {
		eachMetric(md, func(_ string, m pmetric.Metric) {
			if m.Type() != pmetric.MetricTypeGauge {
				return
			}
			for _, p := range m.Gauge().DataPoints().All() {
				if id, ok := p.Attributes().Get("hw.id"); ok && id.Str() != sentinel {
					ids[id.Str()] = true
				}
			}
		})
	}
	return len(ids)
}

// aFleet returns what a healthy fleet sends.
func aFleet(t *testing.T) (spans []ptrace.Traces, readings []pmetric.Metrics) {
	t.Helper()
	s := fleet.New(scenario.Settings{Seed: 1, Rate: 1, Ranks: 1, MetricsInterval: time.Minute}, fleet.Size{Runs: 120, Ranks: 1, GPUs: 160})
	at := time.Unix(1_700_000_000, 0)
	for step := range 120 {
		at = at.Add(time.Second)
		batches := s.Step(at)
		if step == 119 {
			batches = append(batches, s.Finish(at)...)
		}
		for _, b := range batches {
			switch b.Signal {
			case sentlog.SignalTraces:
				spans = append(spans, b.Traces)
			case sentlog.SignalMetrics:
				readings = append(readings, b.Metrics)
			}
		}
	}
	return spans, readings
}
