package smoke

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestPageWithAPassword has the page of the default configuration behind the stock
// extension.
func TestPageWithAPassword(t *testing.T) {
	t.Parallel()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Overrides: map[string]any{
			"extensions::basicauth::htpasswd::inline": "ada:secret",
			"service::extensions":                     []string{"health_check", "ml_guard", "basicauth"},
			"exporters::ml_view::auth::authenticator": "basicauth",
		},
		Env: []string{"LOGS_EXPORTER=debug"},
		Dir: t.TempDir(),
	})
	url := "http://" + collector.Address(t, "exporters::ml_view")
	ask := func(path, password string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, http.NoBody)
		require.NoError(t, err)
		request.SetBasicAuth("ada", password)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		return response
	}
	refused := ask("/", "guess")
	require.NoError(t, refused.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	assert.Equal(t, `Basic realm="otelcol-ml", charset="UTF-8"`, refused.Header.Get("WWW-Authenticate"))

	page := ask("/", "secret")
	text, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	assert.Equal(t, http.StatusOK, page.StatusCode)
	assert.Contains(t, string(text), "no run has sent data yet")

	// An open stream does not keep the collector from stopping.
	stream := ask("/api/v1/events", "secret")
	defer func() { assert.NoError(t, stream.Body.Close()) }()
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan())
	assert.Equal(t, "event: state", lines.Text())
	require.True(t, lines.Scan())
	var state struct{ Version int }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &state))
	assert.Equal(t, 1, state.Version)
	stopDropIn(t, collector)
}

// TestPageIsNotOpenByAccident has addresses that other machines can reach.
func TestPageIsNotOpenByAccident(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"agent.yaml", "demo.yaml", "production.yaml"} {
		file := harness.Path("distribution", "config", config)
		code, output := harness.Validate(t, []string{recording(), "ML_VIEW_ENDPOINT=0.0.0.0:8890"}, file)
		assert.NotZero(t, code, config)
		assert.Contains(t, output, `exporters::ml_view: "endpoint" is "0.0.0.0:8890", which other machines can reach`)
		code, output = harness.Validate(t, []string{recording(), "ML_VIEW_ENDPOINT=0.0.0.0:8890", "ML_VIEW_INSECURE_NO_AUTH=true"}, file)
		assert.Zero(t, code, output)
	}
}

// pageState is what the tests below read of the page.
type pageState struct {
	Runs []struct {
		Key, ID string
		State   string
	} `json:"runs"`
	Failures []struct {
		Class, Command, Report string
		Count                  int64
	} `json:"failures"`
	Missing []struct{ Kind, Why string } `json:"missing"`
}

func readPage(t assert.TestingT, test *testing.T, collector *harness.Collector, path string, into any) {
	body, err := harness.Get(test.Context(), "http://"+collector.Address(test, "exporters::ml_view")+path)
	if assert.NoError(t, err) {
		assert.NoError(t, json.Unmarshal([]byte(body), into))
	}
}

// The default configuration, without any variable, shows reproductions, and keeps runs
// and their curves over a restart.
func TestDefaultPageKeepsRunsAndShowsReproductions(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"agent.yaml", "production.yaml"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			options := harness.CollectorOptions{
				Config: harness.Path("distribution", "config", config), Dir: t.TempDir(),
				Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "1s", "exporters::ml_view::interval": "500ms"},
			}
			first := harness.StartCollector(t, options)
			harness.Generate(t, first, harness.Workload{Seed: 16, Scenarios: "all", Duration: 4 * time.Second, Rate: 5, Ranks: 2})
			var before pageState
			curves := map[string][]float64{}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				before = pageState{}
				readPage(c, t, first, "/api/v1/state", &before)
				commands := 0
				for _, failure := range before.Failures {
					if failure.Command != "" && failure.Report != "" {
						commands++
					}
				}
				assert.Positive(c, commands, "reproductions on the page")
				for _, run := range before.Runs {
					var detail struct {
						Curves []struct {
							Name   string
							Values []float64
						}
					}
					readPage(c, t, first, "/api/v1/runs/"+run.Key, &detail)
					for _, curve := range detail.Curves {
						curves[run.Key+" "+curve.Name] = curve.Values
					}
				}
				assert.NotEmpty(c, curves)
			}, arrival, poll)
			stopDropIn(t, first)

			again := harness.StartCollector(t, options)
			var after pageState
			readPage(t, t, again, "/api/v1/state", &after)
			ids := map[string]bool{}
			for _, run := range after.Runs {
				ids[run.Key] = true
			}
			for _, run := range before.Runs {
				assert.True(t, ids[run.Key], "run %s of %s", run.ID, run.State)
			}
			for of, values := range curves {
				run, name, _ := strings.Cut(of, " ")
				var detail struct {
					Curves []struct {
						Name   string
						Values []float64
					}
				}
				readPage(t, t, again, "/api/v1/runs/"+run, &detail)
				kept := map[string][]float64{}
				for _, curve := range detail.Curves {
					kept[curve.Name] = curve.Values
				}
				if assert.GreaterOrEqual(t, len(kept[name]), len(values), of) {
					assert.Equal(t, values, kept[name][:len(values)], of)
				}
			}
			assert.GreaterOrEqual(t, len(after.Failures), len(before.Failures))
			for _, missing := range after.Missing {
				assert.NotEqual(t, "storage", missing.Kind, missing.Why)
			}
		})
	}
}

// A folder that cannot be written is no reason not to start.
func TestDefaultStartsWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "otelcol-ml-state"), nil, 0o600))
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: harness.Path("distribution", "config", "agent.yaml"), Dir: dir})
	var page pageState
	readPage(t, t, collector, "/api/v1/state", &page)
	var why []string
	for _, missing := range page.Missing {
		if missing.Kind == "storage" {
			why = append(why, missing.Why)
		}
	}
	require.Len(t, why, 1)
	assert.Contains(t, why[0], "not a directory")
	assert.Zero(t, collector.Stop(t), "exit code")
}
