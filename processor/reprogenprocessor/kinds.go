package reprogenprocessor

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/httprequest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncode"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/statement"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/trainstep"
)

// kinds returns the kinds of artifacts, in the order in which they are tried. A new
// kind is a package below internal/kind and a line here.
func kinds() kind.Registry {
	return kind.Registry{
		pythoncall.New(),
		pythoncode.New(),
		httprequest.NewChat(),
		httprequest.New(),
		trainstep.New(),
		statement.New(),
	}
}
