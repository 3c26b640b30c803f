package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// files reads the dashboards as Grafana gets them, strictly.
func files(t *testing.T) map[string]dashboard.Dashboard {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	read := map[string]dashboard.Dashboard{}
	paths, err := filepath.Glob(filepath.Join(written, "*"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var board dashboard.Dashboard
		require.NoError(t, board.UnmarshalJSONStrict(text), path)
		require.NoError(t, board.Validate(), path)
		read[strings.TrimSuffix(filepath.Base(path), ".json")] = board
	}
	require.NotEmpty(t, read)
	return read
}

func TestFilesAreInStepWithTheCode(t *testing.T) {
	read := files(t)
	for name, b := range all() {
		text, err := b.encode()
		require.NoError(t, err)
		file, err := os.ReadFile(filepath.Join(written, name+".json"))
		require.NoError(t, err, "run make generate")
		assert.Equal(t, string(text), string(file), "%s: run make generate", name)
		assert.Equal(t, name, b.Name)
		assert.Contains(t, read, name)
	}
	assert.Len(t, read, len(all()), "files that no code writes")
}

// panels are those of a dashboard that are no titles of rows.
func panelsOf(board dashboard.Dashboard) (panels []dashboard.Panel) {
	for _, p := range board.Panels {
		if p.Panel != nil {
			panels = append(panels, *p.Panel)
		}
	}
	return panels
}

func TestPanels(t *testing.T) {
	provisioned := sources(t)
	for name, board := range files(t) {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, uid(name), *board.Uid)
			assert.NotEmpty(t, *board.Description)
			ids, titles := map[uint32]bool{}, map[string]bool{}
			var taken [1000][columns]string
			for _, p := range board.Panels {
				if p.RowPanel != nil {
					assert.False(t, ids[p.RowPanel.Id], "two panels have the id %d", p.RowPanel.Id)
					ids[p.RowPanel.Id] = true
				}
			}
			for _, p := range panelsOf(board) {
				title := *p.Title
				assert.False(t, ids[*p.Id], "two panels have the id %d", *p.Id)
				ids[*p.Id] = true
				assert.False(t, titles[title], "two panels are called %s", title)
				titles[title] = true
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
						require.Less(t, x, uint32(columns), "%s leaves the grid", title)
						assert.Empty(t, taken[y][x], "%s lies over another panel", title)
						taken[y][x] = title
					}
				}
				if p.Type == "text" {
					assert.Empty(t, p.Targets)
					continue
				}
				assert.Contains(t, provisioned, *p.Datasource.Uid, title)
				assert.Regexp(t, `\.$`, *p.Description, "%s does not say where its number comes from", title)
				require.NotNil(t, p.FieldConfig, title)
				if p.Type != "table" {
					require.NotNil(t, p.FieldConfig.Defaults.Unit, "%s has no unit", title)
					assert.NotEmpty(t, *p.FieldConfig.Defaults.Unit, title)
				}
				require.NotEmpty(t, p.Targets, title)
				refs := map[string]bool{}
				for _, target := range p.Targets {
					query, ok := target.(*prom.Dataquery)
					require.True(t, ok, "%s: %T", title, target)
					assert.Contains(t, provisioned, *query.Datasource.Uid, title)
					assert.False(t, refs[*query.RefId], "%s has two queries %s", title, *query.RefId)
					refs[*query.RefId] = true
					if p.Type != "table" && p.Type != "stat" {
						assert.NotNil(t, query.LegendFormat, "%s: nothing says what the series of %s are", title, query.Expr)
					}
				}
			}
		})
	}
}

