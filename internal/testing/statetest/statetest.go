// Package statetest has a host whose components share a State, as those of a
// collector with the extension ml_state do.
package statetest

import (
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Host is a host, and its own extension. The zero value is ready to use.
type Host struct {
	component.StartFunc
	component.ShutdownFunc

	state shared.State
}

var _ shared.StateExtension = (*Host)(nil)

// GetExtensions returns the host.
func (h *Host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("ml_state"): h}
}

// State returns what the components tell each other.
func (h *Host) State() *shared.State { return &h.state }
