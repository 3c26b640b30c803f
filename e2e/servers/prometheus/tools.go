//go:build tools

// Package prometheus pins the commands that e2e/servers/build.sh builds and,
// by go.sum, everything that they are made of.
package prometheus

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
