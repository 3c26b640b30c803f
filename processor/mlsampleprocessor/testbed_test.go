package mlsampleprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadata"
)

// begun is when the tests begin.
var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bed is a traces instance whose clock the test sets. It decides and sends only when
// the test says so.
type bed struct {
	*sampling
	clock time.Time
	sink  *consumertest.TracesSink
}

func newBed(t testing.TB, cfg *Config) *bed {
	t.Helper()
	require.NoError(t, cfg.Validate())
	b := &bed{clock: begun, sink: new(consumertest.TracesSink)}
	set := processortest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	var err error
	b.sampling, err = newSampling(set, cfg, b.sink, new(shared.Registry[*instances]).Use(set.ID, func() (*instances, error) { return new(instances), nil }))
	require.NoError(t, err)
	b.now = func() time.Time { return b.clock }
	t.Cleanup(b.telemetry.Shutdown)
	return b
}

func (b *bed) consume(t testing.TB, td ptrace.Traces) {
	t.Helper()
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
}

// pass lets time pass in steps in which a collector decides, too.
func (b *bed) pass(t testing.TB, d time.Duration) {
	t.Helper()
	for end := b.clock.Add(d); b.clock.Before(end); {
		b.clock = b.clock.Add(min(time.Second, end.Sub(b.clock)))
		if b.sampler.Tick(b.clock) {
			b.send(t.Context(), false)
		}
	}
}

// end decides everything and returns what was sent.
func (b *bed) end(t testing.TB) []ptrace.Span {
	t.Helper()
	b.sampler.DecideAll(b.clock)
	b.send(t.Context(), false)
	require.Zero(t, b.sampler.Bytes(), "memory that nothing needs any more")
	return b.sent()
}

// sent returns the spans that were sent.
func (b *bed) sent() (spans []ptrace.Span) {
	for _, td := range b.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

// countOf returns the ml.sample.count of a span, or -1.
func countOf(span ptrace.Span) int64 {
	if v, ok := span.Attributes().Get("ml.sample.count"); ok && v.Type() == pcommon.ValueTypeInt {
		return v.Int()
	}
	return -1
}

func defaults() *Config { return createDefaultConfig().(*Config) }
