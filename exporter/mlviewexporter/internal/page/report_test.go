package page_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
)

const reportOf = "/api/v1/runs/r-llama/report"

func TestFormsOfAReport(t *testing.T) {
	h := newHandler(t, load(t, "report.json"), page.Settings{})
	const html, markdown, jsonType = "text/html; charset=utf-8", "text/markdown; charset=utf-8", "application/json"
	for _, c := range []struct{ query, accept, contentType string }{
		{"", "text/html,*/*;q=0.8", html},
		{"", "*/*", markdown},
		{"", "", markdown},
		{"", "application/json", jsonType},
		{"?format=html", "", html},
		{"?format=json", "text/html", jsonType},
		{"?format=md", "text/html", markdown},
	} {
		r := get(h, reportOf+c.query, "Accept", c.accept)
		assert.Equal(t, http.StatusOK, r.Code, c)
		assert.Equal(t, c.contentType, r.Header().Get("Content-Type"), c)
		assert.Contains(t, r.Header().Values("Vary"), "Accept")
		assert.Contains(t, r.Body.String(), "9c1d44e2a07b")
	}
	assert.Equal(t, http.StatusBadRequest, get(h, reportOf+"?format=pdf").Code)
	assert.Equal(t, http.StatusNotFound, get(h, "/api/v1/runs/nothing/report").Code)
	assert.Equal(t, http.StatusNotFound, get(h, "/api/v1/runs/nothing/compare").Code)
}

// The report as HTML runs nothing and loads nothing, not even from this server.
func TestAReportMayLoadNothing(t *testing.T) {
	h := newHandler(t, load(t, "report.json"), page.Settings{})
	policies := make(map[string]bool)
	for _, key := range []string{"r-llama", "r-old"} {
		r := get(h, "/api/v1/runs/"+key+"/report?format=html")
		csp := r.Header().Get("Content-Security-Policy")
		policies[csp] = true
		assert.True(t, strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-"), csp)
		for _, directive := range []string{"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
			assert.Contains(t, csp, directive)
		}
		assert.NotContains(t, csp, "unsafe")
		assert.NotContains(t, csp, "self")
		assert.Equal(t, "nosniff", r.Header().Get("X-Content-Type-Options"))
	}
	assert.Len(t, policies, 1, "the style sheet does not depend on the run")
}

// The numbers of a report are those of the state and of the run's details.
func TestAReportHasTheNumbersOfTheState(t *testing.T) {
	source := load(t, "report.json")
	h := newHandler(t, source, page.Settings{})
	var made report.Report
	require.NoError(t, json.Unmarshal(get(h, reportOf+"?format=json").Body.Bytes(), &made))
	detail, ok := source.Run("r-llama")
	require.True(t, ok)
	assert.Equal(t, detail.Run, made.Run)
	assert.Equal(t, detail.Spent, made.Spent)
	assert.Equal(t, detail.Failures, made.Failures)
	assert.Equal(t, source.State().Needs[0], *made.Problems[0].Need)
	gpus := 0
	for _, group := range made.GPUs {
		gpus += group.Count
	}
	assert.Equal(t, len(source.State().GPUs), gpus)
}

func TestComparisonsAreServed(t *testing.T) {
	h := newHandler(t, load(t, "report.json"), page.Settings{})
	var c api.Comparison
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/runs/r-llama/compare").Body.Bytes(), &c))
	assert.Equal(t, "9c1d44e2a07b", c.Run.Run.ID)
	assert.Equal(t, "71e0aa42b3", c.With.Run.ID)
}

// compared notes with which run others are compared.
type compared struct {
	*page.Fixture
	with []string
}

func (a *compared) Compare(key, with string) (*api.Comparison, bool) {
	a.with = append(a.with, with)
	if with == "unknown" {
		return nil, false
	}
	return a.Fixture.Compare(key, with)
}

func TestTheOtherRunIsThatOfTheQuery(t *testing.T) {
	source := &compared{Fixture: load(t, "report.json")}
	h := newHandler(t, source, page.Settings{})
	for _, target := range []string{"/api/v1/runs/r-llama/compare?with=a", reportOf + "?with=b", reportOf + "?with=b", reportOf} {
		assert.Equal(t, http.StatusOK, get(h, target).Code)
	}
	assert.Equal(t, []string{"a", "b", ""}, source.with, "a document is made once an interval")
	for _, target := range []string{"/api/v1/runs/r-llama/compare?with=unknown", reportOf + "?with=unknown"} {
		assert.Equal(t, http.StatusNotFound, get(h, target).Code)
	}
}

func FuzzReportQuery(f *testing.F) {
	h := page.NewHandler(page.NewFixture(page.FixtureData{}), page.Settings{})
	defer h.Close()
	for _, query := range []string{"format=html", "format=", "with=%00", "format=md&with=a;b", "%zz"} {
		f.Add(query, "text/html")
	}
	f.Fuzz(func(t *testing.T, query, accept string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/runs/x/report", nil)
		r.Host, r.URL.RawQuery = "localhost", query
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound && w.Code != http.StatusBadRequest {
			t.Errorf("%d for a run that does not exist", w.Code)
		}
	})
}
