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

	// Seen is the minute of the newest line, so that a state in which nothing else has
	// changed is not written with each line.
	Seen time.Time `json:"seen"`
}

// openStorage reads what was kept.
func (l *lines) openStorage(ctx context.Context, host component.Host) (err error) {
	place := saved.Place{Kind: component.KindConnector, Owner: l.id, Storage: l.storage}
	l.saved, err = place.Load(ctx, host, "", l, func(_ context.Context, operation string, err error, again bool) {
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
	state := keptState{Version: stateVersion, Processes: make(map[string]keptProcess, len(l.programs.restored))}
	maps.Copy(state.Processes, l.programs.restored)
	for _, s := range l.programs.streams {
		for _, p := range s.processes {
			if p.Trains() && p.writes == p {
				state.Processes[p.key] = keptProcess{p.State, s.seen.UTC().Truncate(time.Minute)}
			}
		}
	}
	return json.Marshal(state)
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
	maps.DeleteFunc(state.Processes, func(_ string, kept keptProcess) bool {
		return now.Sub(kept.Seen) > idleTimeout || len(state.Processes) > l.programs.most+maxProcesses
	})
	l.programs.restored = state.Processes
	return nil
}
