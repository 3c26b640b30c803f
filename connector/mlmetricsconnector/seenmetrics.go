package mlmetricsconnector

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/processes"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
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
	// holders has the time when each run was last seen to hold GPU memory, released
	// the runs that did and then did not, with the time.
	holders, released map[gpus.Run]time.Time
	// fleet has the GPUs.
	fleet *gpus.Fleet
	// prices are those of GPUs, hours what was found by them for each name.
	prices price.GPUs
	hours  map[string]hour
	// processes are those whose metrics have a run and a rank.
	processes map[clockKey]firstAndLast
	// trainers are the ranks whose own metrics show their progress.
	trainers map[clockKey]*trainer
	// cpu has what processes use of CPUs, nccl what NCCL says about runs.
	cpu  processes.CPU
	nccl map[string]*ncclAnswers

	// heard are the hosts that have sent anything.
	heard hostsHeard

	// loads is how busy all are, for readers, who take no lock.
	loads atomic.Pointer[loads]
}

// firstAndLast are the times when something was first and last seen.
type firstAndLast struct{ first, last time.Time }

// hour is what an hour of a GPU costs, if known.
type hour struct {
	price float64
	known bool
}

// maxHours limits seenMetrics.hours. A fleet has a dozen models of GPUs.
const maxHours = 256

func newSeenMetrics(prices price.GPUs) *seenMetrics {
	s := &seenMetrics{
		prices: prices, hours: make(map[string]hour),
		holders: make(map[gpus.Run]time.Time), released: make(map[gpus.Run]time.Time), fleet: gpus.NewFleet(),
		processes: make(map[clockKey]firstAndLast), trainers: make(map[clockKey]*trainer), nccl: make(map[string]*ncclAnswers),
	}
	s.loads.Store(new(loads))
	return s
}

// noteHolder records that a run holds GPU memory, as its workload names it. The caller
// holds the lock.
func (s *seenMetrics) noteHolder(run gpus.Run, now time.Time) {
	if _, known := s.holders[run]; known {
		s.holders[run] = now
	} else if len(s.holders) < maxClocks {
		s.holders[gpus.Run{ID: strings.Clone(run.ID), Service: strings.Clone(run.Service)}] = now
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
	// holders are the runs that hold GPU memory, or did within goneAfter or when a host
	// of their GPUs was last read that is silent, and holderIDs their ids.
	holders   map[gpus.Run]bool
	holderIDs map[string]bool
	// uses is what each run has of GPUs.
	uses   map[gpus.Run]gpus.Use
	idle   map[gpus.Key]gpus.Idle
	prices map[gpus.Key]float64
	failed map[gpus.Key]gpus.Failure
	// states has the GPUs of each run, hosts those whose GPUs are read.
	states map[gpus.Run][]gpus.State
	hosts  map[string]bool
	// holding is what each run holds; released are the runs that held GPUs before, and
	// released them.
	holding  map[gpus.Run]gpus.Hold
	released map[gpus.Run]bool
	// silent are the hosts of GPUs that send nothing any more, heard is when each host
	// has last sent anything.
	silent map[string]gpus.SilentHost
	heard  map[string]time.Time
	// stuck has the ranks of runs that the others wait for.
	stuck map[string][]ranks.Stuck
}

// runOf returns the run as GPUs know it.
func runOf(key streams.RunKey) gpus.Run { return gpus.Run{ID: key.ID, Service: key.Resource.Service} }

// holds reports whether a run with an id is one of the holders.
func (f *gpuFacts) holds(id string) bool { return f.holderIDs[id] }

// hold is what a run has of GPUs at an emission.
type hold struct {
	// now reports whether its processes hold GPUs, by the newest readings, since
	// since when they do, zero if unknown. again is the same time if they had
	// released them before, as for another attempt, else zero. silent is when its GPUs
	// were last read, if all of them are on silent hosts, else zero.
	now                  bool
	since, again, silent time.Time
	// released reports whether they held GPUs before and hold none now.
	released bool
}

// holdOf returns what a run holds.
func (f *gpuFacts) holdOf(run gpus.Run) (h hold) {
	of, known := f.holding[run]
	h.since, h.silent, h.now = of.Since, of.Silent, !of.Since.IsZero() || !known && f.holders[run]
	if f.released[run] {
		h.again, h.released = of.Since, !h.now
	}
	return h
}

// gpusOf returns how many GPUs a run has.
func (f *gpuFacts) gpusOf(run streams.RunKey) float64 { return f.uses[runOf(run)].GPUs }

// gpus returns what is known of GPUs, and forgets what was not seen for
// goneAfter. services are those that have a run with an id.
func (s *seenMetrics) gpus(services map[string][]string, now time.Time) *gpuFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet.Settle(services, now)
	s.publishLoads(now)
	facts := &gpuFacts{
		holders: make(map[gpus.Run]bool, len(s.holders)), holderIDs: make(map[string]bool, len(s.holders)),
		uses: s.fleet.Runs(now), idle: s.fleet.Idle(now), prices: s.fleet.Prices(now), failed: s.fleet.Failed(),
		states: s.fleet.States(), hosts: s.fleet.Hosts(now), holding: s.fleet.Holding(now), released: make(map[gpus.Run]bool),
		stuck: s.stuck(now), silent: s.fleet.Silent(now), heard: s.fleet.Read(),
	}
	s.heard.add(facts, now)
	for run, last := range s.holders {
		if now.Sub(last) > goneAfter {
			delete(s.holders, run)
			continue
		}
		facts.holderIDs[run.ID] = true
		for _, of := range s.fleet.RunsOf(run) {
			facts.holders[of] = true
		}
	}
	for run, of := range facts.holding {
		if !of.Silent.IsZero() {
			facts.holderIDs[run.ID], facts.holders[run] = true, true
		}
	}
	s.release(facts, now)
	return facts
}

// reads returns when GPUs were read last, those of a run also without their ids.
func (s *seenMetrics) reads() gpus.Reads {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads := s.fleet.Reads()
	for workload, last := range s.holders {
		for _, run := range s.fleet.RunsOf(workload) {
			if last.After(reads.Runs[run]) {
				reads.Runs[run] = last
			}
		}
	}
	return reads
}

// rememberReleased is how long it is remembered that a run has released its GPUs.
const rememberReleased = 24 * time.Hour

// release keeps which runs have released their GPUs.
func (s *seenMetrics) release(facts *gpuFacts, now time.Time) {
	for run, of := range facts.holding {
		if _, known := s.released[run]; of.Since.IsZero() && (known || len(s.released) < maxClocks) {
			s.released[gpus.Run{ID: strings.Clone(run.ID), Service: strings.Clone(run.Service)}] = now
		}
	}
	for run, at := range s.released {
		if now.Sub(at) > rememberReleased {
			delete(s.released, run)
			continue
		}
		facts.released[run] = true
	}
}

// waiting returns the processes of runs that hold GPUs.
func (s *seenMetrics) waiting(now time.Time) map[clockKey]firstAndLast {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, holders := make(map[clockKey]firstAndLast), make(map[string]bool, len(s.holders))
	for run := range s.holders {
		holders[run.ID] = true
	}
	for key, seen := range s.processes {
		if now.Sub(seen.last) > goneAfter {
			delete(s.processes, key)
		} else if holders[key.run.ID] {
			waiting[key] = seen
		}
	}
	return waiting
}
