package mlsampleprocessor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadatatest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// shutdown ends a component within its test.
func shutdown(t *testing.T, c component.Component) {
	t.Helper()
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestShutdownDecidesAndSendsEverything(t *testing.T) {
	sink := new(consumertest.TracesSink)
	cfg := only(sample.Steps{First: 3})
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	l := &loop{run: "llama", ranks: 2, clock: time.Now()}
	for range 5 {
		require.NoError(t, p.ConsumeTraces(t.Context(), l.take(time.Second, nil)))
	}
	assert.Zero(t, sink.SpanCount())
	shutdown(t, p)
	assert.Equal(t, 3*2*5, sink.SpanCount())
}

func TestTheIncomingSpansAreNeitherChangedNorKept(t *testing.T) {
	b := newBed(t, only(sample.Steps{First: 1}))
	l := &loop{run: "llama", ranks: 2, clock: begun}
	td := l.take(time.Second, nil)
	td.MarkReadOnly()
	require.False(t, b.Capabilities().MutatesData)
	b.consume(t, td)
	spans := b.end(t)
	require.Len(t, spans, 10)
	original := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, int64(-1), countOf(original))
	assert.Equal(t, original.Attributes().Len()+1, spans[0].Attributes().Len())
}

// instance returns a logs or metrics instance beside the traces instance.
func (b *bed) instance() *watch {
	beside := new(instances)
	beside.samplers.Store(b.sampler, nil)
	return &watch{of: instancesOfID{Shared: beside}}
}

func TestAProblemOrAnXIDReleasesTheStepsBeforeIt(t *testing.T) {
	for name, tt := range map[string]struct {
		record  func(record plog.LogRecord)
		release bool
	}{
		"a run looks hung": {func(record plog.LogRecord) {
			record.SetEventName("ml.problem")
			record.Attributes().PutStr("ml.run.id", "llama")
			record.Attributes().PutStr("ml.problem.state", "began")
		}, true},
		"its end": {func(record plog.LogRecord) {
			record.SetEventName("ml.problem")
			record.Attributes().PutStr("ml.run.id", "llama")
			record.Attributes().PutStr("ml.problem.state", "ended")
		}, false},
		"another run's": {func(record plog.LogRecord) {
			record.SetEventName("ml.problem")
			record.Attributes().PutStr("ml.run.id", "qwen")
			record.Attributes().PutStr("ml.problem.state", "began")
		}, false},
		"an XID on its host": {func(record plog.LogRecord) {
			record.SetEventName("nvidia.gpu.xid")
			record.Attributes().PutStr("host.name", "gpu-01")
		}, true},
		"an XID of the run's GPU": {func(record plog.LogRecord) {
			record.SetEventName("nvidia.gpu.xid")
			record.Attributes().PutStr("ml.run.id", "llama")
		}, true},
		"an XID elsewhere": {func(record plog.LogRecord) {
			record.SetEventName("nvidia.gpu.xid")
			record.Attributes().PutStr("host.name", "gpu-02")
		}, false},
		"another record": {func(record plog.LogRecord) {
			record.Attributes().PutStr("ml.run.id", "llama")
			record.Attributes().PutStr("ml.problem.state", "began")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, only(sample.Steps{Before: 3}))
			l := &loop{run: "llama", ranks: 2, numbers: true, clock: begun}
			for range 50 {
				b.consume(t, l.take(time.Second, nil))
				b.pass(t, time.Second)
			}
			b.pass(t, 10*time.Minute) // the run hangs
			ld := plog.NewLogs()
			tt.record(ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
			_, err := b.instance().processLogs(t.Context(), ld)
			require.NoError(t, err)
			want := map[int64]int{}
			if tt.release {
				want = map[int64]int{48: 10, 49: 10, 50: 10}
			}
			spans := b.end(t)
			assert.Equal(t, want, stepsOf(t, spans))
			for _, span := range spans {
				assert.Zero(t, countOf(span), "the sample stands for them already")
			}
		})
	}
}

