package mllinesconnector

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// stateVersion is that of what is kept. Another one is not read.
const stateVersion = 1

// keptState is what goes on when the collector starts again.
type keptState struct {
	Version int `json:"version"`
	// Processes are by the owner of their stream and their prefix.
	Processes map[string]keptProcess `json:"processes"`
}

type keptProcess struct {
	training.State

	Seen time.Time `json:"seen"`
}

// openStorage reads what was kept.
func (l *lines) openStorage(ctx context.Context, host component.Host) (err error) {
	if l.cfg.Storage == nil {
		return nil
	}
	l.saved, err = saved.Open(ctx, host, *l.cfg.Storage, component.KindConnector, l.id, "", l, func(_ context.Context, operation string, err error, again bool) {
		if !again {
			l.logger.Warn("The state of training programs in storage could not be used", zap.String("operation", operation), zap.Error(err))
		}
	})
	return err
}

// Export returns the state of all processes that were seen to train, and of those of which
// no line has come since the start.
func (l *lines) Export() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exported != nil {
		return l.exported, nil
	}
	state := keptState{Version: stateVersion, Processes: make(map[string]keptProcess, len(l.restored))}
	maps.Copy(state.Processes, l.restored)
	for _, s := range l.streams {
		for _, p := range s.processes {
			if p.Trains() && p.writes == p {
				state.Processes[p.key] = keptProcess{p.Kept(), s.seen.UTC()}
			}
		}
	}
	data, err := json.Marshal(state)
	l.exported = data
	return data, err
}

// Import takes what Export returned. What is older than idleTimeout is left out.
func (l *lines) Import(data []byte) error {
	var state keptState
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	if state.Version != stateVersion {
		return fmt.Errorf("its version is %d, not %d", state.Version, stateVersion)
	}
	now := l.now()
	l.restored = make(map[string]keptProcess, len(state.Processes))
	for key, kept := range state.Processes {
		if now.Sub(kept.Seen) <= idleTimeout && len(l.restored) < l.cfg.MaxStreams+maxProcesses {
			l.restored[key] = kept
		}
	}
	return nil
}

// restore makes a new process go on from what was kept of it.
func (l *lines) restore(p *process) {
	kept, ok := l.restored[p.key]
	if !ok {
		return
	}
	delete(l.restored, p.key)
	if of := l.set.Named(kept.Format); of != nil {
		p.Restore(&kept.State, of)
	}
}
