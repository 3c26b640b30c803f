package intake_test

import (
	"context"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// connected is the context of a request from an address, with headers.
func connected(address string, headers map[string][]string) context.Context {
	return client.NewContext(context.Background(), client.Info{
		Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 40404}, Metadata: client.NewMetadata(headers),
	})
}

// counted returns the steps of a run that a collector has counted.
func counted(n float64, resource, point map[string]string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	for key, value := range resource {
		rm.Resource().Attributes().PutStr(key, value)
	}
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("ml.steps")
	one := m.SetEmptySum().DataPoints().AppendEmpty()
	one.SetDoubleValue(n)
	one.Attributes().PutStr("ml.run.id", "r")
	for key, value := range point {
		one.Attributes().PutStr(key, value)
	}
	return md
}

// TestCollectorsAreToldApart by a header of the request, else by an attribute of a
// point, else of its resource, else by the address.
func TestCollectorsAreToldApart(t *testing.T) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond, Fleet: true})
	in := intake.New(store)
	header := connected("10.0.0.2", map[string][]string{"collector-instance-id": {"gw-2"}, "user-agent": {"otelcol-ml/1.2.0 (linux/amd64) grpc-go/1.80.0"}})
	for range 2 { // the second time only values are read
		in.ConsumeMetrics(connected("10.0.0.1", nil), counted(1, nil, map[string]string{"collector.instance.id": "gw-1"}))
		in.ConsumeMetrics(header, counted(10, nil, map[string]string{"collector_instance_id": "627cc493-f310-47de-96bd-71410b7dec09"}))
		in.ConsumeMetrics(connected("10.0.0.3", nil), counted(100, map[string]string{"collector.instance.id": "gw-3"}, nil))
		in.ConsumeMetrics(connected("10.0.0.3", nil), counted(100000, map[string]string{"collector.instance.id": "gw-3"}, map[string]string{"collector_instance_id": "gw-5"}))
		in.ConsumeMetrics(connected("10.0.0.4", nil), counted(1000, nil, nil))
		in.ConsumeMetrics(context.Background(), counted(10000, nil, nil))
	}
	state := store.State()
	require.Len(t, state.Runs, 1)
	assert.InDelta(t, 111111, *state.Runs[0].Steps, 0)
	collectors := map[string]string{}
	for _, one := range state.Collectors {
		collectors[one.ID] = one.Address + " " + one.Version
	}
	assert.Equal(t, map[string]string{"10.0.0.4": "10.0.0.4 ", "gw-1": "10.0.0.1 ", "gw-2": "10.0.0.2 1.2.0", "gw-3": "10.0.0.3 ", "gw-5": "10.0.0.3 "}, collectors)
}

// TestRecordsOfOtherCollectors count on the page of a fleet.
func TestRecordsOfOtherCollectors(t *testing.T) {
	for _, fleet := range []bool{true, false} {
		store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond, Fleet: fleet})
		ld := plog.NewLogs()
		record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName(mlattr.EventChange)
		record.Attributes().PutStr(mlattr.ChangeKind, "version")
		record.Attributes().PutStr(mlattr.ChangeTo, "1.8.2")
		intake.New(store).ConsumeLogs(connected("10.0.0.1", nil), ld)
		assert.Equal(t, fleet, len(store.State().Changes) == 1)
		assert.Equal(t, fleet, len(store.State().Collectors) == 1)
	}
}

// TestCommandsOfOtherCollectors has the record of a reproduction: its command is shown
// on the page of a fleet, if its path is one that repro_gen writes.
func TestCommandsOfOtherCollectors(t *testing.T) {
	const group, artifact = "0123456789abcdef", "0123456789abcdef/20261120T064210Z-0123456789abcdef0123456789abcdef-0123456789abcdef"
	const report = "# math.sqrt\n\n## To reproduce\n\n```\npython3 repro.py --dry-run\npython3 repro.py --allow-module math:sqrt\n```\n\nIt needs:\n\n- `--allow-module math:sqrt`: to call it\n\n## Error\n"
	command := func(fleet bool, change map[string]string) (string, []string) {
		ld := plog.NewLogs()
		record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName("repro.artifact")
		attrs := map[string]string{
			"repro.artifact.fingerprint": group, "repro.artifact.path": artifact, "repro.artifact.directory": "/var/lib/my $(reboot)",
			"host.name": "gpu-01", "error.type": "ValueError",
		}
		maps.Copy(attrs, change)
		for key, value := range attrs {
			record.Attributes().PutStr(key, value)
		}
		record.Body().SetEmptyMap().PutStr("report.md", report)
		store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond, Fleet: fleet})
		intake.New(store).ConsumeLogs(context.Background(), ld)
		failures := store.State().Failures
		require.Len(t, failures, 1)
		return failures[0].Command, failures[0].Requires
	}
	text, requires := command(true, nil)
	assert.Equal(t, "python3 '/var/lib/my $(reboot)/"+artifact+"/repro.py'", text)
	assert.Equal(t, "host gpu-01", requires[0])
	text, _ = command(false, nil)
	assert.Empty(t, text, "any client could have sent it")
	for _, change := range []map[string]string{
		{"repro.artifact.path": "../" + artifact},
		{"repro.artifact.path": group + "/../../x"},
		{"repro.artifact.path": "fedcba9876543210" + artifact[16:]},
		{"repro.artifact.directory": "reproductions"},
		{"repro.artifact.directory": "/" + strings.Repeat("x", 5000)},
	} {
		text, _ := command(true, change)
		assert.Empty(t, text, change)
	}
}
