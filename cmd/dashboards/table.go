package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	grafanatable "github.com/grafana/grafana-foundation-sdk/go/table"
)

// table shows current values, one line for each set of labels that the queries
// share. Fields without a column are hidden.
type table struct {
	heading
	Queries []string
	Columns []column
	// Hidden are query values without a column.
	Hidden []string
	// SortBy is the name of a column.
	SortBy    string
	Ascending bool
	None      string
}

// column is a label or the value of a query.
type column struct {
	// Field is the label's name, or "A" for the first query's value and so on.
	Field string
	Name  string
	Unit  string
	// Decimals is the number of decimal places, -1 for automatic.
	Decimals int
	Width    int
	Steps    []step
	Values   []shown
	// Bar draws the value as a fraction of Top.
	Bar   bool
	Top   float64
	Links []link
}

func (t table) build() (dashboard.Panel, error) {
	builder := grafanatable.NewPanelBuilder().
		Title(t.Title).Description(t.About).Datasource(prometheusSource).Span(t.Width).
		NoValue("–").
		Thresholds(thresholds([]step{{Color: quiet}})).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		ShowHeader(true).CellHeight(common.TableCellHeightSm).Filterable(true).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
		WithTransformation(t.merge()).
		WithTransformation(t.organize())
	if t.None != "" {
		builder = builder.NoValue(t.None)
	}
	if t.SortBy != "" {
		builder = builder.SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(t.SortBy).Desc(!t.Ascending),
		})
	}
	for i, expr := range t.Queries {
		builder = builder.WithTarget(query{Expr: expr}.target(i).Instant().Format(prom.PromQueryFormatTable))
	}
	for _, c := range t.Columns {
		builder = builder.OverrideByName(c.Name, c.properties())
	}
	return builder.Build()
}

func (t table) merge() dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}
}

// organize orders, names and hides the fields.
func (t table) organize() dashboard.DataTransformerConfig {
	order, names, hidden := map[string]any{}, map[string]any{}, map[string]any{"Time": true}
	for i, c := range t.Columns {
		order[t.field(c)] = i
		names[t.field(c)] = c.Name
	}
	for _, field := range t.Hidden {
		hidden[t.field(column{Field: field})] = true
	}
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "indexByName": order, "renameByName": names,
	}}
}

// field is what Grafana calls a query's value: with its letter if there are
// several.
func (t table) field(c column) string {
	if len(c.Field) != 1 {
		return c.Field
	}
	if len(t.Queries) == 1 {
		return "Value"
	}
	return "Value #" + c.Field
}

func (c column) properties() []dashboard.DynamicConfigValue {
	properties := []dashboard.DynamicConfigValue{}
	set := func(id string, value any) {
		properties = append(properties, dashboard.DynamicConfigValue{Id: id, Value: value})
	}
	// Or else Grafana writes the text of an empty table into empty cells, too.
	set("noValue", "")
	if c.Unit != "" {
		set("unit", c.Unit)
		// A filter's icon covers the names of narrow columns.
		set("custom.filterable", false)
		if c.Decimals >= 0 {
			set("decimals", c.Decimals)
		}
	}
	if c.Width != 0 {
		set("custom.width", c.Width)
	}
	if len(c.Steps) > 0 {
		set("thresholds", dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: thresholdSteps(c.Steps)})
	}
	if len(c.Values) > 0 {
		set("mappings", mappings(c.Values))
	}
	switch {
	case c.Bar:
		set("min", 0)
		set("max", c.Top)
		set("custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"})
	case len(c.Steps) > 0 || len(c.Values) > 0:
		set("custom.cellOptions", map[string]any{"type": "color-text"})
	}
	if len(c.Links) > 0 {
		var links []dashboard.DashboardLink
		for _, l := range c.Links {
			links = append(links, l.made())
		}
		set("links", links)
	}
	return properties
}
