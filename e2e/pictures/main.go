// Command pictures draws the dashboards of docker/grafana for the
// documentation, where no Grafana can run: it asks a Prometheus what the panels
// ask and draws the answers. It knows the types of panels, units and colours
// that these dashboards use, and refuses any other. What it draws looks like
// Grafana and says that it is not.
//
// Without -prometheus it starts the collector, Jaeger and Prometheus as the
// end-to-end tests do, lets mlgen send for -for, and asks that one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	prom "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func main() {
	prometheus := flag.String("prometheus", "", "the address of a running Prometheus, such as http://127.0.0.1:9090; without one, a stack is started")
	during := flag.Duration("for", 10*time.Minute, "how long the workloads run before the pictures are drawn, and how far these look back")
	out := flag.String("out", harness.Path("docs", "images"), "the folder of the pictures")
	flag.Parse()
	if *prometheus != "" {
		if err := pictures(context.Background(), *prometheus, *out, *during); err != nil {
			fmt.Fprintln(os.Stderr, "pictures:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.RunProgram(func(suite *harness.Suite) {
		address := startStack(suite, *during)
		if err := pictures(suite.Context(), address, *out, *during); err != nil {
			suite.Fatal(err)
		}
	}))
}

// pictures draws all dashboards as they are now.
func pictures(ctx context.Context, address, out string, during time.Duration) error {
	client, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		return err
	}
	boards, err := dashboards.Load(harness.Path("docker", "grafana", "dashboards"))
	if err != nil {
		return err
	}
	end := time.Now()
	source := source{prom.NewAPI(client), dashboards.View{Start: end.Add(-during), End: end, Step: step(during)}}
	for _, board := range boards {
		if err := drawBoard(ctx, source, board, filepath.Join(out, "dashboard-"+board.Name+".png")); err != nil {
			return fmt.Errorf("%s: %w", board.Name, err)
		}
	}
	return nil
}

// step is the time between two points: what Grafana would take for a graph that
// is some hundred points wide, and no less than its least.
func step(during time.Duration) time.Duration {
	return max(5*time.Second, (during / 300).Round(time.Second))
}

// source is where answers come from, and of what time.
type source struct {
	api  prom.API
	view dashboards.View
}
