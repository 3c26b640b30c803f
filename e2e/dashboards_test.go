package e2e

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prom "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// asked is a query of a dashboard, by the panel that it is of.
type asked struct {
	board  dashboards.Dashboard
	panel  dashboards.Panel
	target dashboards.Target
}

// dashboardTimeout is how long a value may take: the recording has its errors of
// GPUs after 40 s.
const dashboardTimeout = 3 * harness.ArrivalTimeout

func (a asked) String() string {
	return fmt.Sprintf("%s: %s: %s", a.board.Name, a.panel.Title, a.target.RefID)
}

// loadDashboards reads what Grafana loads.
func loadDashboards(t *testing.T) []dashboards.Dashboard {
	t.Helper()
	boards, err := dashboards.Load(harness.Path("docker", "grafana", "dashboards"))
	require.NoError(t, err)
	return boards
}

func targetsOf(boards []dashboards.Dashboard) (all []asked) {
	for _, board := range boards {
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				all = append(all, asked{board, panel, target})
			}
		}
	}
	return all
}

func apiOf(t *testing.T, prometheus *harness.Prometheus) prom.API {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: prometheus.URL()})
	require.NoError(t, err)
	return prom.NewAPI(client)
}

// view is the time since a moment, everything chosen.
func viewSince(started time.Time) dashboards.View {
	return dashboards.View{Start: started, End: time.Now(), Step: 5 * time.Second}
}

// finite counts the values of an answer, and those of them that are not 0.
func finite(series []dashboards.Series) (values, others int) {
	for _, s := range series {
		for _, point := range s.Points {
			if !math.IsNaN(point.Value) {
				values++
				if point.Value != 0 {
					others++
				}
			}
		}
	}
	return values, others
}

// testDashboards asks what every panel, variable and mark asks, of a system that
// is well. What has nothing to say of one is asked again where it is not, in
// TestDashboardsOfFaults.
func testDashboards(t *testing.T, j *job) {
	boards, prometheus := loadDashboards(t), apiOf(t, j.prometheus)

	t.Run("panels", func(t *testing.T) {
		for _, a := range targetsOf(boards) {
			switch {
			case slices.Contains(dashboards.OnlyOfFaults, a.String()) || a.String() == dashboards.RemovedArtifacts:
			case dashboards.NeverHere[a.String()] != "":
				t.Run(a.String(), func(t *testing.T) { awaitAny(t, prometheus, a, j.started) })
			default:
				t.Run(a.String(), func(t *testing.T) { awaitValues(t, prometheus, a, j.started) })
			}
		}
	})

	t.Run("choices", func(t *testing.T) {
		for _, board := range boards {
			for _, variable := range board.Templating.List {
				t.Run(board.Name+": "+variable.Name, func(t *testing.T) { testChoices(t, prometheus, board, variable, j.started) })
			}
		}
	})

	t.Run("exemplars lead to Jaeger", func(t *testing.T) { testExemplars(t, j, prometheus, boards) })
	t.Run("the table of runs", func(t *testing.T) { testRunsTable(t, j, prometheus, boards) })
	t.Run("links to Jaeger find traces", func(t *testing.T) { testTraceLinks(t, j, prometheus, boards) })
}

// awaitValues waits until a query has a value that is not 0.
func awaitValues(t *testing.T, prometheus prom.API, a asked, started time.Time) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		series, err := dashboards.Ask(t.Context(), prometheus, a.board, a.target, viewSince(started))
		if !assert.NoError(c, err) {
			return
		}
		_, others := finite(series)
		assert.NotZero(c, others, "%d series of %s", len(series), a.target.Expr)
	}, dashboardTimeout, harness.ArrivalPoll)
}

// awaitAny waits until a query has a value, which may be 0.
func awaitAny(t *testing.T, prometheus prom.API, a asked, started time.Time) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		series, err := dashboards.Ask(t.Context(), prometheus, a.board, a.target, viewSince(started))
		if !assert.NoError(c, err) {
			return
		}
		values, _ := finite(series)
		assert.NotZero(c, values, a.target.Expr)
	}, dashboardTimeout, harness.ArrivalPoll)
}

