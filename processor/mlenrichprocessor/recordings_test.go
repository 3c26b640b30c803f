package mlenrichprocessor

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestRecordings sends what real clients sent, request by request as recorded
// by examples/record.py, with the default configuration. What is added is
// compared with the expected.yaml of each client; what the client sent has to
// be there unchanged.
func TestRecordings(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			p := startDefault(t)
			seen := enrichment{}
			for _, request := range requests(t, folder, "traces.json") {
				in, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
				require.NoError(t, err)
				seen.traces(t, in, p.sendTraces(t, in))
			}
			for _, request := range requests(t, folder, "metrics.json") {
				in, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(request)
				require.NoError(t, err)
				seen.metrics(t, in, p.sendMetrics(t, in))
			}
			for _, request := range requests(t, folder, "logs.json") {
				in, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(request)
				require.NoError(t, err)
				seen.logs(t, in, p.sendLogs(t, in))
			}
			require.NotEmpty(t, seen, "a folder without a recording")

			expected := filepath.Join(folder, "expected.yaml")
			if *golden.Update {
				require.NoError(t, os.WriteFile(expected, []byte(seen.String()), 0o600))
			}
			want, err := os.ReadFile(expected)
			require.NoError(t, err)
			assert.Equal(t, string(want), seen.String())
		})
	}
}

// requests returns the recorded requests of one signal, none where the client
// sends nothing of it.
func requests(t *testing.T, folder, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, file))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
}

// enrichment is what was added, by the service, and then by the name of what
// it was added to.
type enrichment map[string]map[string]*added

// added is what was added to all things of one name.
type added struct {
	count int
	// values has how often each value was added, by the attribute's name.
	values map[string]map[string]int
}

func (a enrichment) traces(t *testing.T, in, out ptrace.Traces) {
	require.Equal(t, in.ResourceSpans().Len(), out.ResourceSpans().Len())
	for i, rs := range in.ResourceSpans().All() {
		to := out.ResourceSpans().At(i)
		service := a.resource(t, rs.Resource(), to.Resource())
		require.Equal(t, rs.ScopeSpans().Len(), to.ScopeSpans().Len())
		for j, ss := range rs.ScopeSpans().All() {
			require.Equal(t, ss.Spans().Len(), to.ScopeSpans().At(j).Spans().Len())
			for k, span := range ss.Spans().All() {
				a.compare(t, service, "span "+span.Name(), span.Attributes(), to.ScopeSpans().At(j).Spans().At(k).Attributes())
			}
		}
	}
}

func (a enrichment) metrics(t *testing.T, in, out pmetric.Metrics) {
	require.Equal(t, in.ResourceMetrics().Len(), out.ResourceMetrics().Len())
	for i, rm := range in.ResourceMetrics().All() {
		to := out.ResourceMetrics().At(i)
		service := a.resource(t, rm.Resource(), to.Resource())
		require.Equal(t, rm.ScopeMetrics().Len(), to.ScopeMetrics().Len())
		for j, sm := range rm.ScopeMetrics().All() {
			require.Equal(t, sm.Metrics().Len(), to.ScopeMetrics().At(j).Metrics().Len())
			for k, m := range sm.Metrics().All() {
				before, after := pointAttributes(m), pointAttributes(to.ScopeMetrics().At(j).Metrics().At(k))
				require.Len(t, after, len(before))
				for l := range before {
					a.compare(t, service, "metric "+m.Name(), before[l], after[l])
				}
			}
		}
	}
}

func (a enrichment) logs(t *testing.T, in, out plog.Logs) {
	require.Equal(t, in.ResourceLogs().Len(), out.ResourceLogs().Len())
	for i, rl := range in.ResourceLogs().All() {
		to := out.ResourceLogs().At(i)
		service := a.resource(t, rl.Resource(), to.Resource())
		require.Equal(t, rl.ScopeLogs().Len(), to.ScopeLogs().Len())
		for j, sl := range rl.ScopeLogs().All() {
			require.Equal(t, sl.LogRecords().Len(), to.ScopeLogs().At(j).LogRecords().Len())
			for k, record := range sl.LogRecords().All() {
				a.compare(t, service, "log records", record.Attributes(), to.ScopeLogs().At(j).LogRecords().At(k).Attributes())
			}
		}
	}
}

// resource returns the name of the resource's service.
func (a enrichment) resource(t *testing.T, in, out pcommon.Resource) string {
	service := "no service.name"
	if v, ok := in.Attributes().Get("service.name"); ok {
		service = v.Str()
	}
	a.compare(t, service, "its resources", in.Attributes(), out.Attributes())
	return service
}

func (a enrichment) compare(t *testing.T, service, name string, in, out pcommon.Map) {
	if a[service] == nil {
		a[service] = map[string]*added{}
	}
	of := a[service][name]
	if of == nil {
		of = &added{values: map[string]map[string]int{}}
		a[service][name] = of
	}
	of.count++
	for key, v := range in.All() {
		kept, ok := out.Get(key)
		require.True(t, ok && kept.Equal(v), "%s of %s must stay as the client sent it", key, name)
	}
	for key, v := range out.All() {
		if _, ok := in.Get(key); ok {
			continue
		}
		if of.values[key] == nil {
			of.values[key] = map[string]int{}
		}
		of.values[key][shown(v)]++
	}
}

func pointAttributes(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}

// shown tells numbers from strings; six digits of a rate are enough.
func shown(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return strconv.Quote(v.Str())
	case pcommon.ValueTypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', 6, 64) + " (double)"
	}
	return v.AsString()
}

// String returns YAML: of each name, how many there were, and of each
// attribute that was added, how often and with which values.
func (a enrichment) String() string {
	var b strings.Builder
	b.WriteString("# What ml_enrich adds to this recording: how often, and with which values.\n")
	for _, service := range slices.Sorted(maps.Keys(a)) {
		fmt.Fprintf(&b, "%s:\n", service)
		for _, name := range slices.Sorted(maps.Keys(a[service])) {
			of := a[service][name]
			fmt.Fprintf(&b, "  %q:\n    count: %d\n", name, of.count)
			for _, key := range slices.Sorted(maps.Keys(of.values)) {
				fmt.Fprintf(&b, "    %s: %s\n", key, summary(of.values[key]))
			}
		}
	}
	return b.String()
}

// most is how many different values are listed.
const most = 4

func summary(values map[string]int) string {
	times := 0
	for _, n := range values {
		times += n
	}
	distinct := slices.SortedFunc(maps.Keys(values), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
	if len(distinct) > most {
		return fmt.Sprintf("'%d times, %d values, such as %s'", times, len(distinct), distinct[0])
	}
	for i, v := range distinct {
		if len(distinct) > 1 {
			distinct[i] = fmt.Sprintf("%d times %s", values[v], v)
		}
	}
	return fmt.Sprintf("'%d times: %s'", times, strings.Join(distinct, ", "))
}
