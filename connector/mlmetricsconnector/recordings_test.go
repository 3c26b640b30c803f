package mlmetricsconnector

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestRecordings sends what real clients sent, request by request as recorded
// by examples/record.py and without ml_enrich before it, with the default
// configuration. The series are compared with the expected.yaml of each client.
func TestRecordings(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "recordings", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, "traces.json"))
			require.NoError(t, err)
			next := new(consumertest.MetricsSink)
			c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
			for request := range bytes.Lines(text) {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
				require.NoError(t, err)
				require.NoError(t, c.ConsumeTraces(t.Context(), td))
			}
			require.NoError(t, c.Shutdown(t.Context()))
			got := seriesByResource(lastOf(t, next))

			expected := filepath.Join(folder, "expected.yaml")
			if *update {
				require.NoError(t, os.WriteFile(expected, []byte(got), 0o600))
			}
			want, err := os.ReadFile(expected)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// seriesByResource returns YAML: the series of each resource, each with its value.
func seriesByResource(md pmetric.Metrics) string {
	var resources []string
	for _, rm := range md.ResourceMetrics().All() {
		var lines []string
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				lines = append(lines, seriesOf(m)...)
			}
		}
		slices.Sort(lines)
		resources = append(resources, fmt.Sprintf("%q:\n%s", labels(rm.Resource().Attributes()), strings.Join(lines, "")))
	}
	slices.Sort(resources)
	return "# The series that ml_metrics makes of this recording: by resource, each with its value.\n" + strings.Join(resources, "")
}

func seriesOf(m pmetric.Metric) (lines []string) {
	add := func(attributes pcommon.Map, value string) {
		lines = append(lines, fmt.Sprintf("  %q: %s\n", m.Name()+" "+labels(attributes), value))
	}
	number := func(p pmetric.NumberDataPoint) string {
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			return strconv.FormatInt(p.IntValue(), 10)
		}
		return strconv.FormatFloat(p.DoubleValue(), 'g', -1, 64)
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			add(p.Attributes(), number(p))
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			add(p.Attributes(), number(p))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			add(p.Attributes(), fmt.Sprintf("{count: %d, sum: %.6g, buckets: %v}", p.Count(), p.Sum(),
				strings.Join(strings.Fields(fmt.Sprint(p.BucketCounts().AsRaw())), ", ")))
		}
	default:
		add(pcommon.NewMap(), m.Type().String())
	}
	return lines
}

// labels returns attributes in the order of their names.
func labels(attributes pcommon.Map) string {
	var all []string
	for key, v := range attributes.All() {
		all = append(all, key+"="+v.AsString())
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}
