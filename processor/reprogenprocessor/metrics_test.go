package reprogenprocessor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadatatest"
)

func ofProcessor(id string) attribute.Set {
	return attribute.NewSet(attribute.String("processor", id))
}

// TestMetricsNameTheirProcessor: two processors in one collector are told
// apart, and the instances of one id report what they share once.
func TestMetricsNameTheirProcessor(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	factory := NewFactory()
	start := func(id component.ID) {
		cfg := testConfig(t)
		cfg.limits.queue = 3
		cfg.Retention.MaxArtifacts = 2
		set := metadatatest.NewSettings(tel)
		set.ID = id
		logs, err := factory.CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
		traces, err := factory.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, logs.Shutdown(context.Background())) })
		t.Cleanup(func() { require.NoError(t, traces.Shutdown(context.Background())) })
		many := ptrace.NewTraces() // more than is looked at
		for range detect.MaxFailures + 1 {
			mean().appendTo(many)
		}
		require.NoError(t, traces.ConsumeTraces(t.Context(), many))
		for i := range 100 { // enough for each other counter
			f := mean()
			f.message, f.trace, f.errorType = "password=hunter2hunter2", byte(i+1), "E"+strings.Repeat("x", i/10)
			f.span, f.parent = 2, 1
			require.NoError(t, traces.ConsumeTraces(t.Context(), f.traces()))
		}
		r := traces.(*instance).Shared
		require.Eventually(t, func() bool { return r.incidents.Sizes().Reserved == 0 && r.writer.working.Load() == 0 }, 30*time.Second, 10*time.Millisecond)
	}
	one, other := component.NewIDWithName(metadata.Type, "one"), component.NewIDWithName(metadata.Type, "other")
	start(one)
	start(other)

	points := map[string]map[string]int{}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var all metricdata.ResourceMetrics
		if !assert.NoError(c, tel.Reader.Collect(t.Context(), &all)) {
			return
		}
		clear(points)
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				points[m.Name] = map[string]int{}
				for _, set := range attributesOf(m) {
					id, _ := set.Value("processor")
					points[m.Name][id.AsString()]++
				}
			}
		}
		assert.Len(c, points, 11, "every metric of metadata.yaml")
		for name, ids := range points {
			assert.Len(c, ids, 2, name)
			assert.Positive(c, ids[one.String()], name)
			assert.Positive(c, ids[other.String()], name)
		}
	}, 30*time.Second, 10*time.Millisecond)
	for _, gauge := range []string{"queue_length", "groups", "disk_usage", "traces"} {
		assert.Equal(t, map[string]int{one.String(): 1, other.String(): 1}, points["otelcol_processor_repro_gen_"+gauge])
	}
}

func attributesOf(m metricdata.Metrics) (sets []attribute.Set) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	}
	return sets
}