// testChoices chooses each value that a variable offers: at least one panel must
// have something to say about it, if only that nothing failed.
func testChoices(t *testing.T, prometheus prom.API, board dashboards.Dashboard, variable dashboards.Variable, started time.Time) {
	view := viewSince(started)
	values, err := dashboards.Values(t.Context(), prometheus, board, variable, view)
	require.NoError(t, err)
	require.NotEmpty(t, values)
	for _, value := range values {
		view.Choices = map[string]string{variable.Name: regexpOf(value)}
		found := slices.ContainsFunc(targetsOf([]dashboards.Dashboard{board}), func(a asked) bool {
			if !strings.Contains(a.target.Expr, "$"+variable.Name) || strings.HasSuffix(a.target.Expr, "or vector(0)") {
				return false
			}
			series, err := dashboards.Ask(t.Context(), prometheus, board, a.target, view)
			require.NoError(t, err)
			shown, _ := finite(series)
			return shown > 0
		})
		assert.True(t, found, "nothing is shown of %s", value)
	}
	view.Choices = map[string]string{variable.Name: "nobody-is-called-this"}
	for _, a := range targetsOf([]dashboards.Dashboard{board}) {
		if !strings.Contains(a.target.Expr, "$"+variable.Name) {
			continue
		}
		series, err := dashboards.Ask(t.Context(), prometheus, board, a.target, view)
		require.NoError(t, err)
		_, others := finite(series)
		assert.Zero(t, others, "%s shows what was not chosen", a)
	}
}

// regexpOf quotes a value as Grafana does in a query: as a regular expression
// within a string.
func regexpOf(value string) string {
	var quoted strings.Builder
	for _, r := range value {
		if strings.ContainsRune(`\^$.*+?()[]{}|/`, r) {
			quoted.WriteString(`\\`)
		}
		quoted.WriteRune(r)
	}
	return quoted.String()
}

// testExemplars follows the diamonds of a graph to the traces behind them.
func testExemplars(t *testing.T, j *job, prometheus prom.API, boards []dashboards.Dashboard) {
	checked := 0
	for _, a := range targetsOf(boards) {
		if !a.target.Exemplar {
			continue
		}
		checked++
		t.Run(a.String(), func(t *testing.T) {
			var found []prom.ExemplarQueryResult
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				view := viewSince(j.started)
				var err error
				found, err = prometheus.QueryExemplars(t.Context(), view.Expand(a.board, a.target.Expr), view.Start, view.End)
				assert.NoError(c, err)
				assert.NotEmpty(c, found)
			}, dashboardTimeout, harness.ArrivalPoll)
			id := string(found[0].Exemplars[0].Labels["trace_id"])
			_, err := j.jaeger.Trace(t.Context(), id)
			assert.NoError(t, err, "the data source takes a trace's id from trace_id")
		})
	}
	assert.NotZero(t, checked)
}

func panelOf(t *testing.T, boards []dashboards.Dashboard, name, title string) (dashboards.Dashboard, dashboards.Panel) {
	t.Helper()
	for _, board := range boards {
		for _, panel := range board.Panels {
			if board.Name == name && panel.Title == title {
				return board, panel
			}
		}
	}
	t.Fatalf("there is no panel %q of %q", title, name)
	return dashboards.Dashboard{}, dashboards.Panel{}
}

