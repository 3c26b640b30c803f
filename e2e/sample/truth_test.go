package sample_test

import (
	"cmp"
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor"
)

// world is ml_enrich and ml_sample in virtual time, between what mlgen sends and what
// is kept.
type world struct {
	telemetry      *componenttest.Telemetry
	enrich, sample processor.Traces
	sink           *consumertest.TracesSink
	sent           []span
	truth          sentlog.Truth
}

// span is a span with its resource.
type span struct {
	ptrace.Span
	resource pcommon.Map
}

func (s span) text(key string) string {
	for _, m := range []pcommon.Map{s.Attributes(), s.resource} {
		if v, ok := m.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
			return v.Str()
		}
	}
	return ""
}

func (s span) number(key string) int64 {
	for _, m := range []pcommon.Map{s.Attributes(), s.resource} {
		if v, ok := m.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
			return v.Int()
		}
	}
	return -1
}

// id is unique among all spans.
func (s span) id() string { return s.TraceID().String() + s.SpanID().String() }

func spansOf(all ...ptrace.Traces) (spans []span) {
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					spans = append(spans, span{s, rs.Resource().Attributes()})
				}
			}
		}
	}
	return spans
}

func newWorld(t *testing.T, change func(*mlsampleprocessor.Config)) *world {
	t.Helper()
	w := &world{telemetry: componenttest.NewTelemetry(), sink: new(consumertest.TracesSink)}
	factory := mlsampleprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig().(*mlsampleprocessor.Config)
	change(cfg)
	require.NoError(t, cfg.Validate())
	var err error
	set := settings(factory)
	set.TelemetrySettings = w.telemetry.NewTelemetrySettings()
	w.sample, err = factory.CreateTraces(t.Context(), set, cfg, w.sink)
	require.NoError(t, err)
	enrich := mlenrichprocessor.NewFactory()
	w.enrich, err = enrich.CreateTraces(t.Context(), settings(enrich), enrich.CreateDefaultConfig(), w.sample)
	require.NoError(t, err)
	for _, c := range []component.Component{w.sample, w.enrich} {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	return w
}

func settings(factory processor.Factory) processor.Settings {
	return processor.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo(),
	}
}

// play has a scenario take steps, and returns what was kept.
func (w *world) play(t *testing.T, s scenario.Scenario, steps int, every time.Duration) []span {
	t.Helper()
	for range steps {
		time.Sleep(every)
		w.deliver(t, s.Step(time.Now()))
	}
	w.deliver(t, s.Finish(time.Now()))
	require.NoError(t, w.enrich.Shutdown(context.WithoutCancel(t.Context())))
	require.NoError(t, w.sample.Shutdown(context.WithoutCancel(t.Context())))
	return spansOf(w.sink.AllTraces()...)
}

func (w *world) deliver(t *testing.T, batches []scenario.Batch) {
	t.Helper()
	for _, b := range batches {
		if b.Signal != sentlog.SignalTraces {
			continue
		}
		require.NoError(t, w.enrich.ConsumeTraces(t.Context(), b.Traces))
		w.sent = append(w.sent, spansOf(b.Traces)...) // ml_enrich only adds
		w.truth.Merge(b.Truth)
	}
}

// units returns the number of units by kind and reason.
func (w *world) units(t *testing.T) map[string]int64 {
	t.Helper()
	m, err := w.telemetry.GetMetric("otelcol_processor_ml_sample_units")
	require.NoError(t, err)
	units := make(map[string]int64)
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		kind, _ := p.Attributes.Value("kind")
		reason, _ := p.Attributes.Value("reason")
		units[kind.AsString()+" "+reason.AsString()] = p.Value
	}
	return units
}

