package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// heading is what every panel has.
type heading struct {
	Title string
	// About says where the numbers come from and what they cannot show.
	About string
	Width uint32
	// Unit is one of Grafana's.
	Unit string
}

// query is PromQL with the legend of its series.
type query struct {
	Expr, Legend string
	// Exemplars shows the traces behind counters, which a click opens.
	Exemplars bool
}

// step is a threshold: from At on, the color is Color. The first step has no
// At.
type step struct {
	At    float64
	Color string
}

// The colours of states, Grafana's own names.
const (
	good    = "green"
	warning = "orange"
	bad     = "red"
	neutral = "blue"
	quiet   = "text"
)

// shown is the text and color of a value.
type shown struct{ Value, Text, Color string }

func ref(i int) string { return string(rune('A' + i)) }

func (q query) target(i int) *prom.DataqueryBuilder {
	built := prom.NewDataqueryBuilder().Expr(q.Expr).RefId(ref(i)).Datasource(prometheusSource).EditorMode(prom.QueryEditorModeCode)
	if q.Legend != "" {
		built = built.LegendFormat(q.Legend)
	}
	return built
}

func thresholds(steps []step) cog.Builder[dashboard.ThresholdsConfig] {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(thresholdSteps(steps))
}

func thresholdSteps(steps []step) []dashboard.Threshold {
	if len(steps) == 0 {
		steps = []step{{Color: good}}
	}
	built := []dashboard.Threshold{{Color: steps[0].Color}}
	for _, s := range steps[1:] {
		built = append(built, dashboard.Threshold{Value: new(s.At), Color: s.Color})
	}
	return built
}

func mappings(values []shown) []dashboard.ValueMapping {
	if len(values) == 0 {
		return nil
	}
	options := map[string]dashboard.ValueMappingResult{}
	for i, v := range values {
		options[v.Value] = dashboard.ValueMappingResult{Text: new(v.Text), Color: new(v.Color), Index: new(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

func dataLinks(links []link) []cog.Builder[dashboard.DashboardLink] {
	var built []cog.Builder[dashboard.DashboardLink]
	for _, l := range links {
		built = append(built, l.builder())
	}
	return built
}

// number is a single value, with its recent history in the background if Past
// is set.
type number struct {
	heading
	Expr     string
	Decimals int
	Past     bool
	Steps    []step
	Values   []shown
	// None is what stands there without a value.
	None  string
	Links []link
}

func (n number) build() (dashboard.Panel, error) {
	graph := common.BigValueGraphModeNone
	if n.Past {
		graph = common.BigValueGraphModeArea
	}
	none := n.None
	if none == "" {
		none = "no data"
	}
	return stat.NewPanelBuilder().
		Title(n.Title).Description(n.About).Datasource(prometheusSource).Span(n.Width).
		Unit(n.Unit).Decimals(float64(n.Decimals)).NoValue(none).
		Thresholds(thresholds(n.Steps)).Mappings(mappings(n.Values)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		DataLinks(dataLinks(n.Links)).
		Orientation(common.VizOrientationAuto).
		GraphMode(graph).ColorMode(common.BigValueColorModeValue).TextMode(common.BigValueTextModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Values(false)).
		WithTarget(query{Expr: n.Expr}.target(0).Range()).
		Build()
}

// graph shows lines over time, or stacked areas.
type graph struct {
	heading
	Queries []query
	// Stack puts the series on top of each other; Whole makes them add up to
	// 100 %.
	Stack, Whole bool
	// Top is the maximum of the axis, 0 for automatic.
	Top float64
	// Steps are drawn as lines.
	Steps []step
	// Colors are the colors of series, by name.
	Colors []shown
	// None is what stands there without a line.
	None  string
	Links []link
}

func (g graph) build() (dashboard.Panel, error) {
	builder := timeseries.NewPanelBuilder().
		Title(g.Title).Description(g.About).Datasource(prometheusSource).Span(g.Width).
		Unit(g.Unit).Min(0).
		// Fills of several lines hide each other.
		LineWidth(1).FillOpacity(0).ShowPoints(common.VisibilityModeNever).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Thresholds(thresholds(g.Steps)).
		DataLinks(dataLinks(g.Links)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			Calcs([]string{"mean", "max", "lastNotNull"}))
	if g.None != "" {
		builder = builder.NoValue(g.None)
	}
	if g.Top != 0 {
		builder = builder.Max(g.Top)
	}
	switch {
	case g.Whole:
		builder = builder.FillOpacity(60).LineWidth(0).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModePercent).Group("A"))
	case g.Stack:
		builder = builder.FillOpacity(60).LineWidth(0).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if len(g.Steps) > 0 {
		builder = builder.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, c := range g.Colors {
		builder = builder.OverrideByName(c.Value, []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": c.Color}},
		})
	}
	for i, q := range g.Queries {
		builder = builder.WithTarget(q.target(i).Range().Exemplar(q.Exemplars))
	}
	return builder.Build()
}

// bars shows the latest value of each series side by side.
type bars struct {
	heading
	Queries []query
	// Counts rounds to whole numbers, because increases are estimates.
	Counts bool
	Steps  []step
	Links  []link
}

func (b bars) build() (dashboard.Panel, error) {
	builder := bargauge.NewPanelBuilder().
		Title(b.Title).Description(b.About).Datasource(prometheusSource).Span(b.Width).
		Unit(b.Unit).Min(0).NoValue("none").
		Thresholds(thresholds(b.Steps)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		DataLinks(dataLinks(b.Links)).
		Orientation(common.VizOrientationHorizontal).DisplayMode(common.BarGaugeDisplayModeBasic).
		ValueMode(common.BarGaugeValueModeText).NamePlacement(common.BarGaugeNamePlacementTop).ShowUnfilled(true).
		// Text grows with its bar: that of a few tall ones hides their names.
		Sizing(common.BarGaugeSizingManual).MinVizHeight(32).MaxVizHeight(40).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Values(false))
	if b.Counts {
		builder = builder.Decimals(0)
	}
	for i, q := range b.Queries {
		builder = builder.WithTarget(q.target(i).Instant())
	}
	return builder.Build()
}

// states shows a bar over time for each series, in the color of its state.
type states struct {
	heading
	Queries []query
	Values  []shown
	Links   []link
}

func (s states) build() (dashboard.Panel, error) {
	builder := statetimeline.NewPanelBuilder().
		Title(s.Title).Description(s.About).Datasource(prometheusSource).Span(s.Width).
		Unit(s.Unit).NoValue("none").
		Mappings(mappings(s.Values)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Thresholds(thresholds([]step{{Color: quiet}})).
		DataLinks(dataLinks(s.Links)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		MergeValues(true).ShowValue(common.VisibilityModeNever).RowHeight(0.8).LineWidth(0).FillOpacity(80).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
	for i, q := range s.Queries {
		builder = builder.WithTarget(q.target(i).Range())
	}
	return builder.Build()
}

// note is Markdown text.
type note struct {
	heading
	Text string
}

func (n note) build() (dashboard.Panel, error) {
	return text.NewPanelBuilder().
		Title(n.Title).Description(n.About).Span(n.Width).
		Mode(text.TextModeMarkdown).Content(n.Text).
		Build()
}
