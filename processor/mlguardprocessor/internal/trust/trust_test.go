package trust

import (
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

type auth struct{}

func (auth) GetAttribute(string) any     { return nil }
func (auth) GetAttributeNames() []string { return nil }

func from(t *testing.T, address string) context.Context {
	return client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 7}})
}

// metric has one point of a metric with attributes, which alternate keys and values.
func metric(name, unit string, attributes ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	for i := 0; i < len(attributes); i += 2 {
		point.Attributes().PutStr(attributes[i], attributes[i+1])
	}
	return md
}

// ofResource gives the resource a type of hardware.
func ofResource(md pmetric.Metrics, kind string) pmetric.Metrics {
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("hw.type", kind)
	return md
}

// TestWhoIsBelieved: the collector itself and authenticated senders, and who is listed.
func TestWhoIsBelieved(t *testing.T) {
	unix := client.NewContext(t.Context(), client.Info{Addr: &net.UnixAddr{Net: "unix"}})
	authenticated := client.NewContext(t.Context(), client.Info{Auth: auth{}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}})
	for _, tt := range []struct {
		senders    []string
		yes, never []context.Context
	}{
		{nil, []context.Context{t.Context(), authenticated}, []context.Context{from(t, "127.0.0.1"), from(t, "::1"), unix}},
		{[]string{"loopback"}, []context.Context{from(t, "127.0.0.9"), from(t, "::1"), from(t, "::ffff:127.0.0.1")}, []context.Context{from(t, "10.0.0.1"), unix}},
		{[]string{"10.0.0.0/8", "2001:db8::1"}, []context.Context{from(t, "10.9.9.9"), from(t, "2001:db8::1"), authenticated},
			[]context.Context{from(t, "127.0.0.1"), from(t, "11.0.0.1"), from(t, "2001:db8::2")}},
		{[]string{"any"}, []context.Context{from(t, "10.9.9.9"), unix}, nil},
	} {
		require.NoError(t, Validate(tt.senders))
		f := New(tt.senders)
		for _, ctx := range tt.yes {
			md := metric("hw.status", "1")
			assert.Zero(t, f.Metrics(ctx, md), tt.senders)
			assert.Equal(t, 1, md.DataPointCount())
		}
		for _, ctx := range tt.never {
			md := metric("hw.status", "1")
			assert.Equal(t, 1, f.Metrics(ctx, md), tt.senders)
			assert.Zero(t, md.ResourceMetrics().Len(), "nothing is left of it")
		}
	}
}

func TestValidate(t *testing.T) {
	for _, bad := range []string{"", "agents", "10.0.0.0/33", "10.0.0", "localhost:4317"} {
		assert.ErrorContains(t, Validate([]string{"any", bad}), "trusted_senders[1] is \""+bad+"\"")
	}
}

// TestNamesOfPrometheus: what gets the name of one of our series in Prometheus is the
// same series there.
func TestNamesOfPrometheus(t *testing.T) {
	for _, m := range []pmetric.Metrics{
		metric("ml.run.state", "1"), metric("ml_run_state", ""), metric("_ml..run state_", ""), metric("\u00e9{ml}run_state", ""), metric("ml", "run_state"),
		metric("ml_problem_onset_timestamp_seconds", ""), metric("ml.problem.onset", "timestamp_seconds"), metric("ml_requests_total", ""),
		metric("ml_step_duration_seconds_bucket", ""), metric("hw_gpu_memory_limit_bytes", ""), metric("nvidia_gpu_workload_memory_usage_bytes", ""),
		metric("hw.gpu.memory.limit", "By", "hw.type", "gpu"), metric("hw_status", "", "hw_type", "fan"), metric("hw_status", "", "hw.type", "fan"),
		metric("ml.run.state", "", "hw.type", "fan"), metric("hw.gpu.utilization", "1", "hw.type", "fan"), metric("nvidia.gpu.workload.memory.usage", "By", "hw.type", "fan"),
		metric("hw.status", "", "hw.type", ""), metric("hw.status", "", "hw.type", "gpu"),
		ofResource(metric("hw.status", ""), "fan"), ofResource(metric("hw.status", "", "hw.type", "gpu"), "fan"), metric("hw.status", "", "hw.type", "fan", "hw-type", "gpu"), metric("hw.status", "", "hw/type", "gpu", "hw.type", "fan"), metric("hw.power", "W"),
		metric("run:state", ""), metric("problem:onset_timestamp_seconds:max", ""), metric("nccl.rank.state", "1"),
	} {
		name := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name()
		assert.Equal(t, 1, New(nil).Metrics(from(t, "127.0.0.1"), m), name)
	}
	for _, m := range []pmetric.Metrics{
		metric("ml.accuracy", ""), metric("ml.run", ""), metric("ml_loss_of_mine", ""), metric("gen_ai.client.token.usage", "{token}"),
		metric("hw.temperature", "Cel", "hw.type", "fan"), metric("hw.status", "1", "hw.type", "physical_disk"), metric("DCGM_FI_DEV_GPU_UTIL", ""),
		metric("http.server.request.duration", "s"), metric("", ""), metric("total", ""), metric(strings.Repeat("ml.run.state", 100), ""),
		metric("tokens", "s"), metric("vllm:num_requests_running", ""),
	} {
		name := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name()
		assert.Zero(t, New(nil).Metrics(from(t, "127.0.0.1"), m), name)
		assert.Equal(t, 1, m.DataPointCount())
	}
}

