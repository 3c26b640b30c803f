package page_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/schema"
)

// served starts a page over a source.
func served(t *testing.T, source page.Source) string {
	t.Helper()
	handler := page.NewHandler(source, page.Settings{Interval: 200 * time.Millisecond})
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return server.URL
}

func open(t *testing.T, url string) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, response.Body.Close()) })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response.Body
}

func requireValid(t *testing.T, reference string, document io.Reader) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(document)
	require.NoError(t, err)
	require.NoError(t, pagetest.Schema(t, reference).Validate(v))
}

// store is a source without reports.
type store struct{ *model.Store }

func (store) Report(string) ([]byte, bool) { return nil, false }

// What the page serves is valid, also before any data has come.
func TestServedDocumentsAreValid(t *testing.T) {
	empty := served(t, store{model.NewStore(input.Settings{Interval: time.Second, Now: time.Now, Reported: func() []api.Missing { return nil }})})
	requireValid(t, "", open(t, empty+"/api/v1/state"))
	published, err := io.ReadAll(open(t, empty+"/api/v1/schema.json"))
	require.NoError(t, err)
	require.Equal(t, string(schema.State), string(published))

	requireValid(t, "", open(t, served(t, page.NewFixture(fleet(3)))+"/api/v1/state"))
}

func TestServedReportsAreValid(t *testing.T) {
	source, err := page.LoadFixture("testdata/report.json")
	require.NoError(t, err)
	url := served(t, source) + "/api/v1/runs/r-llama"
	requireValid(t, "#/$defs/Comparison", open(t, url+"/compare"))
	requireValid(t, "#/$defs/Report", open(t, url+"/report?format=json"))
}

// fleet returns data with that many runs.
func fleet(runs int) page.FixtureData {
	data := page.FleetData(runs, 8, runs)
	api.MakeLists(data.State)
	return data
}

// event returns the data of the next event of that name.
func event(t *testing.T, lines *bufio.Scanner, name string) io.Reader {
	t.Helper()
	for found := false; lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && found {
			return strings.NewReader(data)
		}
		found = lines.Text() == "event: "+name || found && lines.Text() != ""
	}
	require.Fail(t, "no event "+name, lines.Err())
	return nil
}

func TestServedEventsAreValid(t *testing.T) {
	source := page.NewFixture(fleet(3))
	lines := bufio.NewScanner(open(t, served(t, source)+"/api/v1/events"))
	lines.Buffer(nil, 1<<20)
	requireValid(t, "", event(t, lines, "state"))
	source.Set(fleet(2).State)
	requireValid(t, "#/$defs/Rows", event(t, lines, "rows"))
}
