package gpureceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
)

// gpuReceiver makes the controller's Shutdown safe to call twice, and lets it
// return when its context ends or while a driver call hangs.
type gpuReceiver struct {
	scraping receiver.Metrics
	scraper  *gpuScraper

	stop     sync.Once
	stopped  chan struct{}
	stopping error
}

// Start starts the readings. It does not wait for a driver.
func (r *gpuReceiver) Start(ctx context.Context, host component.Host) error {
	return r.scraping.Start(ctx, host)
}

// Shutdown interrupts the current reading, waits for it, and releases the
// source.
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
