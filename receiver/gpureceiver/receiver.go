package gpureceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
)

// gpuReceiver makes the controller's Shutdown safe to call twice, quick while
// a call into the driver hangs, and bound to its context.
type gpuReceiver struct {
	scraping receiver.Metrics
	scraper  *gpuScraper

	stop     sync.Once
	stopped  chan struct{}
	stopping error
}

// Start begins to read GPUs. It does not wait for a driver.
func (r *gpuReceiver) Start(ctx context.Context, host component.Host) error {
	return r.scraping.Start(ctx, host)
}

// Shutdown ends a reading that is under way, waits for it, and lets the
// source go.
func (r *gpuReceiver) Shutdown(ctx context.Context) error {
	r.stop.Do(func() {
		r.stopped = make(chan struct{})
		r.scraper.interrupt()
		go func() {
			defer close(r.stopped)
			r.stopping = r.scraping.Shutdown(ctx)
		}()
	})
	select {
	case <-r.stopped:
		return r.stopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
