package mlmetricsconnector

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

const (
	// countsInterval is the time between two saves of the counts.
	countsInterval = time.Second
	// maxCounts limits what is read of them, in bytes.
	maxCounts = 1 << 30
)

// counts keeps the counters over restarts.
type counts struct{ *metricsConnector }

// keptCounts is what counts keeps.
type keptCounts struct {
	Streams []streams.Kept
	Ranks   []runs.Kept
	Metrics []runs.KeptMetrics
	Spans   *spans.Kept
}

// keep restores the counts of an earlier life, and keeps them from now on.
func (c *metricsConnector) keep(ctx context.Context, host component.Host) error {
	err := c.counts.load(ctx, host, c.shared, "counts", counts{c}, countsInterval)
	if c.counts.saved != nil {
		c.flusher.Ahead = func() {
			c.changes.Add(1) // also what a request has added so far, and what is shown
			c.counts.saved.Ahead()
		}
	}
	c.begun.Store(true)
	return err
}

// Export returns all counts, of a last save with all that is remembered of spans. What is
// counted meanwhile is not counted again, at worst not at all: values are read first.
func (c counts) Export() ([]byte, error) {
	at := c.changes.Load()
	if at == c.exportedAt && c.exported != nil {
		return c.exported, nil
	}
	c.concluding.Lock()
	kept := keptCounts{c.store.Keep(), c.clocks.Keep(), c.shared.seen.Ranks.Keep(), c.tally.Keep(c.ending.Load())}
	c.concluding.Unlock()
	var data bytes.Buffer
	to, err := gzip.NewWriterLevel(&data, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(gob.NewEncoder(to).Encode(&kept), to.Close())
	}
	if err == nil {
		c.exportedAt, c.exported = at, data.Bytes()
	}
	return data.Bytes(), err
}

// Import restores what Export returned, before anything is counted.
func (c counts) Import(data []byte) error {
	if c.begun.Load() {
		return errors.New("it could not be read in time")
	}
	from, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	whole, err := io.ReadAll(io.LimitReader(from, maxCounts))
	if err != nil {
		return err
	}
	kept := keptCounts{Spans: new(spans.Kept)}
	if err := gob.NewDecoder(bytes.NewReader(whole)).Decode(&kept); err != nil {
		return err
	}
	c.store.Restore(kept.Streams)
	c.clocks.Restore(kept.Ranks, c.store, c.now())
	c.shared.seen.Ranks.Restore(kept.Metrics)
	c.tally.Restore(kept.Spans)
	return nil
}
