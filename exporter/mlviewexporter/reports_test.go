package mlviewexporter

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
)

// stateOf returns the metrics of a run that has taken some steps and is in a state.
func stateOf(run, state string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	point := func(name string, value float64) pcommon.Map {
		m := metrics.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(value)
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.Attributes().PutStr("ml.run.id", run)
		return p.Attributes()
	}
	point("ml.steps", 41)
	for _, one := range []string{"running", "ended"} {
		value := 0.0
		if one == state {
			value = 1
		}
		point("ml.run.state", value).PutStr("ml.run.state", one)
	}
	return md
}

// TestReportsAreWritten has a run that ends: its report appears in the directory, and
// has what the page's report has.
func TestReportsAreWritten(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	r := newRig(t, "interval: 100ms\nreports: {directory: "+directory+"}", nil)
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), stateOf("lives", "running")))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), stateOf("ends", "running")))
	var files []string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, r.metrics.ConsumeMetrics(t.Context(), stateOf("ends", "ended")))
		files, _ = filepath.Glob(filepath.Join(directory, "*")) // The pattern is valid.
		unfinished := func(name string) bool { return strings.HasSuffix(name, ".new") }
		files = slices.DeleteFunc(files, unfinished)
		assert.Len(c, files, 3)
	}, 30*time.Second, 50*time.Millisecond)
	key := strings.TrimSuffix(filepath.Base(files[0]), ".html")
	page, err := os.ReadFile(filepath.Join(directory, key+".html"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "The run has ended")
	var written report.Report
	content, err := os.ReadFile(filepath.Join(directory, key+".json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &written))
	assert.Equal(t, "ends", written.Run.ID)
	assert.Equal(t, key, written.Run.Key)

	response, body := r.get(t, "/api/v1/runs/"+key+"/report?format=json", nil)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	var served report.Report
	require.NoError(t, json.Unmarshal([]byte(body), &served))
	assert.Equal(t, written.Run.Steps, served.Run.Steps)
	got, err := r.tel.GetMetric("otelcol_exporter_ml_view_reports_written")
	require.NoError(t, err)
	assert.Positive(t, got.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	r.stop(t)

	_, err = tryRig(t, "reports: {directory: "+files[0]+"}", nil)
	require.ErrorContains(t, err, `open "reports::directory"`)
}

// TestReportsThatCannotBeWritten has a directory that goes away: errors are counted,
// and the same one is logged once.
func TestReportsThatCannotBeWritten(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	r := newRig(t, "interval: 100ms\nreports: {directory: "+directory+"}", nil)
	require.NoError(t, os.Remove(directory))
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), stateOf("ends", "running")))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, r.metrics.ConsumeMetrics(t.Context(), stateOf("ends", "ended")))
		got, err := r.tel.GetMetric("otelcol_exporter_ml_view_reports_errors")
		if assert.NoError(c, err) {
			assert.Greater(c, got.Data.(metricdata.Sum[int64]).DataPoints[0].Value, int64(2))
		}
	}, 30*time.Second, 50*time.Millisecond)
	assert.Equal(t, 1, r.log.FilterMessageSnippet("could not be written").Len())
	r.stop(t)
}

// TestRemovedReportsAreNotWrittenAgain has more runs that have ended than reports are
// kept.
func TestRemovedReportsAreNotWrittenAgain(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	r := newRig(t, "interval: 100ms\nreports: {directory: "+directory+", keep: 1}", nil)
	written := func() int64 {
		got, err := r.tel.GetMetric("otelcol_exporter_ml_view_reports_written")
		if err != nil {
			return 0
		}
		return got.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	}
	runs := []string{"a", "b", "c"}
	for _, run := range runs {
		require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), stateOf(run, "running")))
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, run := range runs {
			assert.NoError(c, r.metrics.ConsumeMetrics(t.Context(), stateOf(run, "ended")))
		}
		assert.Equal(c, int64(3), written())
	}, 30*time.Second, 50*time.Millisecond)
	r.stop(t) // It looks for runs that have settled a last time.
	assert.Equal(t, int64(3), written())
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	require.NoError(t, err)
	assert.Len(t, files, 3, "one report in three forms")
}

// TestInventedRunsPushOutNoReport has runs of one step after one that has worked, and room
// for a single report.
func TestInventedRunsPushOutNoReport(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	r := newRig(t, "interval: 100ms\nreports: {directory: "+directory+", keep: 1}", nil)
	invented := func(run, state string) pmetric.Metrics {
		md := stateOf(run, state)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetDoubleValue(1)
		return md
	}
	await := func(reports int64, metrics func(state string) pmetric.Metrics) {
		require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics("running")))
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.NoError(c, r.metrics.ConsumeMetrics(t.Context(), metrics("ended")))
			got, err := r.tel.GetMetric("otelcol_exporter_ml_view_reports_written")
			if assert.NoError(c, err) {
				assert.Equal(c, reports, got.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
			}
		}, 30*time.Second, 50*time.Millisecond)
	}
	await(1, func(state string) pmetric.Metrics { return stateOf("worked", state) })
	await(2, func(state string) pmetric.Metrics { return invented("invented", state) })
	r.stop(t)
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var written report.Report
	require.NoError(t, json.Unmarshal(content, &written))
	assert.Equal(t, "worked", written.Run.ID)
}
