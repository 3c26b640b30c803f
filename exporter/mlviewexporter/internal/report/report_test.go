package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// data is what a fixture of the page has for reports.
type data struct {
	State       *api.State
	Runs        map[string]*api.RunDetail
	Comparisons map[string]*api.Comparison
}

func dataOf(t testing.TB, fixture string) (d data) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "page", "testdata", fixture))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &d))
	return d
}

// of returns the report of a run of a fixture of the page.
func of(t testing.TB, fixture, key string) *report.Report {
	t.Helper()
	data := dataOf(t, fixture)
	require.Contains(t, data.Runs, key)
	comparison := data.Comparisons[key]
	if comparison == nil {
		comparison = &api.Comparison{Run: api.Profile{Run: data.Runs[key].Run}, Basis: api.BasisLastGood, Why: "No earlier run of this service has ended without a problem since the page keeps runs."}
		api.MakeLists(comparison)
	}
	return report.New(data.State, data.Runs[key], comparison)
}

func written(t testing.TB, r *report.Report, form string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, report.FormOf(form, "").Write(r, &out))
	return out.String()
}

func html5(t testing.TB, r *report.Report) string {
	t.Helper()
	return written(t, r, "html")
}

func markdown(t testing.TB, r *report.Report) string {
	t.Helper()
	return written(t, r, "md")
}

// TestGolden compares the forms of the report of a run that hangs and of one of
// which next to nothing is known with the files in testdata.
func TestGolden(t *testing.T) {
	for name, key := range map[string]string{"everything": "r-llama", "nearly_empty": "r-old"} {
		t.Run(name, func(t *testing.T) {
			r := of(t, "report.json", key)
			golden.File(t, filepath.Join("testdata", name+".html"), html5(t, r))
			golden.File(t, filepath.Join("testdata", name+".md"), markdown(t, r))
			var text bytes.Buffer
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", " ")
			require.NoError(t, encoder.Encode(r))
			golden.File(t, filepath.Join("testdata", name+".json"), text.String())
		})
	}
}

func TestListsAreBounded(t *testing.T) {
	d := &api.RunDetail{}
	for range 1000 {
		d.Ranks = append(d.Ranks, api.Rank{Rank: "1"})
		d.Needs = append(d.Needs, api.Need{Kind: mlattr.ProblemSlow})
		d.Changes = append(d.Changes, api.Change{})
		d.Failures = append(d.Failures, api.Failure{})
		d.Marks = append(d.Marks, api.Mark{Kind: "change"})
	}
	curve := api.Curve{Name: "loss"}
	for i := range 10_000 {
		curve.Times, curve.Values = append(curve.Times, float64(i)), append(curve.Values, float64(i%7))
	}
	d.Curves = []api.Curve{curve}
	r := report.New(&api.State{}, d, nil)
	assert.Equal(t, map[string]int{"ranks": 872, "problems": 950, "changes": 950, "failures": 950}, r.LeftOut)
	assert.Len(t, r.Marks, 50)
	assert.LessOrEqual(t, len(r.Curves[0].Values), 240)
	assert.Less(t, len(html5(t, r)), 512<<10)
	assert.Contains(t, markdown(t, r), "950 more are left out.")
}

func TestColumnsWithoutAnythingAreLeftOut(t *testing.T) {
	s := &api.State{Missing: []api.Missing{{What: "GPUs", Why: "There is no driver."}}}
	d := &api.RunDetail{
		Run:      api.Run{Owner: "ada", Version: "1", GPUKeys: []string{"g"}, Steps: new(1.0), LastCheckpoint: new(time.Unix(0, 0)), Loss: new(1.0), FirstSeen: time.Unix(1e6, 0)},
		Settings: []api.Setting{{Name: "vcs.ref.head.revision", Value: "abc"}, {Name: "hw.name", Value: "GPU"}},
		Spent:    api.Spent{Uses: map[string]float64{"productive": 1}}, Ranks: []api.Rank{{Rank: "0"}},
	}
	text := markdown(t, report.New(s, d, nil))
	assert.Contains(t, text, "| what | why |\n")
	assert.Contains(t, text, "| rank |\n")
}

// What the run itself is known to cost goes before what its service costs.
func TestCosts(t *testing.T) {
	s := &api.State{Models: []api.Model{{Service: "agent", Cost: new(7.0)}, {Service: "other", Cost: new(9.0)}}}
	run := api.Run{Service: "agent", FirstSeen: time.Unix(1e6, 0)}
	r := report.New(s, &api.RunDetail{Run: run}, nil)
	require.Len(t, r.Costs, 1)
	assert.InDelta(t, 7, r.Costs[0].Value, 0)
	assert.Contains(t, r.Costs[0].Basis, "for all of its runs")

	run.Cost = new(2.0)
	r = report.New(s, &api.RunDetail{Run: run, Spent: api.Spent{GPUHours: new(4.0), GPUCost: new(10.0)}}, nil)
	amounts := map[string]float64{}
	for _, c := range r.Costs {
		amounts[c.Name+" "+c.Unit] = c.Value
	}
	assert.Equal(t, map[string]float64{"gpu_hours GPU-hours": 4, "gpu_cost USD": 10, "usage USD": 2}, amounts)
}

// TestARunWithoutStepsIsCompared has a run whose steps nobody counts beside one whose steps
// are counted: their curves have no more than the time in common.
func TestARunWithoutStepsIsCompared(t *testing.T) {
	r := of(t, "report.json", "r-llama")
	require.NotNil(t, r.Comparison.With)
	with := r.Comparison.With.Curves
	require.NotEmpty(t, with)
	for i := range with {
		with[i].Steps, with[i].Epochs = []float64{}, []float64{}
	}
	page := html5(t, r)
	assert.Contains(t, page, "by time since the start")
	assert.NotContains(t, page, "Loss by step")
}
