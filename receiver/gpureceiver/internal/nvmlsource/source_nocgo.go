//go:build !cgo || !linux

package nvmlsource

import (
	"context"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// Source stands for the GPUs in a program that cannot call NVML.
type Source struct {
	opts   Options
	states stateLog
}

// New returns a source whose driver has the state unsupported_build.
func New(opts Options) *Source { return &Source{opts: opts, states: stateLog{logger: opts.Logger}} }

// Start implements device.Source.
func (s *Source) Start(context.Context, func(device.Event)) error {
	return shared.Check(!s.opts.RequireBuild, `"source" "nvml" needs a collector that was built with cgo on Linux; allowed in this one are "auto" and "replay"`)
}

// Shutdown implements device.Source.
func (*Source) Shutdown(context.Context) error { return nil }

// Snapshot implements device.Source.
func (s *Source) Snapshot(context.Context) device.Snapshot {
	s.states.driver(device.DriverUnsupportedBuild, "")
	return device.Snapshot{System: device.System{Host: workload.HostName(s.opts.RootPath)}, Driver: device.DriverUnsupportedBuild}
}

// Tally returns no counts.
func (*Source) Tally() Tally { return Tally{} }