// assertWhole asserts what must hold for everything that is kept: no span was lost or
// doubled on the way, no kept span lacks its parent, every failure is there, and the
// counts say how many there were, within three standard errors.
func assertWhole(t *testing.T, sent, kept []span, oneIn float64) {
	t.Helper()
	byID := make(map[string]span, len(sent))
	for _, s := range sent {
		byID[s.id()] = s
	}
	keptIDs := make(map[string]bool, len(kept))
	total := 0.0
	for _, s := range kept {
		if _, was := byID[s.id()]; !was || keptIDs[s.id()] {
			t.Errorf("%s was not sent, or is there twice", s.Name())
		}
		keptIDs[s.id()] = true
		count := float64(s.number("ml.sample.count"))
		total += count
	}
	orphans := make(map[string]int)
	for _, s := range kept {
		parent := s.TraceID().String() + s.ParentSpanID().String()
		if _, was := byID[parent]; was && !keptIDs[parent] {
			orphans[byID[parent].Name()+" > "+s.Name()]++
		}
	}
	assert.Empty(t, orphans, "kept spans whose parents are not")
	for _, s := range sent {
		if end, ok := s.Attributes().Get("ml.epoch_end"); ok && end.Bool() {
			continue
		}
		if s.Status().Code() == ptrace.StatusCodeError && !keptIDs[s.id()] {
			t.Errorf("%s failed and is missing", s.Name())
		}
	}
	deviation := standardError(sent, oneIn)
	assert.InDelta(t, len(sent), total, 3*deviation, "the number of spans by their counts")
	t.Logf("%d of %d spans kept, standing for %.0f with a standard error of %.0f", len(kept), len(sent), total, deviation)
}

// standardError returns that of a sum over spans if one in oneIn units is kept at random.
// Units are conversations, traces, and in long traces what begins within a second. It is
// too high where units are kept for other reasons.
func standardError(sent []span, oneIn float64) float64 {
	const long = 1000
	perTrace := make(map[string]int)
	for _, s := range sent {
		perTrace[s.TraceID().String()]++
	}
	units := make(map[string]float64)
	for _, s := range sent {
		unit := cmp.Or(s.text("gen_ai.conversation.id"), s.TraceID().String())
		if perTrace[unit] > long {
			unit = s.StartTimestamp().AsTime().Truncate(time.Second).String()
		}
		units[unit]++
	}
	squares := 0.0
	for _, n := range units {
		squares += n * n
	}
	return math.Sqrt(squares * (oneIn - 1))
}

// A fleet trains for hours: steps have numbers. One in 100 is kept.
func TestAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks, oneIn = 8, 100
		w := newWorld(t, func(*mlsampleprocessor.Config) {})
		s := fleet.New(scenario.Settings{Seed: 1, Rate: 0.5, Ranks: 1, MetricsInterval: time.Hour}, fleet.Size{Runs: 4, Ranks: ranks})
		kept := w.play(t, s, 15_000, 2*time.Second)
		assertWhole(t, w.sent, kept, oneIn)
		type step struct {
			run    string
			number int64
		}
		steps, keptSteps := make(map[step]int), make(map[step]int)
		for _, s := range w.sent {
			if n := s.number("ml.step"); n > 0 {
				steps[step{s.text("ml.run.id"), n}]++
			}
		}
		estimate := make(map[string]int64)
		for _, s := range kept {
			if n := s.number("ml.step"); n > 0 {
				of := step{s.text("ml.run.id"), n}
				keptSteps[of]++
				if s.text("ml.phase") == "optimizer" {
					estimate[of.run] += s.number("ml.sample.count")
				}
			}
		}
		for of, n := range keptSteps {
			assert.Equal(t, steps[of], n, "spans of a step of all ranks: %v", of)
		}
		require.NotEmpty(t, w.truth.Steps)
		for run, n := range w.truth.Steps {
			assert.InDelta(t, n*ranks, estimate[run], oneIn*ranks, "steps of %s", run)
		}
		t.Log(len(keptSteps), "of", len(steps), "steps", w.units(t))
	})
}

// The five systems, with all their peculiarities.
func TestTheScenarios(t *testing.T) {
	for _, name := range scenario.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const oneIn = 20
				w := newWorld(t, func(cfg *mlsampleprocessor.Config) { cfg.Steps.OneIn = oneIn; cfg.Calls.OneIn = oneIn })
				s, err := scenario.New(name, scenario.Settings{Seed: 1, Rate: 2, Ranks: 4, JobName: "local", MetricsInterval: time.Hour})
				require.NoError(t, err)
				kept := w.play(t, s, 2000, time.Second/2)
				assertWhole(t, w.sent, kept, oneIn)
				t.Log(w.units(t))
			})
		})
	}
}
