// Package dashboards reads the dashboards of docker/grafana and asks a
// Prometheus what their panels ask, the way Grafana does: variables replaced,
// ranges and instants, and tables merged. The end-to-end tests look at the
// answers.
package dashboards
