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
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/spans"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// saveInterval is the time between two saves of what is not counted.
	saveInterval = time.Minute
	// countsInterval is the time between two saves of the counts.
	countsInterval = time.Second
	// maxCounts limits what is read of them, in bytes.
	maxCounts = 1 << 30
)

// keptState is what the instances keep over restarts: what changes are compared with, the open
// problems, and lemons. Problems are in the form of gob, which has NaN.
type keptState struct {
	History  json.RawMessage `json:"history"`
	Problems []byte          `json:"problems,omitempty"`
	Lemons   *detect.Lemons  `json:"lemons,omitempty"`
}

// Export returns them as JSON. If they are too much, it leaves out the problems and lemons.
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
	data, err := json.Marshal(keptState{history, problems.Bytes(), &i.lemons})
	if len(data) > change.MaxKept {
		return json.Marshal(keptState{History: history})
	}
	return data, err
}

// Import reads what Export wrote. It returns an error for anything else.
func (i *instances) Import(data []byte) error {
	in := keptState{Lemons: &i.lemons}
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

// counting keeps the counters over restarts.
type counting struct {
	keeping
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
	err := c.load(ctx, host, c.of.set, c.of.cfg, "counts", c, countsInterval)
	if c.saved != nil {
		flusher.Ahead = func() {
			c.changes.Add(1) // also what a request has added so far, and what is shown
			c.saved.Ahead()
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

// closeTimeout limits the wait for the storage extension.
const closeTimeout = 5 * time.Second

// keeping saves a state again and again.
type keeping struct {
	// saved is the state, nil if nothing is kept over restarts.
	saved  *saved.State
	cancel context.CancelFunc
	saving sync.WaitGroup
}

// load loads the state that was saved under the name where the configuration says, and saves it
// at intervals from then on. Without storage and state_directory it does nothing.
func (k *keeping) load(ctx context.Context, host component.Host, set connector.Settings, cfg *Config, name string, of saved.Kept, every time.Duration) (err error) {
	in := saved.Place{Kind: component.KindConnector, Owner: set.ID, Storage: cfg.Storage, Directory: cfg.StateDirectory}
	k.saved, err = in.Load(ctx, host, name, of, func(_ context.Context, operation string, err error, again bool) {
		if !again {
			set.Logger.Warn(saveFailures[operation], zap.Error(err))
		}
	})
	if err != nil || k.saved == nil {
		return err
	}
	// The context of Start ends with Start.
	background, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.saving.Go(func() {
		k.saved.SaveEvery(background, every)
		k.saved.Close()
	})
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
	return shared.Check(shared.Await(ctx, k.saving.Wait) == nil, "the storage did not answer in time, so the newest changes are not saved")
}

// saveFailures say what a failed operation of the storage means.
var saveFailures = map[string]string{
	saved.Read:   "What ml_metrics keeps over restarts could not be read. It is read again at the next save, but for counts, which begin at zero.",
	saved.Decode: "What ml_metrics keeps over restarts is damaged, or a newer version wrote it. It is kept as state.backup, and not used: counters begin at zero, what was there before is no change, and problems begin anew.",
	saved.Encode: "What ml_metrics keeps over restarts could not be saved.",
	saved.Write:  "What ml_metrics keeps over restarts could not be saved. It is tried again: counts each second, the rest each minute.",
}
