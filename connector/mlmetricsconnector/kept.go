package mlmetricsconnector

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// saveInterval is the time between two saves to the storage extension.
	saveInterval = time.Minute
	// closeTimeout limits the wait for the storage extension.
	closeTimeout = 5 * time.Second
	// countsInterval is the time between two saves of the counts.
	countsInterval = time.Second
	// maxCounts limits what is read of them, in bytes.
	maxCounts = 1 << 30
)

// keeping saves a state again and again. saved is nil if nothing is kept over restarts.
type keeping struct {
	saved  *saved.State
	cancel context.CancelFunc
	// ended is closed after the last save.
	ended chan struct{}
}

// load opens what the configuration names, if it names anything, and loads what is kept.
func (k *keeping) load(ctx context.Context, host component.Host, of *instances, name string, kept saved.Kept, every time.Duration) (err error) {
	switch {
	case of.cfg.Storage != nil:
		if k.saved, err = saved.Open(ctx, host, *of.cfg.Storage, component.KindConnector, of.set.ID, name, kept, of.storageFailed); err != nil {
			return err
		}
	case of.cfg.StateDirectory != "":
		k.saved = saved.OpenFolder(ctx, of.cfg.StateDirectory, component.KindConnector, of.set.ID, name, kept, of.storageFailed)
	default:
		return nil
	}
	// The context of Start ends with Start.
	background, cancel := context.WithCancel(context.Background())
	k.cancel, k.ended = cancel, make(chan struct{})
	go func() {
		defer close(k.ended)
		k.saved.SaveEvery(background, every)
		k.saved.Close()
	}()
	return nil
}

// close saves a last time. It waits a few seconds at most, because the Collector gives it
// no deadline.
func (k *keeping) close(ctx context.Context) error {
	if k.saved == nil {
		return nil
	}
	k.cancel()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-k.ended:
		return nil
	case <-ctx.Done():
		return errors.New("the storage did not answer in time, so the newest changes are not saved")
	}
}

// kept is what the instances keep over restarts: what changes are compared with, and the
// open problems. Problems are in the form of gob, which has NaN.
type kept struct {
	History  json.RawMessage `json:"history"`
	Problems []byte          `json:"problems,omitempty"`
}

// Export returns both as JSON. If they are too much, it leaves out the problems.
func (i *instances) Export() ([]byte, error) {
	history, err := i.history.Export()
	if err != nil {
		return nil, err
	}
	var problems bytes.Buffer
	if open := cmp.Or(i.open.Load(), i.restored.Load()); open != nil && len(*open) > 0 {
		if err := gob.NewEncoder(&problems).Encode(*open); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(kept{history, problems.Bytes()})
	if len(data) > change.MaxKept {
		return json.Marshal(kept{History: history})
	}
	return data, err
}

// Import reads what Export wrote. It returns an error for anything else.
func (i *instances) Import(data []byte) error {
	var in kept
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if len(in.Problems) > 0 {
		var open []problem.Entry
		if err := gob.NewDecoder(bytes.NewReader(in.Problems)).Decode(&open); err != nil {
			return err
		}
		open = problem.Plausible(open)
		defer i.restored.Store(&open)
	}
	return i.history.Import(in.History)
}

// storageFailures say what a failed operation of the storage means.
var storageFailures = map[string]string{
	saved.Read:   "What ml_metrics keeps over restarts could not be read. It is read again at the next save, but for counts, which begin at zero.",
	saved.Decode: "What ml_metrics keeps over restarts is damaged, or a newer version wrote it. It is kept as state.backup, and not used: counters begin at zero, what was there before is no change, and problems begin anew.",
	saved.Encode: "What ml_metrics keeps over restarts could not be saved.",
	saved.Write:  "What ml_metrics keeps over restarts could not be saved. It is tried again: counts each second, the rest each minute.",
}

// storageFailed reports a failed operation of the storage extension.
func (i *instances) storageFailed(_ context.Context, operation string, err error, again bool) {
	if !again {
		i.set.Logger.Warn(storageFailures[operation], zap.Error(err))
	}
}

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
