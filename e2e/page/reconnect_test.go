package page

import (
	"fmt"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestACollectorThatGoesAway kills the collector under an open page and starts it
// again on the same port.
func TestACollectorThatGoesAway(t *testing.T) {
	t.Parallel()
	endpoint := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	sender := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	start := func() *harness.Collector {
		return startCollector(t, map[string]any{
			"exporters::ml_view::endpoint":               endpoint,
			"receivers::otlp::protocols::grpc::endpoint": sender,
		})
	}
	c := start()
	harness.StartGenerator(t, harness.Endpoints{GRPC: sender}, harness.Workload{Seed: 1, Scenarios: "torchtel", Rate: 2, Ranks: 2, MetricsInterval: metricsInterval})
	// The browser logs each attempt to connect that fails.
	tab := visit(t, "http://"+endpoint, "", "network")
	tab.Await(row("runs", "torchtel"))
	tab.Await("!" + gone)

	c.Kill(t)
	tab.Await(gone)
	tab.Await(row("runs", "torchtel")) // What was known stays.

	start()
	tab.Await("!" + gone)
	tab.Await(row("runs", "torchtel"))
}
