package reprogenprocessor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadatatest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// stuckDisk never finishes a write until it is freed.
type stuckDisk struct {
	entered chan struct{}
	free    chan struct{}
	mu      sync.Mutex
	err     error // of each write
	written int
	summary map[string]store.Group
}

func newStuckDisk() *stuckDisk {
	return &stuckDisk{entered: make(chan struct{}, 100), free: make(chan struct{}), summary: map[string]store.Group{}}
}

func (d *stuckDisk) Write(string, string, share.Origin, []store.File) error {
	d.entered <- struct{}{}
	<-d.free
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.written++
	}
	return d.err
}

func (d *stuckDisk) WriteGroup(g store.Group) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.summary[g.Fingerprint] = g
	return nil
}

func (*stuckDisk) Add(string, string, []store.File) error { return errors.New("stuck") }

func (*stuckDisk) Bytes() int64 { return 0 }
func (*stuckDisk) Close() error { return nil }

func (*stuckDisk) Enforce(time.Time, func(share.Origin) share.Path) ([]store.Artifact, error) {
	return nil, errors.New("stuck")
}

// startOn starts a processor that writes to d, one artifact at a time.
func startOn(t *testing.T, cfg *Config, d disk) (*instance, *consumertest.TracesSink, *componenttest.Telemetry) {
	cfg.limits.workers = 1
	return startWith(t, cfg, d)
}

func startWith(t *testing.T, cfg *Config, d disk) (*instance, *consumertest.TracesSink, *componenttest.Telemetry) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	sink := &consumertest.TracesSink{}
	p := &instance{traces: sink, Use: new(shared.Registry[*recorder]).Use(set.ID, func() (*recorder, error) {
		r, err := newRecorder(cfg, kinds(), set.ID, set.TelemetrySettings)
		if err == nil {
			r.writer.disk = d
		}
		return r, err
	})}
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	return p, sink, tel
}

func dropped(t *testing.T, tel *componenttest.Telemetry) map[string]int64 {
	out := map[string]int64{}
	got, err := tel.GetMetric("otelcol_processor_repro_gen_dropped")
	require.NoError(t, err)
	for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		out[reason.AsString()] = p.Value
	}
	return out
}

func unlike(i int) failedCall {
	return failedCall{errorType: "E" + string(rune('a'+i)), trace: byte(i + 1)}
}

func TestFullQueueDropsArtifactsAndNoTelemetry(t *testing.T) {
	cfg := testConfig(t)
	cfg.limits.queue = 2
	d := newStuckDisk()
	p, sink, tel := startOn(t, cfg, d)
	require.NoError(t, p.ConsumeTraces(t.Context(), unlike(0).traces()))
	<-d.entered // the writing goroutine is busy with the first
	for i := 1; i < 10; i++ {
		require.NoError(t, p.ConsumeTraces(t.Context(), unlike(i).traces()))
	}
	assert.Equal(t, 10, sink.SpanCount(), "nothing waits for the disk")
	assert.Equal(t, map[string]int64{"queue_full": 7}, dropped(t, tel))
	got, err := tel.GetMetric("otelcol_processor_repro_gen_queue_length")
	require.NoError(t, err)
	assert.EqualValues(t, 2, got.Data.(metricdata.Gauge[int64]).DataPoints[0].Value)
	for i, td := range sink.AllTraces() {
		_, ok := spans(td)[0].Attributes().Get("repro.artifact.path")
		assert.Equal(t, i < 3, ok, "span %d: what found no room leads nowhere", i)
	}
	close(d.free)
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 3, d.written, "what was queued is written")
	assert.Len(t, d.summary, 3)
}

func TestShutdownHonoursItsDeadline(t *testing.T) {
	cfg := testConfig(t)
	d := newStuckDisk()
	p, _, tel := startOn(t, cfg, d)
	for i := range 5 {
		require.NoError(t, p.ConsumeTraces(t.Context(), unlike(i).traces()))
	}
	<-d.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, p.Shutdown(ctx), "before all artifacts were written")
	close(d.free)
	require.NoError(t, p.Shared.ending.Do(t.Context(), nil))
	assert.Equal(t, map[string]int64{"shutdown": 4}, dropped(t, tel))
	assert.Equal(t, 1, d.written)
	require.NoError(t, p.Shutdown(t.Context()), "a second time does nothing")
}

// TestSuppressedIsCounted: an artifact that was not written shows in its
// group, once the group has a file.
func TestSuppressedIsCounted(t *testing.T) {
	cfg := testConfig(t)
	cfg.limits.queue = 1
	d := newStuckDisk()
	p, _, _ := startOn(t, cfg, d)
	send := func(trace byte) {
		f := mean().variant(int(trace))
		f.trace = trace
		require.NoError(t, p.ConsumeTraces(t.Context(), f.traces()))
	}
	send(1)
	<-d.entered
	send(2) // waits
	send(3) // finds the queue full
	close(d.free)
	require.NoError(t, p.Shutdown(t.Context()))
	require.Len(t, d.summary, 1)
	for _, g := range d.summary {
		assert.EqualValues(t, 3, g.Count)
		assert.EqualValues(t, 1, g.Suppressed)
		assert.Len(t, g.Exemplars, 2)
	}
}

func TestQueuedBytesAreBounded(t *testing.T) {
	cfg := testConfig(t)
	d := newStuckDisk()
	p, sink, tel := startOn(t, cfg, d)
	for i := range 40 {
		f := unlike(i % 26)
		f.trace = byte(i + 1)
		f.errorType += string(rune('a' + i/26))
		f.payload = call("json", "dumps", `["`+longText(200<<10)+`"]`, "{}")
		require.NoError(t, p.ConsumeTraces(t.Context(), f.traces()))
	}
	assert.Equal(t, 40, sink.SpanCount())
	assert.Positive(t, dropped(t, tel)["memory_limit"])
	assert.LessOrEqual(t, p.Shared.incidents.Sizes().Bytes, cfg.limits.bytes)
	close(d.free)
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Zero(t, p.Shared.incidents.Sizes().Reserved)
}

func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}

func TestShutdownWithoutStart(t *testing.T) {
	p, err := NewFactory().CreateTraces(t.Context(), metadatatest.NewSettings(componenttest.NewTelemetry()), testConfig(t), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
}
