package mlmetricsconnector

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// goneAfter is how long no metric must have come until a process, or its hold
// on a GPU, is taken for gone.
const goneAfter = 5 * time.Minute

// seenMetrics are what the instances of one component id share: what the one that
// gets metrics has found in them, for the one that gets spans. It is safe for
// concurrent use.
type seenMetrics struct {
	streams.Silences

	mu sync.Mutex
	// holders has when each run was seen last to have memory of a GPU.
	holders map[string]time.Time
	// processes are those whose metrics name a run and a rank.
	processes map[clockKey]firstAndLast
}

// firstAndLast is when something was seen.
type firstAndLast struct{ first, last time.Time }

func newSeenMetrics() *seenMetrics {
	return &seenMetrics{holders: make(map[string]time.Time), processes: make(map[clockKey]firstAndLast)}
}

// acquire returns what the instances of a component id share.
func acquire(ctx context.Context, registry *shared.Registry[*seenMetrics], host component.Host, id component.ID) (*seenMetrics, shared.Release, error) {
	return registry.Acquire(ctx, host, id, func() (*seenMetrics, error) { return newSeenMetrics(), nil })
}

// Start implements shared.Object.
func (*seenMetrics) Start(context.Context, component.Host) error { return nil }

// Shutdown implements shared.Object.
func (*seenMetrics) Shutdown(context.Context) error { return nil }

var _ shared.Object = (*seenMetrics)(nil)

// noteGPUs notes the runs that have memory of a GPU.
func (s *seenMetrics) noteGPUs(m pmetric.Metric, now time.Time) {
	if m.Type() != pmetric.MetricTypeSum {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, point := range m.Sum().DataPoints().All() {
		v, ok := point.Attributes().Get(mlattr.RunID)
		if !ok || point.IntValue() <= 0 {
			continue
		}
		run, ok := mlattr.ReadID(v)
		if _, known := s.holders[run]; !ok || !known && len(s.holders) >= maxClocks {
			continue
		}
		s.holders[strings.Clone(run)] = now
	}
}

// noteProcess notes that metrics of a process of a run came.
func (s *seenMetrics) noteProcess(key clockKey, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, known := s.processes[key]
	if !known {
		if len(s.processes) >= maxClocks {
			return
		}
		key, seen.first = clockKey{key.resource.Clone(), key.run.Clone()}, now
	}
	seen.last = now
	s.processes[key] = seen
}

// held returns a function that reports whether a run's processes hold GPUs.
func (s *seenMetrics) held(now time.Time) func(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	holders := make(map[string]bool, len(s.holders))
	for run, last := range s.holders {
		if now.Sub(last) > goneAfter {
			delete(s.holders, run)
			continue
		}
		holders[run] = true
	}
	return func(run string) bool { return holders[run] }
}

// waiting returns the processes of runs that hold GPUs.
func (s *seenMetrics) waiting(now time.Time) map[clockKey]firstAndLast {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make(map[clockKey]firstAndLast)
	for key, seen := range s.processes {
		if now.Sub(seen.last) > goneAfter {
			delete(s.processes, key)
		} else if _, holds := s.holders[key.run.ID]; holds {
			waiting[key] = seen
		}
	}
	return waiting
}
