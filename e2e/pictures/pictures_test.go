package main

import (
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prom "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func TestFormat(t *testing.T) {
	for _, of := range []struct {
		unit     string
		decimals int
		value    float64
		want     string
	}{
		{"none", -1, 1.5, "1.5"}, {"none", 0, 39.3, "39"}, {"none", 2, 3, "3.00"}, {"none", -1, 0, "0"},
		{"short", 1, 9123, "9.1 K"}, {"short", -1, 8.44e6, "8.44 Mil"}, {"short", -1, 12, "12"},
		{"percentunit", 0, 0.72, "72 %"}, {"percentunit", -1, 0.00245, "0.245 %"},
		{"bytes", -1, 54.5 * (1 << 30), "54.5 GiB"}, {"bytes", -1, 0, "0 B"},
		{"watt", 0, 1250, "1 kW"}, {"hertz", -1, 1.98e9, "1.98 GHz"},
		{"s", -1, 0, "0 s"}, {"s", -1, 0.0203, "20.3 ms"}, {"s", 0, 300, "5 min"}, {"s", -1, 5400, "1.5 h"}, {"s", -1, 6e-5, "60 µs"},
		{"h", -1, 0.25, "15 min"}, {"sci", -1, 1e-4, "1.00e-04"},
	} {
		got, err := format(of.unit, of.decimals, of.value)
		require.NoError(t, err)
		assert.Equal(t, of.want, got, "%s %v", of.unit, of.value)
	}
	_, err := format("furlong", -1, 1)
	assert.ErrorContains(t, err, "furlong")
}

func TestSpells(t *testing.T) {
	start := time.Unix(0, 0)
	view := dashboards.View{Start: start, End: start.Add(time.Minute), Step: 10 * time.Second}
	at := func(seconds int, value float64) dashboards.Point {
		return dashboards.Point{At: start.Add(time.Duration(seconds) * time.Second), Value: value}
	}
	got := spells(dashboards.Series{Points: []dashboards.Point{at(0, 1), at(10, 1), at(20, 7), at(50, 7), at(60, 7)}}, view)
	seconds := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	assert.Equal(t, []spell{
		{seconds(0), seconds(20), 1},
		{seconds(20), seconds(30), 7},
		// Nothing is known of the time between.
		{seconds(50), seconds(60), 7},
	}, got)
}

// Layers that are stacked stand on each other, and add up to 1 where they are
// parts of a whole.
func TestLayers(t *testing.T) {
	now := time.Unix(0, 0)
	series := func(v float64) dashboards.Series {
		return dashboards.Series{Points: []dashboards.Point{{At: now, Value: v}}}
	}
	all := []dashboards.Series{series(1), series(3)}
	assert.InDelta(t, 3, layersOf(all, "")[1].to[0], 0)
	stacked := layersOf(all, "normal")
	assert.InDelta(t, 1, stacked[1].from[0], 0)
	assert.InDelta(t, 4, stacked[1].to[0], 0)
	parts := layersOf(all, "percent")
	assert.InDelta(t, 0.25, parts[1].from[0], 0)
	assert.InDelta(t, 1, parts[1].to[0], 0)
}

// TestEveryDashboardIsDrawn has a Prometheus answer two series to everything: a
// type of panel, a unit or a colour that is not drawn is an error.
func TestEveryDashboardIsDrawn(t *testing.T) {
	now := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var results []string
		for i, run := range []string{"run-a", "a run whose name is much longer than anything that a column has room for"} {
			metric := fmt.Sprintf(`{"ml_run_id":%q,"hw_id":"GPU-%d","ml_run_state":"stalled","bound":"gpu"}`, run, i)
			// A figure is of one series, as the queries see to.
			if i > 0 && !strings.Contains(r.FormValue("query"), "by (") {
				continue
			}
			if strings.HasSuffix(r.URL.Path, "query_range") {
				results = append(results, fmt.Sprintf(`{"metric":%s,"values":[[%d,"1"],[%d,"3"],[%d,"NaN"],[%d,"2"]]}`,
					metric, now.Unix()-60, now.Unix()-50, now.Unix()-40, now.Unix()-30))
			} else {
				results = append(results, fmt.Sprintf(`{"metric":%s,"value":[%d,"0.5"]}`, metric, now.Unix()))
			}
		}
		kind := "vector"
		if strings.HasSuffix(r.URL.Path, "query_range") {
			kind = "matrix"
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, strings.Join(results, ","))
	}))
	defer server.Close()
	client, err := api.NewClient(api.Config{Address: server.URL})
	require.NoError(t, err)
	boards, err := dashboards.Load(harness.Path("docker", "grafana", "dashboards"))
	require.NoError(t, err)
	from := source{prom.NewAPI(client), dashboards.View{Start: now.Add(-time.Minute), End: now, Step: 10 * time.Second}}
	for _, board := range boards {
		t.Run(board.Name, func(t *testing.T) {
			// Of a figure Grafana shows the first series; which would be chance.
			for i := range board.Panels {
				if board.Panels[i].Type == "stat" {
					board.Panels[i].Targets[0].Expr = "one"
				}
			}
			path := filepath.Join(t.TempDir(), "picture.png")
			require.NoError(t, drawBoard(t.Context(), from, board, path))
			file, err := os.Open(path)
			require.NoError(t, err)
			defer func() { _ = file.Close() }()
			picture, err := png.Decode(file)
			require.NoError(t, err)
			assert.Greater(t, picture.Bounds().Dy(), 1000)
		})
	}
}
