package intake

import (
	"context"
	"net"
	"strings"

	"go.opentelemetry.io/collector/client"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

const (
	// attrCollector is the attribute of a point or a resource that names the collector
	// that has computed the series. The connector span_metrics has it, too.
	attrCollector = "collector.instance.id"
	// headerCollector is the header of a request that names the collector that sends it.
	headerCollector = "collector-instance-id"
	headerAgent     = "user-agent"
)

// connectionOf returns what a request says of the collector that has sent it. Headers
// are known only if the receiver has include_metadata.
func connectionOf(ctx context.Context) (from model.Connection) {
	info := client.FromContext(ctx)
	if named := info.Metadata.Get(headerCollector); len(named) > 0 {
		from.Collector = named[0]
	}
	if agent := info.Metadata.Get(headerAgent); len(agent) > 0 {
		product, _, _ := strings.Cut(agent[0], " ")
		_, from.Version, _ = strings.Cut(product, "/")
	}
	if info.Addr != nil {
		from.Address = info.Addr.String()
		if host, _, err := net.SplitHostPort(from.Address); err == nil {
			from.Address = host
		}
	}
	return from
}
