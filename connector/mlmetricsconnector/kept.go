package mlmetricsconnector

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/kept"
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

// counting keeps the counters over restarts.
type counting struct {
	kept.Keeping
	of    *conclusions
	tally *spans.Tally
	// concluding is held while what was observed becomes counts, changes is how often there
	// were some, begun and ending are true from the start on and at the end.
	concluding    sync.Mutex
	changes       atomic.Int64
	begun, ending atomic.Bool
	exported      []byte
	exportedAt    int64
}

// keptCounts is what counting keeps.
type keptCounts struct {
	Streams []streams.Kept
	Ranks   []runs.Kept
	Metrics []runs.KeptMetrics
	Spans   *spans.Kept
}

// start restores the counts of an earlier life, and keeps them from now on: ahead of each
// time that the flusher shows them, too.
func (c *counting) start(ctx context.Context, host component.Host, flusher *streams.Flusher) error {
	err := c.Load(ctx, host, placeOf(c.of.set, c.of.cfg), "counts", c, countsInterval, c.of.set.Logger)
	if c.Saved != nil {
		flusher.Ahead = func() {
			c.changes.Add(1) // also what a request has added so far, and what is shown
			c.Saved.Ahead()
		}
	}
	c.begun.Store(true)
	return err
}

// Export returns all counts, of a last save with all that is remembered of spans. What is
// counted meanwhile is not counted again, at worst not at all: values are read first.
func (c *counting) Export() ([]byte, error) {
	at := c.changes.Load()
	if at == c.exportedAt && c.exported != nil {
		return c.exported, nil
	}
	c.concluding.Lock()
	all := keptCounts{c.of.store.Keep(), c.of.clocks.Keep(), c.of.Shared.seen.Ranks.Keep(), c.tally.Keep(c.ending.Load())}
	c.concluding.Unlock()
	var data bytes.Buffer
	to, err := gzip.NewWriterLevel(&data, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(gob.NewEncoder(to).Encode(&all), to.Close())
	}
	if err == nil {
		c.exportedAt, c.exported = at, data.Bytes()
	}
	return data.Bytes(), err
}

// Import restores what Export returned, before anything is counted.
func (c *counting) Import(data []byte) error {
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
	all := keptCounts{Spans: new(spans.Kept)}
	if err := gob.NewDecoder(bytes.NewReader(whole)).Decode(&all); err != nil {
		return err
	}
	c.of.store.Restore(all.Streams)
	c.of.clocks.Restore(all.Ranks, c.of.store, c.of.now())
	c.of.Shared.seen.Ranks.Restore(all.Metrics)
	c.tally.Restore(all.Spans)
	return nil
}
