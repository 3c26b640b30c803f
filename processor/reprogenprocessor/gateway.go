package reprogenprocessor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/evidence"
)

// gateway asks a page for the runs that hang. A run over several hosts is concluded where all
// of its data arrives, and no way leads from there to its hosts.
type gateway struct {
	*hangs
	client *http.Client
	// tag is that of the last answer.
	tag    string
	asking shared.Loop
	// known are the hangs of the last answer, which have been looked at.
	known map[string]bool
}

// start begins to ask, if an endpoint is set.
func (g *gateway) start(ctx context.Context, host component.Host, set component.TelemetrySettings) (err error) {
	cfg := &g.writer.cfg.Evidence.Gateway
	if cfg.Endpoint == "" {
		return nil
	}
	if g.client, err = cfg.ToClient(ctx, host.GetExtensions(), set); err != nil {
		return fmt.Errorf(`"evidence::gateway": %w`, err)
	}
	g.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	every := g.writer.cfg.limits.ask
	g.asking.Start(rand.N(every), every, g.ask) // #nosec G404 -- only spreads them
	return nil
}

// ask asks once, and lets each hang wait for its evidence that was not in the last answer.
func (g *gateway) ask(ctx context.Context) {
	hangs, tag, err := evidence.Ask(ctx, g.client, g.writer.cfg.Evidence.Gateway.Endpoint, g.tag)
	outcome := "answered"
	if ctx.Err() != nil {
		return // the collector stops
	}
	if err != nil {
		outcome = "failed"
		g.writer.warn("The gateway did not say which runs hang", err)
	}
	g.writer.telemetry.ProcessorReproGenGatewayQuestions.Add(ctx, 1, metric.WithAttributes(g.writer.id, attribute.String("outcome", outcome)))
	if err != nil || tag == g.tag && tag != "" {
		return
	}
	was := g.known
	g.tag, g.known = tag, make(map[string]bool)
	for i := range hangs {
		if said, ok := hangs[i].Verdict(); ok {
			g.conclude(g.elsewhere, said)
		}
		if g.known[hangs[i].ID] = true; was[hangs[i].ID] {
			continue
		}
		select {
		case g.waiting <- hangs[i]: // the next question waits, too
		case <-ctx.Done():
			return
		}
	}
}
