package mllinesconnector

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/unwrap"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// maxProcesses limits the processes behind prefixes of launchers. Lines of further ones
	// are read as those of their stream.
	maxProcesses = 16_384
	// idleTimeout is how long a stream is remembered without lines.
	idleTimeout = 12 * time.Hour
	// unused is how long a stream was not used that may be forgotten for another one, and
	// lookedAt are how many are compared.
	unused, lookedAt = time.Minute, 16
)

// programs are the streams that are remembered, with the processes that print into them.
type programs struct {
	// most is the largest number of streams, which are by the owners of their origins.
	most    int
	streams map[string]*stream
	// newest has the newest stream of each program.
	newest map[string]*stream
	// prefixed is the number of processes with a prefix.
	prefixed int
	swept    time.Time
	// restored are processes from before the start of which no line has come since.
	restored map[string]training.State
}

// of returns the stream of an origin, nil beyond the limit.
func (ps *programs) of(o *origin.Origin, now time.Time) *stream {
	s := ps.streams[o.Owner]
	if s == nil {
		if len(ps.streams) >= ps.most && !ps.makeRoom(now) {
			return nil
		}
		s = &stream{origin: o, after: ps.newest[o.Program].end()}
		s.only = newProcess(s, "", -1, -1)
		s.processes = map[string]*process{"": s.only}
		ps.restore(s.only)
		ps.streams[o.Owner], ps.newest[o.Program] = s, s
	}
	s.seen = now
	return s
}

// processOf returns the process of a stream that printed a line: member is what tells it apart
// by its file.
func (ps *programs) processOf(s *stream, line *unwrap.Line, member string) *process {
	prefix := member + line.Process
	p := s.processes[prefix]
	if p == nil {
		if ps.prefixed >= maxProcesses {
			return s.only
		}
		ps.prefixed++
		prefix = strings.Clone(prefix)
		p = newProcess(s, prefix, line.Rank, line.LocalRank)
		s.processes[prefix] = p
		ps.restore(p)
	}
	return p
}

// makeRoom forgets the oldest of a few streams, if it was not used for a while.
func (ps *programs) makeRoom(now time.Time) bool {
	oldest, n := "", 0
	for key, s := range ps.streams {
		if oldest == "" || s.seen.Before(ps.streams[oldest].seen) {
			oldest = key
		}
		if n++; n == lookedAt {
			break
		}
	}
	if oldest == "" || now.Sub(ps.streams[oldest].seen) < unused {
		return false
	}
	ps.forget(oldest)
	return true
}

// sweep forgets the streams without lines.
func (ps *programs) sweep(now time.Time) {
	if now.Sub(ps.swept) < unused {
		return
	}
	ps.swept = now
	for key, s := range ps.streams {
		if now.Sub(s.seen) > idleTimeout {
			ps.forget(key)
		}
	}
}

// forget removes a stream. What waits of it is still sent.
func (ps *programs) forget(key string) {
	s := ps.streams[key]
	ps.prefixed -= len(s.processes) - 1
	if ps.newest[s.origin.Program] == s {
		delete(ps.newest, s.origin.Program)
	}
	delete(ps.streams, key)
}

// restore makes a new process go on from what was kept of it.
func (ps *programs) restore(p *process) {
	if kept, ok := ps.restored[p.key]; ok {
		delete(ps.restored, p.key)
		p.Restore(kept)
	}
}

// stateVersion is that of what is kept. Another one is not read.
const stateVersion = 1

// keptState is what goes on when the collector starts again.
type keptState struct {
	Version int `json:"version"`
	// Processes are by the owner of their stream and their prefix.
	Processes map[string]training.State `json:"processes"`
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
	state := keptState{Version: stateVersion, Processes: make(map[string]training.State, len(l.programs.restored))}
	maps.Copy(state.Processes, l.programs.restored)
	for _, s := range l.programs.streams {
		for _, p := range s.processes {
			if p.Trains() && p.writes == p {
				kept := p.State
				kept.Seen = s.seen.UTC().Truncate(time.Minute)
				state.Processes[p.key] = kept
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
	maps.DeleteFunc(state.Processes, func(_ string, kept training.State) bool {
		return now.Sub(kept.Seen) > idleTimeout || len(state.Processes) > l.programs.most+maxProcesses
	})
	l.programs.restored = state.Processes
	return nil
}
