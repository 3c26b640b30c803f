package gpureceiver

import (
	"context"

	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// gpuReceiver makes the controller's Shutdown safe to call twice, and lets it
// return when its context ends or while a driver call hangs.
type gpuReceiver struct {
	receiver.Metrics
	scraper *gpuScraper
	stop    shared.Stop
}

// Shutdown interrupts the current reading, waits for it, and releases the
// source.
func (r *gpuReceiver) Shutdown(ctx context.Context) error {
	r.scraper.interrupt()
	return r.stop.Do(ctx, func() error { return r.Metrics.Shutdown(ctx) })
}
