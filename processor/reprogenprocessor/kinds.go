package reprogenprocessor

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/httprequest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncode"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/statement"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/trainstep"
)

// newKind makes a kind of artifacts.
type newKind func() *kind.Kind

// kinds are the kinds of artifacts, in the order in which they are tried. A new
// kind is a package below internal/kind and a line here.
var kinds = []newKind{
	pythoncall.New,
	pythoncode.New,
	httprequest.NewChat,
	httprequest.New,
	trainstep.New,
	statement.New,
}

func registryOf(kinds []newKind) kind.Registry {
	registry := make(kind.Registry, len(kinds))
	for i, make := range kinds {
		registry[i] = make()
	}
	return registry
}