// TestOtherTypes: a name is one of ours whatever the type of the metric is.
func TestOtherTypes(t *testing.T) {
	for _, set := range []func(pmetric.Metric){
		func(m pmetric.Metric) { m.SetEmptyHistogram().DataPoints().AppendEmpty() },
		func(m pmetric.Metric) { m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty() },
		func(m pmetric.Metric) { m.SetEmptySummary().DataPoints().AppendEmpty() },
		func(m pmetric.Metric) { m.SetEmptySum().DataPoints().AppendEmpty() },
	} {
		md := metric("hw.status", "")
		set(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0))
		assert.Equal(t, 1, New(nil).Metrics(from(t, "10.0.0.1"), md))
		assert.Zero(t, md.ResourceMetrics().Len())
	}
}

// TestTheRestStays: only what is not believed is dropped of a request, which may have
// empty parts.
func TestTheRestStays(t *testing.T) {
	md := metric("ml.run.state", "")
	metric("app.requests", "").ResourceMetrics().At(0).CopyTo(md.ResourceMetrics().AppendEmpty())
	metric("hw.status", "").ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).CopyTo(md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().AppendEmpty())
	md.ResourceMetrics().At(1).ScopeMetrics().AppendEmpty()
	assert.Equal(t, 2, New(nil).Metrics(from(t, "10.0.0.1"), md))
	require.Equal(t, 1, md.ResourceMetrics().Len())
	assert.Equal(t, 2, md.ResourceMetrics().At(0).ScopeMetrics().Len())
	assert.Equal(t, 1, md.DataPointCount())
}

func TestLogs(t *testing.T) {
	logs := func() plog.Logs {
		ld := plog.NewLogs()
		for name := range events {
			ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName(name)
		}
		records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		records.AppendEmpty().Body().SetStr("a line")
		records.AppendEmpty().SetEventName("app.change")
		return ld
	}
	ld := logs()
	assert.Equal(t, len(events), New(nil).Logs(from(t, "10.0.0.1"), ld))
	assert.Equal(t, 2, ld.LogRecordCount())
	assert.Equal(t, 1, ld.ResourceLogs().Len())
	ld = logs()
	assert.Zero(t, New(nil).Logs(t.Context(), ld))
	assert.Equal(t, len(events)+2, ld.LogRecordCount())
}

// TestEventsAreListed: each event that a component writes is one that only it may send.
func TestEventsAreListed(t *testing.T) {
	name := regexp.MustCompile(`(?m)SetEventName\("([^"]+)"\)`)
	for _, receiver := range []string{"gpureceiver", "ncclreceiver"} {
		source, err := os.ReadFile("../../../../receiver/" + receiver + "/internal/metadata/generated_logs.go")
		require.NoError(t, err)
		found := name.FindAllSubmatch(source, -1)
		require.NotEmpty(t, found)
		for _, match := range found {
			assert.Contains(t, events, string(match[1]))
		}
	}
}

// TestWhatIsReadIsListed: each metric that the page and ml_metrics believe of collectors
// is one that only they may send.
func TestWhatIsReadIsListed(t *testing.T) {
	for file, pattern := range map[string]string{
		"exporter/mlviewexporter/internal/series/series.yaml": `name: ((?:ml|hw|nvidia)\.[a-z_.]+)`,
		"internal/mlattr/generated_gpu_names.go":              `(?m)^\s*GPU\w+ += "((?:ml|hw|nvidia)\.[^"]+[^".])"`,
	} {
		source, err := os.ReadFile("../../../../" + file)
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindAllSubmatch(source, -1)
		require.NotEmpty(t, found)
		for _, match := range found {
			switch name := string(match[1]); name {
			case "nvidia.gpu.power.limit.type", "hw.gpu.task", "nvidia.gpu.source", "nvidia.gpu.throttle.reason", "nvidia.gpu.xid.code", "nvidia.gpu.index", "nvidia.gpu.xid":
			default:
				assert.True(t, isCollectors(name, ""), name)
			}
		}
	}
}

func BenchmarkMetrics(b *testing.B) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for range 100 {
		m := metrics.AppendEmpty()
		m.SetName("gen_ai.client.operation.duration")
		m.SetUnit("s")
		m.SetEmptyGauge().DataPoints().AppendEmpty()
	}
	ctx := client.NewContext(b.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}})
	f := New(nil)
	b.ReportAllocs()
	for b.Loop() {
		f.Metrics(ctx, md)
	}
}
