package spans

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// event is one of a span.
type event struct {
	name  string
	attrs map[string]any
}

// readEvents reads a span of a client with events.
func readEvents(t *testing.T, service string, events ...event) *Reader {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{1})
	span.SetSpanID([8]byte{1})
	span.SetStartTimestamp(10)
	span.SetEndTimestamp(20)
	for _, each := range events {
		event := span.Events().AppendEmpty()
		event.SetName(each.name)
		require.NoError(t, event.Attributes().FromRaw(each.attrs))
	}
	r := New(Options{})
	r.Read(t.Context(), td, Request{Now: time.Unix(0, 30), Loads: new(processes.Loads)})
	return r
}

// ids are the series of the updates.
func ids(r *Reader) (all []series.ID) {
	for _, up := range r.Updates() {
		all = append(all, up.Series)
	}
	return all
}

// An event of a step has the numbers of its run, one of an inference has none. A size that is
// there by both its names counts once.
func TestStepAndInference(t *testing.T) {
	attrs := map[string]any{
		"loss": 0.5, "ml.loss": math.NaN(), "learning_rate": 0.1, "epoch": 3,
		"batch_size": 8, "ml.batch.size": 8, "tokens_per_second": 100.0, "model": "m",
	}
	step := readEvents(t, "snakepit", event{"snakepit.ml.train_step", attrs})
	assert.ElementsMatch(t, []series.ID{series.Loss, series.Nonfinite, series.LearningRate, series.Epoch}, ids(step))
	inference := readEvents(t, "snakepit", event{"snakepit.ml.inference", attrs})
	assert.ElementsMatch(t, []series.ID{series.RequestTokenThroughput, series.Requests}, ids(inference))
	for _, r := range []*Reader{step, inference} {
		require.Len(t, r.units, 1)
		assert.Equal(t, int64(8), r.units[0].samples)
	}
	again := readEvents(t, "snakepit", event{"snakepit.ml.train_step", attrs}, event{"snakepit.ml.train_step", attrs})
	assert.Equal(t, int64(16), again.units[0].samples, "of two events")
}

// Of several events with numbers, the first loss is what is trained on, and the values that
// are not finite count with it. The learning rate is the first one, too.
func TestNumbersOfSeveralEvents(t *testing.T) {
	const name = "nv.dl.training.objective"
	is := func(attrs map[string]any) event { return event{name, attrs} }
	loss, rate := is(map[string]any{"ml.loss": 0.5}), is(map[string]any{"ml.learning_rate": 0.1})
	metric := is(map[string]any{"ml.val.accuracy": math.NaN()})
	for _, tt := range []struct {
		events []event
		want   []series.ID
	}{
		{[]event{loss, loss}, []series.ID{series.Loss}},
		{[]event{rate, rate}, []series.ID{series.LearningRate}},
		{[]event{loss, rate}, []series.ID{series.Loss, series.LearningRate}},
		{[]event{is(map[string]any{"ml.loss": math.NaN()}), is(map[string]any{"ml.loss": math.Inf(1)})}, []series.ID{series.Nonfinite}},
		{[]event{metric, loss}, []series.ID{series.Nonfinite, series.Loss}},
		{[]event{loss, metric}, []series.ID{series.Loss}},
		{[]event{rate, is(map[string]any{"ml.learning_rate": math.NaN()})}, []series.ID{series.LearningRate, series.Nonfinite}},
	} {
		assert.ElementsMatch(t, tt.want, ids(readEvents(t, "nemo-lens", tt.events...)), "%v", tt.events)
	}
}

// A request's spans have their order before Tally takes its lock, for which others wait.
func TestOrderBeforeTheLock(t *testing.T) {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range byte(3) {
		span := all.AppendEmpty()
		span.SetName("snakepit.grpc.call")
		span.SetTraceID([16]byte{1})
		span.SetSpanID([8]byte{i + 1})
		span.SetStartTimestamp(10)
		span.SetEndTimestamp(pcommon.Timestamp(20 - i))
	}
	r := New(Options{})
	r.Read(t.Context(), td, Request{Now: time.Unix(0, 30), Loads: new(processes.Loads)})
	var want bound.Order
	want.Sort(r.times)
	assert.Len(t, want, 3)
	assert.Equal(t, want, r.order)
	require.True(t, r.Reset())
	assert.Empty(t, r.order)
}
