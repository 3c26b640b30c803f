package main

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// link leads from a value to more detail.
type link struct{ Title, URL string }

func (l link) made() dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: l.Title, Type: dashboard.DashboardLinkTypeLink, Url: new(l.URL), Tags: []string{}}
}

func (l link) builder() cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder(l.Title).Type(dashboard.DashboardLinkTypeLink).Url(l.URL)
}

// Where a value of a line, or of a series, comes from in a link.
func ofColumn(name string) string { return `${__data.fields["` + name + `"]}` }
func ofLabel(name string) string  { return "${__field.labels." + name + "}" }

// toBoard opens another dashboard with one variable set and the same time
// range.
func toBoard(title, name, variable, value string) link {
	return link{Title: title, URL: "/d/" + uid(name) + "?var-" + variable + "=" + value + "&${__url_time_range}"}
}

// toTraces opens Jaeger's search for a service and a span attribute in the same
// time range.
func toTraces(title, service, attribute, value string) link {
	pane := map[string]any{"a": map[string]any{
		"datasource": "jaeger",
		"queries": []any{map[string]any{
			"refId": "A", "datasource": map[string]any{"type": "jaeger", "uid": "jaeger"},
			"queryType": "search", "service": service, "tags": attribute + "=" + value, "limit": 50,
		}},
		"range": map[string]any{"from": "${__from}", "to": "${__to}"},
	}}
	text, err := json.Marshal(pane)
	if err != nil {
		panic(err)
	}
	return link{Title: title, URL: "/explore?schemaVersion=1&panes=" + escape(string(text))}
}

var reference = regexp.MustCompile(`\$\{[^}]*\}`)

// escape escapes a query's value, except references to variables, which Grafana
// replaces by escaped values.
func escape(text string) string {
	var escaped strings.Builder
	rest := text
	for {
		at := reference.FindStringIndex(rest)
		if at == nil {
			return escaped.String() + url.QueryEscape(rest)
		}
		escaped.WriteString(url.QueryEscape(rest[:at[0]]))
		// JSON has escaped the quotation marks of a column's name.
		escaped.WriteString(strings.ReplaceAll(rest[at[0]:at[1]], `\"`, `"`))
		rest = rest[at[1]:]
	}
}
