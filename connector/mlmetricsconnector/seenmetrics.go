package mlmetricsconnector

import (
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// goneAfter is the time without metrics after which a process, or its hold on a
// GPU, is considered gone.
const goneAfter = 5 * time.Minute

// seenMetrics is what the instance that receives metrics records for the one that
// receives spans. It is safe for concurrent use.
type seenMetrics struct {
	streams.Silences

	mu sync.Mutex
	// holders has the time when each run was last seen to hold GPU memory.
	holders map[string]time.Time
	// fleet has the GPUs.
	fleet *gpus.Fleet
	// processes are those whose metrics have a run and a rank.
	processes map[clockKey]firstAndLast
}

// firstAndLast are the times when something was first and last seen.
type firstAndLast struct{ first, last time.Time }

func newSeenMetrics() *seenMetrics {
	return &seenMetrics{
		holders: make(map[string]time.Time), fleet: gpus.NewFleet(),
		processes: make(map[clockKey]firstAndLast),
	}
}

// noteHolder records that a run holds GPU memory. The caller holds the lock.
func (s *seenMetrics) noteHolder(run string, now time.Time) {
	if _, known := s.holders[run]; known {
		s.holders[run] = now
	} else if len(s.holders) < maxClocks {
		s.holders[strings.Clone(run)] = now
	}
}

// noteProcess records that metrics of a run's process arrived.
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

// gpuFacts is what an emission needs to know of GPUs.
type gpuFacts struct {
	// holders are the runs that hold GPU memory, or did within goneAfter.
	holders map[string]bool
	// uses is what each run has of GPUs.
	uses   map[string]gpus.Use
	idle   map[gpus.Key]gpus.Idle
	failed map[gpus.Key]gpus.Failure
}

// holds reports whether a run's processes hold GPUs.
func (f *gpuFacts) holds(run string) bool { return f.holders[run] }

// gpus returns what is known of GPUs, and forgets what was not seen for
// goneAfter.
func (s *seenMetrics) gpus(now time.Time) *gpuFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet.Settle(now)
	facts := &gpuFacts{
		holders: make(map[string]bool, len(s.holders)),
		uses:    s.fleet.Runs(), idle: s.fleet.Idle(), failed: s.fleet.Failed(),
	}
	for run, last := range s.holders {
		if now.Sub(last) > goneAfter {
			delete(s.holders, run)
			continue
		}
		facts.holders[run] = true
	}
	return facts
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
