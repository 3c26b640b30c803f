package mlmetricsconnector

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// attributesOf returns the attributes of all points of a metric.
func attributesOf(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	default:
		for _, p := range m.Gauge().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}

// TestInstanceLabel sends everything that is known of clients here. With the label
// every series has it.
func TestInstanceLabel(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.txt"))
	require.NoError(t, err)
	for _, input := range inputs {
		folders = append(folders, filepath.Dir(input))
	}
	seen := map[string]bool{}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			set := connectortest.NewNopSettings(metadata.Type)
			set.Resource.Attributes().PutStr("service.instance.id", "gateway-1")
			cfg := configOf(t, folder)
			cfg.InstanceLabel = "collector_instance_id"
			require.NoError(t, cfg.Validate())
			next := new(consumertest.MetricsSink)
			c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, cfg, next)
			require.NoError(t, err)
			require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
			for _, request := range requestsOf(t, folder) {
				require.NoError(t, c.ConsumeTraces(t.Context(), request))
			}
			require.NoError(t, c.Shutdown(t.Context()))
			for _, md := range next.AllMetrics() {
				for m := range metricsOf(md) {
					seen[m.Name()] = true
					for _, attrs := range attributesOf(m) {
						require.Equal(t, "gateway-1", attrs.AsRaw()["collector_instance_id"], m.Name())
					}
				}
			}
		})
	}
	// The others are about GPUs and problems: TestEverySeriesHasItsWriter.
	assert.Greater(t, len(seen), int(series.Count)*3/4)
}

// Records have the label beside what they say: their resource is the program that
// they are about.
func TestInstanceLabelOfRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory, cfg := NewFactory(), createDefaultConfig().(*Config)
		cfg.FlushInterval, cfg.InstanceLabel = time.Second, "collector.id"
		set, host := connectortest.NewNopSettings(metadata.Type), componenttest.NewNopHost()
		set.Resource.Attributes().PutStr("service.instance.id", "gateway-1")
		logs := new(consumertest.LogsSink)
		metrics, err := factory.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		records, err := factory.CreateTracesToLogs(t.Context(), set, cfg, logs)
		require.NoError(t, err)
		require.NoError(t, metrics.Start(t.Context(), host))
		require.NoError(t, records.Start(t.Context(), host))
		for n := range uint16(6) {
			td := chat("agent", n)
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.version", []string{"1", "2"}[n/3])
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(2)
			require.NoError(t, metrics.ConsumeTraces(t.Context(), td))
			time.Sleep(3 * time.Second)
		}
		require.NoError(t, records.Shutdown(t.Context()))
		require.NoError(t, metrics.Shutdown(t.Context()))
		events := map[string]bool{}
		for _, ld := range logs.AllLogs() {
			for _, rl := range ld.ResourceLogs().All() {
				assert.NotContains(t, rl.Resource().Attributes().AsRaw(), "collector.id")
				for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
					events[record.EventName()] = true
					assert.Equal(t, "gateway-1", record.Attributes().AsRaw()["collector.id"])
				}
			}
		}
		assert.Equal(t, map[string]bool{"ml.problem": true, "ml.change": true}, events)
	})
}

func TestInstanceLabelsThatAreRefused(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	for _, name := range []string{"collector_instance_id", "collector.instance.id", "replica", "k8s.pod.uid"} {
		cfg.InstanceLabel = name
		require.NoError(t, cfg.Validate(), name)
	}
	for _, name := range []string{"1", "_id", "collector-id", "collector id", "a\nb", "größe", strings.Repeat("a", 129)} {
		cfg.InstanceLabel = name
		require.ErrorContains(t, cfg.Validate(), `must be empty or a letter followed by letters, digits, "_" and ".", at most 128`, name)
	}
	taken := []string{"job", "instance", "le", "service.name", "service_name", "service_namespace", "ml.run.id", "ml_run_id", "ml.problem.id", "otel.scope.name", series.Overflow}
	taken = append(taken, series.RunLabels...)
	for i := range series.All {
		taken = append(taken, series.All[i].Labels...)
	}
	for _, name := range taken {
		cfg.InstanceLabel = name
		require.EqualError(t, cfg.Validate(), `"instance_label" is "`+name+`", must not be a label that series have, nor begin with ml or otel`)
	}
}

// A collector without an id cannot have the label.
func TestInstanceLabelNeedsAnID(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.InstanceLabel = "collector_instance_id"
	for _, id := range []any{nil, ""} {
		set := connectortest.NewNopSettings(metadata.Type)
		if id != nil {
			require.NoError(t, set.Resource.Attributes().PutEmpty("service.instance.id").FromRaw(id))
		}
		c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err, "validate knows of no id")
		require.EqualError(t, c.Start(t.Context(), componenttest.NewNopHost()), `"instance_label" is "collector_instance_id", but the collector has no service.instance.id: set it under service::telemetry::resource`)
		require.NoError(t, c.Shutdown(t.Context()))
	}
}
