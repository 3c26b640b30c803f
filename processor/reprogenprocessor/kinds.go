package reprogenprocessor

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/genaichat"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/httprequest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncode"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/statement"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/trainstep"
)

// newKind makes a kind of artifacts for a configuration.
type newKind func(*Config) *kind.Kind

// kinds are the kinds of artifacts, in the order in which they are tried. A new
// kind is a package below internal/kind and a line here.
var kinds = []newKind{
	func(cfg *Config) *kind.Kind { return pythoncall.New(cfg.CallAttributes) },
	func(*Config) *kind.Kind { return pythoncode.New() },
	func(*Config) *kind.Kind { return genaichat.New() },
	func(*Config) *kind.Kind { return httprequest.New() },
	func(*Config) *kind.Kind { return trainstep.New() },
	func(*Config) *kind.Kind { return statement.New() },
}

func registryOf(kinds []newKind, cfg *Config) kind.Registry {
	registry := make(kind.Registry, len(kinds))
	for i, make := range kinds {
		registry[i] = make(cfg)
	}
	return registry
}
