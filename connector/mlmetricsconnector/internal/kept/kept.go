// Package kept saves what the connector keeps over restarts, again and again.
package kept

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// closeTimeout limits the wait for the storage extension.
const closeTimeout = 5 * time.Second

// Keeping saves a state again and again.
type Keeping struct {
	// Saved is the state, nil if nothing is kept over restarts.
	Saved  *saved.State
	cancel context.CancelFunc
	// ended is closed after the last save.
	ended chan struct{}
}

// Load opens the place, if it keeps anything, loads what is kept under the name, and saves it
// at intervals from then on.
func (k *Keeping) Load(ctx context.Context, host component.Host, in saved.Place, name string, of saved.Kept, every time.Duration, logger *zap.Logger) (err error) {
	k.Saved, err = in.Load(ctx, host, name, of, func(_ context.Context, operation string, err error, again bool) {
		if !again {
			logger.Warn(failures[operation], zap.Error(err))
		}
	})
	if err != nil || k.Saved == nil {
		return err
	}
	// The context of Start ends with Start.
	background, cancel := context.WithCancel(context.Background())
	k.cancel, k.ended = cancel, make(chan struct{})
	go func() {
		defer close(k.ended)
		k.Saved.SaveEvery(background, every)
		k.Saved.Close()
	}()
	return nil
}

// Close saves a last time. It waits a few seconds at most, because the Collector gives it
// no deadline.
func (k *Keeping) Close(ctx context.Context) error {
	if k.Saved == nil {
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

// failures say what a failed operation of the storage means.
var failures = map[string]string{
	saved.Read:   "What ml_metrics keeps over restarts could not be read. It is read again at the next save, but for counts, which begin at zero.",
	saved.Decode: "What ml_metrics keeps over restarts is damaged, or a newer version wrote it. It is kept as state.backup, and not used: counters begin at zero, what was there before is no change, and problems begin anew.",
	saved.Encode: "What ml_metrics keeps over restarts could not be saved.",
	saved.Write:  "What ml_metrics keeps over restarts could not be saved. It is tried again: counts each second, the rest each minute.",
}
