package mlstateextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Config is the configuration of the ml_state extension. It has no keys.
type Config struct{}

// NewFactory returns the factory of the ml_state extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type,
		func() component.Config { return new(Config) },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return new(state), nil
		},
		metadata.ExtensionStability)
}

// state is the extension.
type state struct {
	component.StartFunc
	component.ShutdownFunc

	shared shared.State
}

var _ shared.StateExtension = (*state)(nil)

// State returns what the components tell each other.
func (s *state) State() *shared.State { return &s.shared }
