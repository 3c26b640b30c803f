package mlguardprocessor_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadatatest"
)

func loadContent(t *testing.T, path string) *mlguardprocessor.Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(path)
	require.NoError(t, err)
	cfg := mlguardprocessor.NewFactory().CreateDefaultConfig().(*mlguardprocessor.Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// TestContent runs each folder of testdata/content, whose case.txt marks what is
// replaced with a - and its replacement with a +, and what comes out once more:
// that stays as it is, since agents and gateways may both have the section.
func TestContent(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "content", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, dir := range folders {
		path := filepath.Join(dir, "case.txt")
		cfg := loadContent(t, filepath.Join(dir, "config.yaml"))
		t.Run(filepath.Base(dir), func(t *testing.T) {
			switch golden.Signal(t, path) {
			case "traces":
				got := contentOfTraces(t, cfg, golden.ReadTraces(t, path))
				golden.CompareTraces(t, path, got)
				assert.Equal(t, golden.Traces(t, got), golden.Traces(t, contentOfTraces(t, cfg, got)), "a second pass")
			case "metrics":
				got := contentOfMetrics(t, cfg, golden.ReadMetrics(t, path))
				golden.CompareMetrics(t, path, got)
				assert.Equal(t, golden.Metrics(t, got), golden.Metrics(t, contentOfMetrics(t, cfg, got)), "a second pass")
			case "logs":
				got := contentOfLogs(t, cfg, golden.ReadLogs(t, path))
				golden.CompareLogs(t, path, got)
				assert.Equal(t, golden.Logs(t, got), golden.Logs(t, contentOfLogs(t, cfg, got)), "a second pass")
			default:
				t.Fatalf("%s has none of the three signals", path)
			}
		})
	}
}

func contentOfTraces(t *testing.T, cfg *mlguardprocessor.Config, from ptrace.Traces) ptrace.Traces {
	t.Helper()
	td, sink := ptrace.NewTraces(), new(consumertest.TracesSink)
	from.CopyTo(td)
	run(t, func(set processor.Settings) (processor.Traces, error) {
		return mlguardprocessor.NewFactory().CreateTraces(t.Context(), set, cfg, sink)
	}, func(ctx context.Context, p processor.Traces) error { return p.ConsumeTraces(ctx, td) })
	return sink.AllTraces()[0]
}

func contentOfMetrics(t *testing.T, cfg *mlguardprocessor.Config, from pmetric.Metrics) pmetric.Metrics {
	t.Helper()
	md, sink := pmetric.NewMetrics(), new(consumertest.MetricsSink)
	from.CopyTo(md)
	run(t, func(set processor.Settings) (processor.Metrics, error) {
		return mlguardprocessor.NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
	}, func(ctx context.Context, p processor.Metrics) error { return p.ConsumeMetrics(ctx, md) })
	return sink.AllMetrics()[0]
}

func contentOfLogs(t *testing.T, cfg *mlguardprocessor.Config, from plog.Logs) plog.Logs {
	t.Helper()
	ld, sink := plog.NewLogs(), new(consumertest.LogsSink)
	from.CopyTo(ld)
	run(t, func(set processor.Settings) (processor.Logs, error) {
		return mlguardprocessor.NewFactory().CreateLogs(t.Context(), set, cfg, sink)
	}, func(ctx context.Context, p processor.Logs) error { return p.ConsumeLogs(mlattr.WithConcluded(ctx), ld) })
	return sink.AllLogs()[0]
}

func run[P interface {
	Start(ctx context.Context, host component.Host) error
	Shutdown(ctx context.Context) error
}](t *testing.T, create func(processor.Settings) (P, error), use func(context.Context, P) error) {
	t.Helper()
	p, err := create(processortest.NewNopSettings(metadata.Type))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, use(t.Context(), p))
	require.NoError(t, p.Shutdown(t.Context()))
}

// What was replaced is counted by signal.
func TestContentCounts(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	cfg := loadContent(t, filepath.Join("testdata", "content", "clients", "config.yaml"))
	p, err := mlguardprocessor.NewFactory().CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr("dear diary")
	record.Attributes().PutStr("why", "me")
	record.Attributes().PutStr("service.name", "kept")
	require.NoError(t, p.ConsumeLogs(t.Context(), ld))
	metadatatest.AssertEqualProcessorMlGuardTextsReplaced(t, tel, []metricdata.DataPoint[int64]{{
		Value:      2,
		Attributes: attribute.NewSet(attribute.String("signal", "logs"), attribute.String("processor", set.ID.String())),
	}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, p.Shutdown(t.Context()))
}

func TestContentRefusesBadLists(t *testing.T) {
	for config, message := range map[string]string{
		"keep: ['']":                 `content: keep[0] is ""`,
		"keep: ['*']":                `content: keep[0] is "*"`,
		"remove: [a, 'a*b']":         `content: remove[1] is "a*b"`,
		"names: ['**']":              `content: names[0] is "**"`,
		"keep: [a.b], remove: [a.b]": `content: remove[0] is "a.b", which keep lists too`,
	} {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte("content: {" + config + "}"))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := mlguardprocessor.NewFactory().CreateDefaultConfig()
		require.NoError(t, conf.Unmarshal(cfg))
		assert.ErrorContains(t, confmap.Validate(cfg), message)
	}
}

// The name of a user does not leave, also where a component of this project writes it.
func TestNamesOfUsersDoNotLeave(t *testing.T) {
	factory := mlguardprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig().(*mlguardprocessor.Config)
	cfg.Content.GetOrInsertDefault()
	sink := new(consumertest.LogsSink)
	p, err := factory.CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	ld := plog.NewLogs()
	attributes := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes()
	for _, key := range []string{mlattr.UserName, mlattr.UserID, "user.full_name", "user.email"} {
		attributes.PutStr(key, "ada")
	}
	require.NoError(t, p.ConsumeLogs(t.Context(), ld))
	for key, value := range sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().All() {
		assert.NotContains(t, value.Str(), "ada", key)
	}
}
