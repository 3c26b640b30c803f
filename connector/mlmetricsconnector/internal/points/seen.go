// Package points reads the metrics that clients and receivers send: of GPUs, processes and
// trainers, what NCCL says, and which series need not be written.
package points

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// Seen is what the instance that receives metrics records for the one that
// receives spans. It is safe for concurrent use.
type Seen struct {
	streams.Silences
	// Ranks is what the metrics of ranks show, Hosts are those that have sent anything.
	Ranks *runs.Metrics
	Hosts gpus.Hosts
	// Loads is how busy all are, for readers, who take no lock.
	Loads atomic.Pointer[processes.Loads]

	mu sync.Mutex
	// fleet has the GPUs, prices those of them.
	fleet  *gpus.Fleet
	prices *price.GPUs
	// cpu has what processes use of CPUs, nccl what NCCL says about runs.
	cpu  processes.CPU
	nccl map[string]*ncclAnswers
}

// NewSeen returns a Seen that has seen nothing. prices are those of GPUs.
func NewSeen(prices map[string]float64) *Seen {
	s := &Seen{
		Ranks: runs.NewMetrics(), fleet: gpus.NewFleet(), prices: price.NewGPUs(prices), nccl: make(map[string]*ncclAnswers),
	}
	s.Loads.Store(new(processes.Loads))
	return s
}

// Holders returns the ids of the runs that were seen to hold GPU memory.
func (s *Seen) Holders() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Holders()
}

// Settle returns what is known of GPUs and the ranks that the others wait for, and
// forgets what was not seen for 5 minutes. services are those that have a run with an id.
func (s *Seen) Settle(services map[string][]string, now time.Time) (*gpus.Facts, map[string][]ranks.Stuck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.fleet.Facts(services, &s.Hosts, now)
	s.Loads.Store(processes.NewLoads(facts.Uses, facts.Services, s.cpu.Cores(now)))
	return facts, s.stuck(now)
}
