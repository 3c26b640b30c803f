package intake

import (
	"context"
	"net"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
)

const (
	// headerCollector is the header of a request that names the collector that sends it.
	headerCollector = "collector-instance-id"
	// attrCollector and labelCollector are the attributes of a point or a resource that
	// name the collector that has computed a series, where no header does: that of
	// span_metrics, and the usual instance_label of ml_metrics.
	attrCollector  = "collector.instance.id"
	labelCollector = "collector_instance_id"
	headerAgent    = "user-agent"
)

// connectionOf returns what a request says of the collector that has sent it. Headers
// are known only if the receiver has include_metadata.
func connectionOf(ctx context.Context) (from fleet.Connection) {
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

// name returns the connection with the name that an attribute has, if no header names
// the collector.
func name(from fleet.Connection, attribute pcommon.Value) fleet.Connection {
	if from.Collector == "" {
		from.Collector = text(attribute)
	}
	return from
}