// A traces and a logs instance of one component id find each other, in whatever order
// they start.
func TestTheInstancesOfAnIDAreJoined(t *testing.T) {
	factory := NewFactory()
	set := processortest.NewNopSettings(metadata.Type)
	cfg := only(sample.Steps{Before: 3})
	logs, err := factory.CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	sink := new(consumertest.TracesSink)
	traces, err := factory.CreateTraces(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	l := &loop{run: "llama", ranks: 1, numbers: true, clock: time.Now()}
	for range 5 {
		require.NoError(t, traces.ConsumeTraces(t.Context(), l.take(time.Second, nil)))
	}
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("ml.problem")
	record.Attributes().PutStr("ml.run.id", "llama")
	record.Attributes().PutStr("ml.problem.state", "began")
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	shutdown(t, traces)
	shutdown(t, logs)
	assert.Equal(t, 3*5, sink.SpanCount())
}

func TestDryRunPassesEverythingAndCountsWhatItWouldKeep(t *testing.T) {
	for _, dry := range []bool{true, false} {
		tel := componenttest.NewTelemetry()
		set := processortest.NewNopSettings(metadata.Type)
		set.ID = component.NewID(metadata.Type)
		set.TelemetrySettings = tel.NewTelemetrySettings()
		cfg := only(sample.Steps{First: 3})
		cfg.DryRun = dry
		sink := new(consumertest.TracesSink)
		p, err := NewFactory().CreateTraces(t.Context(), set, cfg, sink)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		l := &loop{run: "llama", ranks: 2, numbers: true, clock: time.Now()}
		for range 10 {
			require.NoError(t, p.ConsumeTraces(t.Context(), l.take(time.Second, nil)))
		}
		shutdown(t, p)
		if dry {
			assert.Equal(t, 10*2*5, sink.SpanCount())
		} else {
			assert.Equal(t, 3*2*5, sink.SpanCount())
		}
		id := attribute.String("processor", "ml_sample")
		metadatatest.AssertEqualProcessorMlSampleSpans(t, tel, []metricdata.DataPoint[int64]{
			{Value: 3 * 2 * 5, Attributes: attribute.NewSet(id, attribute.String("outcome", "kept"))},
			{Value: 7 * 2 * 5, Attributes: attribute.NewSet(id, attribute.String("outcome", "dropped"))},
		}, metricdatatest.IgnoreTimestamp())
		metadatatest.AssertEqualProcessorMlSampleUnits(t, tel, []metricdata.DataPoint[int64]{
			{Value: 3 * 2, Attributes: attribute.NewSet(id, attribute.String("kind", "step"), attribute.String("reason", "first"))},
			{Value: 7 * 2, Attributes: attribute.NewSet(id, attribute.String("kind", "step"), attribute.String("reason", "dropped"))},
		}, metricdatatest.IgnoreTimestamp())
		require.NoError(t, tel.Shutdown(t.Context()))
	}
}

// What the next component refuses for now is sent again; what it refuses for good is
// lost.
func TestWhatIsRefused(t *testing.T) {
	for _, permanent := range []bool{false, true} {
		b := newBed(t, only(sample.Steps{First: 3}))
		refuse := errors.New("full")
		if permanent {
			refuse = consumererror.NewPermanent(refuse)
		}
		sink := b.next
		b.next = consumertest.NewErr(refuse)
		l := &loop{run: "llama", ranks: 2, numbers: true, clock: begun}
		for range 10 {
			b.consume(t, l.take(time.Second, nil))
			b.pass(t, time.Second)
		}
		b.pass(t, b.cfg.Wait)
		b.next = sink
		want := 3 * 2 * 5
		if permanent {
			want = 0
		}
		assert.Len(t, b.end(t), want)
	}
}

func TestNotices(t *testing.T) {
	cfg := only(sample.Steps{First: 10})
	cfg.MaxBytes = 1 << 20
	b := newBed(t, cfg)
	host := new(statetest.Host)
	b.withdraw = shared.StateOf(host).PublishNotices(b.id.String(), b.notices)
	b.next = consumertest.NewErr(consumererror.NewPermanent(errors.New("no")))
	l := &loop{run: "llama", ranks: 4, numbers: true, clock: begun}
	for range 300 {
		b.consume(t, l.take(10*time.Millisecond, nil))
	}
	b.pass(t, cfg.Wait)
	b.count(t.Context())
	published := make(map[string]shared.Notice)
	for _, notice := range host.State().Notices()["ml_sample"] {
		published[notice.Key] = notice
	}
	assert.Equal(t, int64(10*4*5), published["refused"].Count)
	assert.Positive(t, published["early"].Count)
	assert.Equal(t, "ml_sample: {max_bytes: 2097152}", published["early"].Fix)
	assert.NotContains(t, published, "overflow")
}

// blocking is a consumer that returns when its context ends.
type blocking struct{ entered chan struct{} }

func (b *blocking) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (b *blocking) ConsumeTraces(ctx context.Context, _ ptrace.Traces) error {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// A next component that blocks delays no client, and no shutdown beyond its context.
func TestNothingBlocks(t *testing.T) {
	b := newBed(t, only(sample.Steps{First: 1}))
	next := &blocking{entered: make(chan struct{}, 1)}
	b.next = next
	b.now = time.Now
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.Attributes().PutStr("ml.phase", "train")
	b.consume(t, td)
	<-next.entered
	l := &loop{run: "llama", ranks: 2, numbers: true, clock: time.Now()}
	b.consume(t, l.take(time.Second, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, b.Shutdown(ctx))
	assert.Zero(t, b.sampler.Bytes())
}

func TestConcurrentRequests(t *testing.T) {
	sink := new(consumertest.TracesSink)
	cfg := defaults()
	cfg.Steps.OneIn = 1
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			l := &loop{run: "llama", ranks: 2, numbers: true, clock: begun, ids: uint64(sender) << 32}
			for range 50 {
				assert.NoError(t, p.ConsumeTraces(t.Context(), l.take(time.Second, nil)))
			}
		})
	}
	senders.Wait()
	shutdown(t, p)
	assert.Equal(t, 8*50*2*5, sink.SpanCount())
}
