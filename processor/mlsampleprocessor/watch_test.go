package mlsampleprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// exemplarsOf returns metrics of each type that has exemplars, with one of each span.
func exemplarsOf(td ptrace.Traces) pmetric.Metrics {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, exemplars := range []pmetric.ExemplarSlice{
		metrics.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty().Exemplars(),
		metrics.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().Exemplars(),
		metrics.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().Exemplars(),
		metrics.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Exemplars(),
	} {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					e := exemplars.AppendEmpty()
					e.SetTraceID(span.TraceID())
					e.SetSpanID(span.SpanID())
					e.SetTimestamp(span.EndTimestamp())
				}
			}
		}
	}
	metrics.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
	return md
}

// remaining returns the number of exemplars that a metrics instance passes on, of each
// metric.
func (b *bed) remaining(t *testing.T, w *watch, td ptrace.Traces) int {
	t.Helper()
	md, err := w.processMetrics(t.Context(), exemplarsOf(td))
	require.NoError(t, err)
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	n := metrics.At(0).Sum().DataPoints().At(0).Exemplars().Len()
	assert.Equal(t, n, metrics.At(1).Gauge().DataPoints().At(0).Exemplars().Len())
	assert.Equal(t, n, metrics.At(2).Histogram().DataPoints().At(0).Exemplars().Len())
	assert.Equal(t, n, metrics.At(3).ExponentialHistogram().DataPoints().At(0).Exemplars().Len())
	return n
}

// Exemplars of steps that are dropped, now or when they have waited, are removed.
func TestExemplarsOfSteps(t *testing.T) {
	for _, before := range []int{0, 1} { // without and with dropped steps in memory
		b := newBed(t, only(sample.Steps{First: 2, Before: before}))
		w := b.instance()
		l := &loop{run: "llama", ranks: 2, numbers: true, clock: begun}
		var steps []ptrace.Traces
		for range 4 {
			steps = append(steps, l.take(time.Second, nil))
			b.consume(t, steps[len(steps)-1])
		}
		for range 2 { // while they wait, and after
			assert.Equal(t, 10, b.remaining(t, w, steps[0]))
			assert.Equal(t, 10, b.remaining(t, w, steps[1]))
			assert.Zero(t, b.remaining(t, w, steps[2]))
			assert.Zero(t, b.remaining(t, w, steps[3]))
			b.pass(t, 2*b.cfg.Wait)
		}
		w.dryRun = true
		assert.Equal(t, 10, b.remaining(t, w, steps[2]))
	}
}

// A process with one trace for its life has kept and dropped steps in it.
func TestExemplarsOfAStepWithinALongTrace(t *testing.T) {
	b := newBed(t, only(sample.Steps{First: 2}))
	l := &loop{run: "llama", ranks: 1, numbers: true, clock: begun}
	oneTrace := func(_ int, span ptrace.Span) { span.SetTraceID([16]byte{7}) }
	first, second, third := l.take(time.Second, oneTrace), l.take(time.Second, oneTrace), l.take(time.Second, oneTrace)
	for _, td := range []ptrace.Traces{first, second, third} {
		b.consume(t, td)
	}
	w := b.instance()
	assert.Equal(t, 5, b.remaining(t, w, first))
	assert.Equal(t, 5, b.remaining(t, w, second))
	assert.Zero(t, b.remaining(t, w, third))
}

// Exemplars of slow calls, and of spans that another collector has, remain.
func TestExemplarsOfCalls(t *testing.T) {
	cfg := only(sample.Steps{})
	cfg.Calls = sample.Calls{OneIn: maxOneIn, Slow: 3}
	b := newBed(t, cfg)
	w := b.instance()
	s := &service{name: "agent"}
	usual := s.call(b.clock, time.Second, "", nil)
	assert.Equal(t, 2, b.remaining(t, w, usual), "no span of it came")
	for range 100 {
		b.pass(t, time.Second)
		usual = s.call(b.clock, time.Second, "", nil)
		b.consume(t, usual)
	}
	slow := s.call(b.clock, 10*time.Second, "", nil)
	b.consume(t, slow)
	for range 2 {
		assert.Zero(t, b.remaining(t, w, usual))
		assert.Equal(t, 2, b.remaining(t, w, slow))
		b.pass(t, 2*b.cfg.Wait)
	}
}

// A validation is always kept, also within a long trace whose steps are not.
func TestExemplarsOfWhatIsKeptAlone(t *testing.T) {
	b := newBed(t, only(sample.Steps{}))
	w := b.instance()
	l := &loop{run: "llama", ranks: 1, numbers: true, clock: begun}
	oneTrace := func(_ int, span ptrace.Span) { span.SetTraceID([16]byte{7}) }
	step := l.take(time.Second, oneTrace)
	b.consume(t, step)
	validation := l.take(time.Second, oneTrace)
	n := 0
	validation.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool { n++; return n > 1 })
	validation.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr("ml.phase", "validation")
	b.consume(t, validation)
	for range 2 {
		assert.Equal(t, 1, b.remaining(t, w, validation))
		assert.Zero(t, b.remaining(t, w, step))
		b.pass(t, 2*b.cfg.Wait)
	}

	s := &service{name: "agent"}
	calls := warmed(t, onlyCalls(sample.Calls{}), s)
	dropped := s.call(calls.clock, time.Second, "", nil)
	calls.consume(t, dropped)
	calls.pass(t, 2*calls.cfg.Wait)
	late := s.call(calls.clock, time.Second, "", func(root, chat ptrace.Span) {
		for _, span := range []ptrace.Span{root, chat} {
			span.SetTraceID(dropped.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID())
			span.SetSpanID([8]byte{77, byte(len(span.Name()))})
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	})
	calls.consume(t, late)
	assert.Equal(t, 2, calls.remaining(t, calls.instance(), late))
	assert.Zero(t, calls.remaining(t, calls.instance(), dropped))
}

// An exemplar of a step that is not remembered any more remains.
func TestExemplarsOfForgottenSteps(t *testing.T) {
	cfg := only(sample.Steps{First: 2})
	cfg.Wait = time.Second
	b := newBed(t, cfg)
	l := &loop{run: "llama", ranks: 1, numbers: true, clock: begun}
	var first ptrace.Traces
	for i := range 300 {
		td := l.take(50*time.Millisecond, nil)
		if i == 0 {
			first = td
		}
		b.consume(t, td)
		b.pass(t, 50*time.Millisecond)
	}
	assert.Equal(t, 5, stepsOf(t, b.sent())[1])
	assert.Equal(t, 5, b.remaining(t, b.instance(), first))
}
