// Package grafana has the tests that draw the dashboards in a real browser with the
// packages that Grafana itself draws with, and look at what became of each panel. The
// folder page has the page that they are drawn on.
package grafana
