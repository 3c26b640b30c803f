package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// The data sources, as provisioning/datasources names them.
var (
	prometheusSource = common.DataSourceRef{Type: new("prometheus"), Uid: new("prometheus")}
	builtInSource    = common.DataSourceRef{Type: new("grafana"), Uid: new("-- Grafana --")}
)

// tag is how the dashboards find each other.
const tag = "otelcol-ml"

// uid returns the id in a dashboard's address and in the links to it.
func uid(name string) string { return tag + "-" + name }

// board is a dashboard.
type board struct {
	Name, Title, About string
	// From is how far back it looks at first, such as "now-1h".
	From      string
	Variables []variable
	Marks     []mark
	Rows      []row
}

// row is a row of panels, 24 columns wide, with an optional title.
type row struct {
	Title  string
	Height uint32
	Panels []panel
}

// panel builds a panel.
type panel interface {
	build() (dashboard.Panel, error)
}

// variable is a selector above the panels, with the values of a label.
type variable struct {
	Name, Label, About string
	// Metric and Of are what has the label, and the label.
	Metric, Of string
}

// mark is an annotation: a line through all graphs while a query has a value.
type mark struct {
	Name, Color, Expr string
}

func (b *board) build() (dashboard.Dashboard, error) {
	builder := dashboard.NewDashboardBuilder(b.Title).
		Uid(uid(b.Name)).
		Description(b.About).
		Tags([]string{tag}).
		Time(b.From, "now").
		Timezone("browser").
		Refresh("15s").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Editable().
		Link(dashboard.NewDashboardLinkBuilder("otelcol-ml").
			Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).
			Icon("external link").
			Tooltip("The other dashboards, with the same choices and time").
			AsDropdown(false).IncludeVars(true).KeepTime(true))
	for _, v := range b.Variables {
		builder = builder.WithVariable(v.builder())
	}
	builder = builder.Annotation(dashboard.NewAnnotationQueryBuilder().
		Name("Annotations & Alerts").Datasource(builtInSource).Enable(true).Hide(true).
		IconColor("rgba(0, 211, 255, 1)").Type("dashboard").BuiltIn(1))
	for _, m := range b.Marks {
		builder = builder.Annotation(m.builder())
	}
	built, err := builder.Build()
	if err != nil {
		return dashboard.Dashboard{}, err
	}
	built.Panels, err = b.place()
	return built, err
}

// place puts the panels below and beside each other and numbers them.
func (b *board) place() (placed []dashboard.PanelOrRowPanel, err error) {
	var id, y uint32
	for _, r := range b.Rows {
		if r.Title != "" {
			id++
			placed = append(placed, dashboard.PanelOrRowPanel{RowPanel: &dashboard.RowPanel{
				Type: "row", Title: new(r.Title), Id: id,
				GridPos: &dashboard.GridPos{X: 0, Y: y, W: columns, H: 1},
				Panels:  []dashboard.Panel{},
			}})
			y++
		}
		var x uint32
		for _, p := range r.Panels {
			built, err := p.build()
			if err != nil {
				return nil, err
			}
			id++
			built.Id = new(id)
			built.GridPos.X, built.GridPos.Y, built.GridPos.H = x, y, r.Height
			x += built.GridPos.W
			placed = append(placed, dashboard.PanelOrRowPanel{Panel: &built})
		}
		y += r.Height
	}
	return placed, nil
}

// columns is the width of Grafana's grid.
const columns = 24

// everything is the value of "All". It also matches series without the label.
const everything = ".*"

func (v variable) builder() cog.Builder[dashboard.VariableModel] {
	query := "label_values(" + v.Metric + ", " + v.Of + ")"
	return dashboard.NewQueryVariableBuilder(v.Name).
		Label(v.Label).
		Description(v.About).
		Datasource(prometheusSource).
		Query(dashboard.StringOrMap{Map: map[string]any{"query": query, "refId": v.Name, "qryType": 1}}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(everything).
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

func (m mark) builder() cog.Builder[dashboard.AnnotationQuery] {
	return dashboard.NewAnnotationQueryBuilder().
		Name(m.Name).
		Datasource(prometheusSource).
		Enable(true).
		IconColor(m.Color).
		Expr(m.Expr).
		Target(prom.NewDataqueryBuilder().Expr(m.Expr).RefId("Anno").Datasource(prometheusSource).Range())
}
