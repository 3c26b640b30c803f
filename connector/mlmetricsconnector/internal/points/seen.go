// Package points reads the metrics that clients and receivers send: of GPUs, processes and
// trainers, what NCCL says, and which series need not be written.
package points

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/links"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Seen is what the instance that receives metrics records for the one that
// receives spans. It is safe for concurrent use.
type Seen struct {
	streams.Silences
	// Ranks is what the metrics of ranks show, Hosts are those that have sent anything.
	Ranks runs.Metrics
	Hosts gpus.Hosts
	// Loads is how busy all are, for readers, who take no lock.
	Loads atomic.Pointer[processes.Loads]

	mu sync.Mutex
	// fleet has the GPUs, prices those of them.
	fleet  *gpus.Fleet
	prices *price.GPUs
	// cpu has what processes use of CPUs, nccl what NCCL says about runs, and dumps what
	// PyTorch's Flight Recorder does.
	cpu   processes.CPU
	nccl  map[string]*ncclAnswers
	dumps dumps
	// links has what hosts say of their links and file systems.
	links links.Links
}

// NewSeen returns a Seen that has seen nothing. prices are those of GPUs.
func NewSeen(prices map[string]float64) *Seen {
	s := &Seen{fleet: gpus.NewFleet(), prices: price.NewGPUs(prices)}
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
func (s *Seen) Settle(services map[string][]string, now time.Time) (*gpus.Facts, map[string]ranks.Said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.fleet.Facts(services, &s.Hosts, now)
	facts.Faults = s.links.Faults(now)
	s.Loads.Store(processes.NewLoads(facts, s.cpu.Cores(now)))
	return facts, s.said(now)
}

// sentByClients maps metric names to the series that a program which sends them
// needs no more: the one of that name, and those that say the same by another name.
var sentByClients = func() map[string][]series.ID {
	names := make(map[string][]series.ID, len(series.All))
	for i := range series.All {
		s, id := &series.All[i], series.ID(i) // #nosec G115 -- the table's index
		names[s.Name] = append(names[s.Name], id)
		for _, next := range s.Next {
			names[next] = append(names[next], id)
		}
	}
	return names
}()

// Read records which program sends which series, the processes of runs, their progress,
// the state of GPUs, and what NCCL says about ranks. It ignores what ml_metrics has
// written. history gets the drivers of hosts, and is nil if nobody wants to know.
func (s *Seen) Read(md pmetric.Metrics, history *change.History, now time.Time) {
	var facts vocabulary.Facts
	var shown trainingPoints
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		of, _ := program.Read(attrs)
		seeVersions(history, attrs, now)
		clients := false
		vocabulary.Default().Resource(attrs, &facts)
		shown = shown[:0]
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				continue
			}
			known := facts.Systems | vocabulary.Default().Scope(sm.Scope().Name())
			for _, m := range sm.Metrics().All() {
				for _, id := range sentByClients[m.Name()] {
					s.Note(of, id, now)
				}
				s.noteGPU(m, attrs, now)
				s.noteCPU(m, attrs, of, now)
				shown.read(known, m)
				s.noteNCCL(m, attrs, now)
				s.noteLinks(m, now)
				clients = clients || !mlattr.IsDerived(m.Name())
			}
		}
		if !clients {
			continue
		}
		key := runs.Key{Resource: of, Run: program.RunOf(&facts)}
		s.Hosts.See(now, key.Run.Host)
		if key.Run.ID == mlattr.Other {
			shown = shown[:0]
		}
		if key.Run.ID != "" && (key.Run.Rank != "" || len(shown) > 0) {
			s.Ranks.See(key, program.Of(&facts, attrs), shown, now)
		}
	}
}