// testRunsTable reads the line of the training job in the table that one sees
// first: run, GPUs, what bounds it, and whose it is.
func testRunsTable(t *testing.T, j *job, prometheus prom.API, boards []dashboards.Dashboard) {
	board, panel := panelOf(t, boards, "runs", "Runs")
	run := torchTelRuns(j)[0]
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		lines, err := dashboards.Table(t.Context(), prometheus, board, panel, viewSince(j.started))
		if !assert.NoError(c, err) {
			return
		}
		var found []dashboards.Line
		for _, line := range lines {
			if line.Text["Run"] == run {
				found = append(found, line)
			}
		}
		if !assert.Len(c, found, 1, "a run is a line") {
			return
		}
		assert.Equal(c, "torchtel", found[0].Text["Service"])
		assert.Equal(c, "user 1000", found[0].Text["Owner"])
		assert.Contains(c, []string{"gpu", "input", "checkpoint", "launch", "unknown"}, found[0].Text["Bound by"])
		// One GPU of its own, and half of the one that an inference worker is on.
		assert.InDelta(c, 1.5, found[0].Number["GPUs"], 1e-9)
		for _, number := range []string{"GPUs busy", "Goodput", "MFU", "Steps/s", "Tokens/s", "Attempts"} {
			assert.Positive(c, found[0].Number[number], number)
		}
	}, dashboardTimeout, harness.ArrivalPoll)

	// Each workload of each GPU is a line, the one without a run too.
	board, panel = panelOf(t, boards, "runs", "What runs on the GPUs")
	lines, err := dashboards.Table(t.Context(), prometheus, board, panel, viewSince(j.started))
	require.NoError(t, err)
	var owners []string
	for _, line := range lines {
		owners = append(owners, strings.Join([]string{line.Text["Index"], line.Text["Rank"], line.Text["Joined by"], line.Text["Service"], line.Text["Owner"]}, "/"))
	}
	assert.ElementsMatch(t, []string{"0/0/rank//user 1000", "1/1/rank//user 1000", "1///snakepit/user 1001"}, owners)
}

// testTraceLinks follows the links of the tables into Jaeger's search.
func testTraceLinks(t *testing.T, j *job, prometheus prom.API, boards []dashboards.Dashboard) {
	for _, of := range []struct{ board, title, column string }{
		{"runs", "Runs", "Run"}, {"errors", "Errors", "Operation"},
	} {
		t.Run(of.board, func(t *testing.T) {
			board, panel := panelOf(t, boards, of.board, of.title)
			lines, err := dashboards.Table(t.Context(), prometheus, board, panel, viewSince(j.started))
			require.NoError(t, err)
			require.NotEmpty(t, lines)
			links, err := panel.LinksOf(of.column)
			require.NoError(t, err)
			at := slices.IndexFunc(links, func(link dashboards.Link) bool { return strings.HasPrefix(link.URL, "/explore") })
			require.GreaterOrEqual(t, at, 0)
			for _, line := range lines {
				service, tag, value := followed(t, links[at].URL, line)
				found, err := j.jaeger.Search(t.Context(), service, map[string]string{tag: value}, 1)
				require.NoError(t, err)
				assert.NotEmpty(t, found, "%s, %s=%s", service, tag, value)
			}
		})
	}
}

// followed reads Explore's address as Grafana would open it for a line of a
// table.
func followed(t *testing.T, address string, line dashboards.Line) (service, tag, value string) {
	t.Helper()
	for name, text := range line.Text {
		address = strings.ReplaceAll(address, `${__data.fields["`+name+`"]}`, url.QueryEscape(text))
	}
	address = strings.NewReplacer("${__from}", "0", "${__to}", "1").Replace(address)
	require.NotContains(t, address, "$")
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	service, tags, ok := exploreQuery(t, parsed.Query().Get("panes"))
	require.True(t, ok)
	tag, value, ok = strings.Cut(tags, "=")
	require.True(t, ok)
	return service, tag, value
}

// The least range of a rate has to cover two flushes of ml_metrics.
func TestDataSourceInterval(t *testing.T) {
	read := func(into any, path ...string) {
		text, err := os.ReadFile(harness.Path(path...))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into))
	}
	var provisioned struct {
		Datasources []struct {
			UID      string
			JSONData struct {
				TimeInterval time.Duration `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	read(&provisioned, "docker", "grafana", "provisioning", "datasources", "otelcol-ml.yaml")
	var agent struct {
		Connectors struct {
			Metrics struct {
				Flush time.Duration `yaml:"flush_interval"`
			} `yaml:"ml_metrics"`
		}
	}
	read(&agent, "distribution", "config", "agent.yaml")
	for _, source := range provisioned.Datasources {
		if source.UID == "prometheus" {
			assert.Equal(t, agent.Connectors.Metrics.Flush, source.JSONData.TimeInterval)
			assert.Equal(t, dashboards.SourceInterval, source.JSONData.TimeInterval)
		}
	}
}