// sources are the uids of provisioning/datasources, with what each is.
func sources(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stack, "grafana", "provisioning", "datasources", "otelcol-ml.yaml"))
	require.NoError(t, err)
	var provisioning struct {
		Datasources []struct {
			UID, Type string
			JSONData  struct {
				ExemplarTraceIDDestinations []struct {
					DatasourceUID string `yaml:"datasourceUid"`
				} `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &provisioning))
	found := map[string]string{}
	for _, source := range provisioning.Datasources {
		found[source.UID] = source.Type
	}
	for _, source := range provisioning.Datasources {
		for _, destination := range source.JSONData.ExemplarTraceIDDestinations {
			assert.Equal(t, "jaeger", found[destination.DatasourceUID])
		}
	}
	require.Len(t, found, 2)
	return found
}

func TestDashboardsAreProvisioned(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(stack, "grafana", "provisioning", "dashboards", "otelcol-ml.yaml"))
	require.NoError(t, err)
	var provisioning struct {
		Providers []struct{ Options struct{ Path string } }
	}
	require.NoError(t, yaml.Unmarshal(text, &provisioning))
	require.Len(t, provisioning.Providers, 1)
	path := provisioning.Providers[0].Options.Path
	assert.Contains(t, string(text), "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH="+path+"/runs.json")

	text, err = os.ReadFile(filepath.Join(stack, "compose.yaml"))
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Environment any
			Volumes     []string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	grafana := compose.Services["grafana"]
	assert.Equal(t, path+"/runs.json", grafana.Environment.(map[string]any)["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
	assert.Contains(t, grafana.Volumes, "./grafana/dashboards:"+path+":ro")
	assert.Contains(t, grafana.Volumes, "./grafana/provisioning:/etc/grafana/provisioning:ro")
	assert.Contains(t, files(t), "runs")
}

var (
	inQuery = regexp.MustCompile(`\$(\w+)`)
	inLink  = regexp.MustCompile(`\$\{([^}]*)\}`)
	inField = regexp.MustCompile(`^__data\.fields\["(.*)"\]$`)
	ofBoard = regexp.MustCompile(`^/d/([^?]*)\?(.*)$`)
	chosen  = regexp.MustCompile(`var-(\w+)=`)
)

// builtIn are the variables that Grafana sets.
var builtIn = []string{"__range", "__rate_interval", "__from", "__to", "__url_time_range"}

func variablesOf(board dashboard.Dashboard) (names []string) {
	for _, v := range board.Templating.List {
		names = append(names, v.Name)
	}
	return names
}

func TestVariablesAreDefinedAndUsed(t *testing.T) {
	for name, board := range files(t) {
		t.Run(name, func(t *testing.T) {
			defined, used := variablesOf(board), map[string]bool{}
			require.NotEmpty(t, defined)
			read := func(where, expr string) {
				for _, found := range inQuery.FindAllStringSubmatch(expr, -1) {
					// "$1" is what label_replace has matched.
					if found[1] != "1" {
						assert.Contains(t, slices.Concat(defined, builtIn), found[1], where)
						used[found[1]] = true
					}
				}
			}
			for _, p := range panelsOf(board) {
				for _, target := range p.Targets {
					read(*p.Title, target.(*prom.Dataquery).Expr)
				}
			}
			for _, annotation := range board.Annotations.List {
				if annotation.Target != nil {
					read(annotation.Name, annotation.Target.(*prom.Dataquery).Expr)
				}
			}
			for _, v := range defined {
				assert.True(t, used[v], "nothing uses $%s", v)
			}
			for _, v := range board.Templating.List {
				assert.Equal(t, "prometheus", *v.Datasource.Uid)
				query, _ := v.Query.Map["query"].(string)
				for _, found := range inQuery.FindAllStringSubmatch(query, -1) {
					assert.Contains(t, defined, found[1], v.Name)
				}
				assert.Equal(t, everything, *v.AllValue, "%s: a series without the label belongs to All", v.Name)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	boards := files(t)
	for name, board := range boards {
		t.Run(name, func(t *testing.T) {
			links := 0
			for _, p := range panelsOf(board) {
				text, err := json.Marshal(p)
				require.NoError(t, err)
				var tree map[string]any
				require.NoError(t, json.Unmarshal(text, &tree))
				names := columnsOf(p)
				for _, address := range urls(tree) {
					links++
					checkLink(t, fmt.Sprintf("%s: %s", *p.Title, address), address, names, variablesOf(board), boards)
				}
			}
			assert.NotZero(t, links+len(board.Links))
			require.Len(t, board.Links, 1, "the way to the other dashboards")
			assert.True(t, board.Links[0].IncludeVars && board.Links[0].KeepTime)
			assert.Equal(t, board.Tags, board.Links[0].Tags)
		})
	}
}

// checkLink looks at one link: where it leads, and what it takes along.
func checkLink(t *testing.T, where, address string, columns, variables []string, boards map[string]dashboard.Dashboard) {
	t.Helper()
	for _, found := range inLink.FindAllStringSubmatch(address, -1) {
		field := inField.FindStringSubmatch(found[1])
		switch {
		case field != nil:
			assert.Contains(t, columns, field[1], where)
		case strings.HasPrefix(found[1], "__field.labels."):
		default:
			variable, _, _ := strings.Cut(found[1], ":")
			assert.Contains(t, slices.Concat(builtIn, variables), variable, where)
		}
	}
	if explore, found := strings.CutPrefix(address, "/explore?schemaVersion=1&panes="); found {
		text, err := url.QueryUnescape(strings.NewReplacer(`["`, "", `"]`, "").Replace(explore))
		require.NoError(t, err, where)
		var panes map[string]struct {
			Datasource string
			Queries    []struct{ QueryType, Service, Tags string }
			Range      struct{ From, To string }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &panes), where)
		assert.Contains(t, sources(t), panes["a"].Datasource)
		assert.Equal(t, "search", panes["a"].Queries[0].QueryType)
		assert.NotEmpty(t, panes["a"].Queries[0].Service)
		return
	}
	to := ofBoard.FindStringSubmatch(address)
	require.NotNil(t, to, where)
	assert.Contains(t, to[2], "${__url_time_range}", "%s forgets the time", where)
	target, found := boards[strings.TrimPrefix(to[1], uid(""))]
	require.True(t, found, where)
	for _, variable := range chosen.FindAllStringSubmatch(to[2], -1) {
		assert.Contains(t, variablesOf(target), variable[1], where)
	}
}

// columnsOf are the names that a table's columns have in the end.
func columnsOf(p dashboard.Panel) (names []string) {
	for _, transformation := range p.Transformations {
		if options, ok := transformation.Options.(map[string]any); ok {
			renamed, _ := options["renameByName"].(map[string]any)
			for _, to := range renamed {
				names = append(names, to.(string))
			}
		}
	}
	return names
}

// numbersOf are the names of the columns that show values, not labels.
func numbersOf(p dashboard.Panel) (names []string) {
	for _, transformation := range p.Transformations {
		if options, ok := transformation.Options.(map[string]any); ok {
			renamed, _ := options["renameByName"].(map[string]any)
			for from, to := range renamed {
				if strings.HasPrefix(from, "Value") {
					names = append(names, to.(string))
				}
			}
		}
	}
	return names
}

// urls finds every link below a value.
func urls(value any) (found []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if text, ok := below.(string); ok && key == "url" {
				found = append(found, text)
				continue
			}
			found = append(found, urls(below)...)
		}
	case []any:
		for _, below := range value {
			found = append(found, urls(below)...)
		}
	}
	return found
}

// What is heading of a column must be of one that there is.
func TestColumns(t *testing.T) {
	for name, board := range files(t) {
		for _, p := range panelsOf(board) {
			if p.Type != "table" {
				continue
			}
			names := columnsOf(p)
			require.NotEmpty(t, names, "%s: %s", name, *p.Title)
			for _, override := range p.FieldConfig.Overrides {
				assert.Equal(t, "byName", override.Matcher.Id)
				assert.Contains(t, names, override.Matcher.Options, "%s: %s", name, *p.Title)
			}
			for _, column := range numbersOf(p) {
				assert.True(t, slices.ContainsFunc(p.FieldConfig.Overrides, func(o dashboard.DashboardFieldConfigSourceOverrides) bool {
					return o.Matcher.Options == column && slices.ContainsFunc(o.Properties, func(property dashboard.DynamicConfigValue) bool { return property.Id == "unit" })
				}), "%s: %s: the column %s has no unit", name, *p.Title, column)
			}
			for _, sorted := range sortedBy(t, p) {
				assert.Contains(t, names, sorted.DisplayName, "%s: %s", name, *p.Title)
			}
		}
	}
}

func sortedBy(t *testing.T, p dashboard.Panel) []common.TableSortByFieldState {
	t.Helper()
	text, err := json.Marshal(p.Options)
	require.NoError(t, err)
	var options struct {
		SortBy []common.TableSortByFieldState
	}
	require.NoError(t, json.Unmarshal(text, &options))
	return options.SortBy
}
