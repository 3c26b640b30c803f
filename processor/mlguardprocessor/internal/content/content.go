// Package content is not written yet.
package content

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Config is the section of ml_guard's configuration.
type Config struct{}

// Validate reports values that are not allowed, with their keys.
func (c *Config) Validate() error { return nil }

// Counts is what one call changed.
type Counts struct{}

// Filter applies one Config. Any number of goroutines may use it.
type Filter struct{}

// New returns a Filter.
func New(*Config) (*Filter, error) { return &Filter{}, nil }

// Traces changes td in place.
func (f *Filter) Traces(ptrace.Traces) Counts { return Counts{} }

// Metrics changes md in place.
func (f *Filter) Metrics(pmetric.Metrics) Counts { return Counts{} }

// Logs changes ld in place.
func (f *Filter) Logs(plog.Logs) Counts { return Counts{} }
